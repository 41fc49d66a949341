import type { ModelMessage } from "ai";
import { FLOW_SNAPSHOT_VERSION, type FlowPhase, type FlowStateStore } from "../model/flow-state.ts";
import type { InteractionSnapshot, PendingTool } from "../model/interaction.ts";
import { invariant } from "../util/error-text.ts";
import type { Ids } from "../util/ids.ts";
import { chat, confirm, deliver, execute, interrupt, plan } from "./nodes.ts";
import type { FlowModel, ShownTool } from "./prompts.ts";
import { hasPendingInteraction, type RuntimeState } from "./runtime-state.ts";
import { savedRuntimeState } from "./snapshot-json.ts";
import { type FlowSession, isExhausted, openAct, savedWork, type Work } from "./work.ts";

/** What a node gets: the state it works on, and the services around it, which are never saved. */
export interface Run {
  readonly state: RuntimeState;
  readonly work: Work;
  readonly session: FlowSession;
  readonly parts: FlowParts;
  readonly request: RunRequest;
  /** Whether this request is the first of its run. */
  readonly isNew: boolean;
  /** The revision saved last; 0 for none. */
  revision: number;
  outcome: FlowOutcome | undefined;
}

export interface RunRequest {
  readonly message: string;
  readonly history: readonly ModelMessage[];
  readonly signal: AbortSignal | undefined;
}

export interface FlowParts {
  readonly model: FlowModel | undefined;
  readonly tools: () => readonly ShownTool[];
  readonly states: FlowStateStore | undefined;
  readonly ids: Ids;
  readonly keepMs: number;
  readonly roundLimit: number;
  readonly maxCorrections: number;
  readonly say: (event: FlowEvent) => Promise<void>;
  readonly problem: (problem: FlowProblem) => void;
}

/** A card for a person. It is sent before the question is open in the flow, and again after a restart in between. */
export interface ConfirmCard {
  readonly interactionId: string;
  readonly text: string;
  /** Undefined when the plan is to be confirmed. */
  readonly tool: PendingTool | undefined;
}

/** What the client of a conversation is told while a run goes on. */
export type FlowEvent =
  | { readonly type: "reply"; readonly conversationId: string; readonly text: string }
  | { readonly type: "card"; readonly conversationId: string; readonly card: ConfirmCard }
  | {
      readonly type: "question" | "confirmation" | "connection_lost";
      readonly conversationId: string;
      readonly interaction: InteractionSnapshot;
    }
  | { readonly type: "piece"; readonly conversationId: string; readonly text: string }
  /** What came in pieces so far is void: the model broke off. */
  | { readonly type: "restart"; readonly conversationId: string }
  | {
      readonly type: "delivered";
      readonly conversationId: string;
      readonly summary: string;
      /** Put together without the model. */
      readonly isMechanical: boolean;
    };

export interface FlowProblem {
  readonly conversationId: string;
  readonly what: "save" | "delete" | "summary";
  readonly error: unknown;
}

/** What became of a request. */
export type FlowOutcome =
  | { readonly outcome: "replied"; readonly text: string }
  | { readonly outcome: "waiting"; readonly interaction: InteractionSnapshot }
  | { readonly outcome: "delivered"; readonly summary: string }
  /** The question that was open has been called off: a message says how it goes on. */
  | { readonly outcome: "stopped" }
  /** Nothing is stored of this conversation that could go on. */
  | { readonly outcome: "nothing_stored" }
  /** Not an answer to the question that is open now; nothing was done. */
  | { readonly outcome: "refused"; readonly text: string }
  /** Another process went on with the conversation in the meantime; this one has stopped. */
  | { readonly outcome: "taken_over" };

interface Node {
  readonly run: (run: Run) => Promise<void>;
  /** Chat changes nothing that could not be found again, Interrupt comes after a save, Deliver is the end. */
  readonly saves: boolean;
}

const NODE: Readonly<Record<NodeName, Node>> = {
  chat: { run: chat, saves: false },
  plan: { run: plan, saves: true },
  confirm: { run: confirm, saves: true },
  execute: { run: execute, saves: true },
  interrupt: { run: interrupt, saves: false },
  deliver: { run: deliver, saves: false },
};

/** From chat along the routes to an end. Each node is saved after it ran, and one that throws leaves the save before it. */
export async function runNodes(run: Run): Promise<FlowOutcome> {
  // Each round is one choice and at most what it leads to: doing it, confirming it, doing it again.
  const most = 4 * run.state.common.round_limit + 16;
  let name: NodeName | "end" = "chat";
  for (let count = 0; name !== "end"; count += 1) {
    invariant(count < most, `a flow that never ends, at ${name}`);
    run.request.signal?.throwIfAborted();
    await NODE[name].run(run);
    if (NODE[name].saves && !(await save(run, name))) return { outcome: "taken_over" };
    name = nextNode(name, run.state, run.work);
  }
  return run.outcome ?? { outcome: "stopped" };
}

/** False when somebody else has gone on with this conversation. A save that fails is told and does not stop the run. */
async function save(run: Run, node: NodeName): Promise<boolean> {
  const { state, work, session, parts } = run;
  const { conversation_id: conversationId } = state.common;
  if (parts.states === undefined || conversationId === "") return true;
  const revision = run.revision + 1;
  const snapshot = {
    version: FLOW_SNAPSHOT_VERSION,
    conversation_id: conversationId,
    session_id: session.id,
    node,
    revision,
    state: savedRuntimeState(state),
    work: savedWork(work),
  };
  try {
    if (!(await parts.states.save(snapshot, { keepMs: parts.keepMs }))) return false;
    run.revision = revision;
  } catch (error) {
    parts.problem({ conversationId, what: "save", error });
  }
  return true;
}

/** One after the other for the same name, at the same time for different ones. An empty name waits for nobody. */
export type InTurn = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

export function inTurn(): InTurn {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    if (name === "") return work();
    const before = last.get(name);
    const own = (async () => {
      // How the one before ended is told to whoever asked for it.
      await before?.catch(() => {});
      return work();
    })();
    last.set(name, own);
    try {
      return await own;
    } finally {
      if (last.get(name) === own) last.delete(name);
    }
  };
}

export const NODES = ["chat", "plan", "confirm", "execute", "interrupt", "deliver"] as const;
export type NodeName = (typeof NODES)[number];

/** A row fits when all it names is so. */
export interface Route {
  readonly pending?: true;
  readonly phase?: FlowPhase;
  /** Something was chosen, or accepted, and is not done yet. */
  readonly open?: true;
  readonly exhausted?: true;
  readonly to: NodeName | "end";
}

/** Where it goes on after every node: the first row that fits. A pending interaction is looked at before anything else. */
export const ROUTES: readonly Route[] = [
  { pending: true, to: "interrupt" },
  // Called off, and nobody has said yet how it goes on.
  { phase: "interrupted", to: "end" },
  { phase: "chatting", to: "end" },
  { phase: "done", to: "deliver" },
  { phase: "waiting_confirm", to: "confirm" },
  // What the last round chose, or a person accepted, is still done.
  { phase: "planning", open: true, to: "plan" },
  { phase: "executing", open: true, to: "execute" },
  { phase: "planning", exhausted: true, to: "deliver" },
  { phase: "executing", exhausted: true, to: "deliver" },
  { phase: "planning", to: "plan" },
  { phase: "executing", to: "execute" },
];

/** These are the last of their run, whatever the state says. */
const LAST: readonly NodeName[] = ["interrupt", "deliver"];

export function nextNode(after: NodeName, state: RuntimeState, work: Work): NodeName | "end" {
  if (LAST.includes(after)) return "end";
  const { common, mailbox } = state;
  const isOpen = mailbox !== undefined || openAct(work) !== undefined;
  const fits = (route: Route): boolean =>
    (route.pending === undefined || hasPendingInteraction(state)) &&
    (route.phase === undefined || route.phase === common.phase) &&
    (route.open === undefined || isOpen) &&
    (route.exhausted === undefined || isExhausted(common));
  return ROUTES.find(fits)?.to ?? "end";
}
