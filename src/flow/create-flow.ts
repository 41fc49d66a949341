import type { LanguageModel, ModelMessage } from "ai";
import { isSallyportError } from "../model/errors.ts";
import {
  DEFAULT_ROUND_LIMIT,
  FLOW_SNAPSHOT_VERSION,
  type FlowPhase,
  type FlowSnapshot,
  type FlowStateStore,
} from "../model/flow-state.ts";
import type { InteractionSnapshot, InteractionType, PendingTool } from "../model/interaction.ts";
import { checkName } from "../model/names.ts";
import type { Progress } from "../tools/tool.ts";
import { type Clock, fromIso, systemClock } from "../util/clock.ts";
import { invariant } from "../util/error-text.ts";
import { createIds, type Ids } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { chat, confirm, deliver, execute, interrupt, isAboutPlan, plan } from "./nodes.ts";
import { type FlowModel, flowModel, type ShownTool } from "./prompts.ts";
import {
  createRuntimeState,
  type FlowSession,
  hasPendingInteraction,
  isExhausted,
  newWork,
  openAct,
  type RuntimeState,
  runtimeStateOf,
  savedRuntimeState,
  savedWork,
  type Work,
  workOf,
} from "./runtime-state.ts";

export interface FlowOptions {
  /** Any model of the AI SDK. Without one a flow can only deliver what is stored. */
  readonly model?: LanguageModel;
  /** Shape: callback. The session for all its calls and questions; the same conversation gets the same session. */
  readonly openSession: (conversation: Conversation) => FlowSession;
  /** The tools that the model may call; a gate's registry fits. Read in every round. */
  readonly tools: { all(): readonly ShownTool[] };
  /** Default: nothing is saved, and a run ends with its process. */
  readonly states?: FlowStateStore;
  /** Shape: callback; the flow waits. When it throws, the run stops and can be resumed from what was saved. */
  readonly onEvent?: (event: FlowEvent) => void | Promise<void>;
  /** Shape: push. Problems that do not stop the run: a snapshot that could not be saved, a summary not written. */
  readonly onProblem: (problem: FlowProblem) => void;
  readonly roundLimit?: number;
  /** How many unusable answers of the model in a row are corrected before the run ends; default 3. */
  readonly maxCorrections?: number;
  /** How long a snapshot is kept after its last save; default 30 days. */
  readonly keepMs?: number;
  readonly modelTimeoutMs?: number;
  readonly modelRetries?: number;
  readonly timers?: Timers;
  readonly ids?: Ids;
}

export interface Conversation {
  readonly conversationId: string;
  readonly userId: string;
  readonly traceId: string;
}

export interface FlowRequest {
  /** Default: nothing is saved. */
  readonly conversationId?: string;
  readonly userId?: string;
  readonly message: string;
  /** Earlier messages of the chat, which the flow does not keep. */
  readonly history?: readonly ModelMessage[];
  /** Stops between two steps, during a request to the model and during a tool call, whose outcome is then found out. */
  readonly signal?: AbortSignal;
}

/** Which question was answered. The answer itself is in the inbox: this call cannot approve anything. */
export interface FlowAnswer {
  readonly conversationId: string;
  readonly interactionId: string;
  /** The version of the snapshot that the client has seen. */
  readonly version: number;
  readonly signal?: AbortSignal;
}

/**
 * A run: chat, plan, confirmation, execution, delivery. Requests of one conversation are serialised. Throws when the store
 * cannot be read, or the model or a client fails: `resume` continues from the last save.
 */
export interface Flow {
  /** A message of the user. While a question is open it only checks for an answer. */
  handle(request: FlowRequest): Promise<FlowOutcome>;
  /** A question was answered in the inbox. */
  reply(answer: FlowAnswer): Promise<FlowOutcome>;
  /** A confirmation was decided in the inbox. */
  confirm(answer: FlowAnswer): Promise<FlowOutcome>;
  /** Continues from the last save: after a restart, or when the connection was lost. */
  resume(conversationId: string, signal?: AbortSignal): Promise<FlowOutcome>;
}

export function createFlow(options: FlowOptions): Flow {
  const { timers = systemTimers, modelTimeoutMs = 120_000, modelRetries = 2 } = options;
  const { ids = createIds({ clock: systemClock, random: systemRandom }), model } = options;
  const parts: FlowParts = {
    model:
      model === undefined
        ? undefined
        : flowModel({ model, timers, timeoutMs: modelTimeoutMs, maxRetries: modelRetries }),
    tools: () => options.tools.all(),
    states: options.states,
    ids,
    keepMs: options.keepMs ?? 30 * 24 * 3_600_000,
    roundLimit: options.roundLimit ?? DEFAULT_ROUND_LIMIT,
    maxCorrections: options.maxCorrections ?? 3,
    say: async (event) => options.onEvent?.(event),
    problem: options.onProblem,
  };
  const turns = inTurn();

  function sessionOf({ common }: FlowRun["state"]): FlowSession {
    const { conversation_id: conversationId, user_id: userId, trace_id: traceId } = common;
    return options.openSession({ conversationId, userId, traceId });
  }

  async function load(conversationId: string): Promise<FlowSnapshot | undefined> {
    if (conversationId === "" || parts.states === undefined) return undefined;
    const loaded = await parts.states.load(conversationId);
    return loaded.found ? loaded.snapshot : undefined;
  }

  function runOf(
    { state: saved, work: kept, revision }: FlowSnapshot,
    request: RunRequest,
  ): FlowRun {
    const state = runtimeStateOf(saved);
    const work = workOf(kept);
    const session = sessionOf(state);
    return { state, work, session, parts, request, isNew: false, revision, outcome: undefined };
  }

  async function answered(
    { conversationId, interactionId, version, signal }: FlowAnswer,
    type: InteractionType,
  ): Promise<FlowOutcome> {
    const snapshot = await load(conversationId);
    const open = snapshot?.state.pending_interaction;
    if (snapshot === undefined || open?.status !== "open") {
      return refused("No question is open in this conversation.");
    }
    // The confirmation of a plan is an ask_user question: both calls may answer it.
    const isOfType = open.type === type || (type !== "connection_lost" && isAboutPlan(open));
    if (open.interaction_id !== interactionId || !isOfType) {
      return refused("That was another question. Load the one that is open now.");
    }
    if (open.version !== version) {
      return refused("That was another version of the question. Load it again.");
    }
    return runNodes(runOf(snapshot, requestOf("", signal)));
  }

  return {
    handle({ conversationId = "", userId = "", message, history = [], signal }) {
      return turns(conversationId, async () => {
        if (conversationId !== "") checkName("conversationId", conversationId);
        const request = { message, history, signal };
        const snapshot = await load(conversationId);
        const mayReach = async (session: FlowSession) =>
          message === "" ? undefined : session.reach?.("user_prompt", message);
        if (snapshot !== undefined) {
          const run = runOf(snapshot, request);
          const said = await mayReach(run.session);
          return said?.answer === "deny" ? refused(said.text) : runNodes(run);
        }
        const state = createRuntimeState({
          trace_id: ids.next(),
          user_id: userId,
          conversation_id: conversationId,
          round_limit: parts.roundLimit,
        });
        const session = sessionOf(state);
        const said = await mayReach(session);
        if (said?.answer === "deny") return refused(said.text);
        const begun = { work: newWork(), isNew: true, revision: 0, outcome: undefined };
        return runNodes({ state, session, parts, request, ...begun });
      });
    },
    reply: (answer) => turns(answer.conversationId, () => answered(answer, "ask_user")),
    confirm: (answer) => turns(answer.conversationId, () => answered(answer, "confirm")),
    resume: (conversationId, signal) =>
      turns(conversationId, async () => {
        const snapshot = await load(conversationId);
        if (snapshot === undefined) return { outcome: "nothing_stored" };
        return runNodes(runOf(snapshot, requestOf("", signal)));
      }),
  };
}

function requestOf(message: string, signal: AbortSignal | undefined): RunRequest {
  return { message, history: [], signal };
}

function refused(text: string): FlowOutcome {
  return { outcome: "refused", text };
}

/** The input of a node: the state it works on, and services, which are never saved. */
export interface FlowRun {
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

/** A card for a person. It is sent before the flow opens the question, and again after a restart in between. */
export interface ConfirmCard {
  readonly interactionId: string;
  readonly text: string;
  /** Undefined when the plan is to be confirmed. */
  readonly tool: PendingTool | undefined;
}

/** Events for the client of a conversation during a run. */
export type FlowEvent =
  | { readonly type: "reply"; readonly conversationId: string; readonly text: string }
  | { readonly type: "card"; readonly conversationId: string; readonly card: ConfirmCard }
  | {
      readonly type: "question" | "confirmation" | "connection_lost";
      readonly conversationId: string;
      readonly interaction: InteractionSnapshot;
    }
  /** A call says how far it is. */
  | {
      readonly type: "progress";
      readonly conversationId: string;
      readonly callId: string;
      readonly report: Progress;
    }
  | { readonly type: "piece"; readonly conversationId: string; readonly text: string }
  /** Discard the pieces so far: the model failed. */
  | { readonly type: "restart"; readonly conversationId: string }
  | {
      readonly type: "delivered";
      readonly conversationId: string;
      readonly summary: string;
      /** Made without the model. */
      readonly isMechanical: boolean;
    };

export interface FlowProblem {
  readonly conversationId: string;
  readonly what: "save" | "delete" | "summary" | "progress";
  readonly error: unknown;
}

/** The result of a request. */
export type FlowOutcome =
  | { readonly outcome: "replied"; readonly text: string }
  | { readonly outcome: "waiting"; readonly interaction: InteractionSnapshot }
  | { readonly outcome: "delivered"; readonly summary: string }
  /** The open question was canceled: the next message says how to continue. */
  | { readonly outcome: "stopped" }
  /** No run of this conversation is stored. */
  | { readonly outcome: "nothing_stored" }
  /** Not an answer to the question that is open now, or a hook kept the message from the agent; nothing was done. */
  | { readonly outcome: "refused"; readonly text: string }
  /** Another process has continued the conversation; this one has stopped. */
  | { readonly outcome: "taken_over" };

interface Node {
  readonly run: (run: FlowRun) => Promise<void>;
  /** Not for Chat, which can be repeated, Interrupt, which follows a save, and Deliver, which is the end. */
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

/** From chat along the routes to an end. The state is saved after each node; a node that throws leaves the save before it. */
export async function runNodes(run: FlowRun): Promise<FlowOutcome> {
  // Each round is one choice and at most three more nodes: execute, confirm, execute.
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

/** False when another process has continued this conversation. A failed save is reported and does not stop the run. */
async function save(run: FlowRun, node: NodeName): Promise<boolean> {
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

/** Serial for the same name, concurrent for different ones. An empty name does not wait. */
type InTurn = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

export function inTurn(): InTurn {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    if (name === "") return work();
    const before = last.get(name);
    const own = (async () => {
      // Its error goes to its own caller.
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

/** A row matches when all its conditions hold. */
export interface NodeRoute {
  readonly pending?: true;
  readonly phase?: FlowPhase;
  /** Something was chosen or accepted and is not executed yet. */
  readonly open?: true;
  readonly exhausted?: true;
  readonly to: NodeName | "end";
}

/** The next node: the first row that matches. A pending interaction comes first. */
export const NODE_ROUTES: readonly NodeRoute[] = [
  { pending: true, to: "interrupt" },
  // The question was canceled, and there is no new message yet.
  { phase: "interrupted", to: "end" },
  { phase: "chatting", to: "end" },
  { phase: "done", to: "deliver" },
  { phase: "waiting_confirm", to: "confirm" },
  // What the last round chose, or a person accepted, is still executed.
  { phase: "planning", open: true, to: "plan" },
  { phase: "executing", open: true, to: "execute" },
  { phase: "planning", exhausted: true, to: "deliver" },
  { phase: "executing", exhausted: true, to: "deliver" },
  { phase: "planning", to: "plan" },
  { phase: "executing", to: "execute" },
];

/** These end the run, whatever the state is. */
const LAST: readonly NodeName[] = ["interrupt", "deliver"];

export function nextNode(after: NodeName, state: RuntimeState, work: Work): NodeName | "end" {
  if (LAST.includes(after)) return "end";
  const { common, mailbox } = state;
  const isOpen = mailbox !== undefined || openAct(work) !== undefined;
  const fits = (route: NodeRoute): boolean =>
    (route.pending === undefined || hasPendingInteraction(state)) &&
    (route.phase === undefined || route.phase === common.phase) &&
    (route.open === undefined || isOpen) &&
    (route.exhausted === undefined || isExhausted(common));
  return NODE_ROUTES.find(fits)?.to ?? "end";
}

/** What `continueFlows` looks at; a gate's `store.flowStates` and `gate.interactions` fit. */
export interface ContinueOptions {
  readonly flow: Pick<Flow, "resume">;
  readonly states: Pick<FlowStateStore, "load"> & {
    unfinished(query: { readonly after: number; readonly limit: number }): Promise<
      readonly {
        readonly conversationId: string;
        readonly updatedAt: string;
        readonly ord: number;
      }[]
    >;
    sweep(): Promise<number>;
  };
  readonly interactions: {
    get(id: string): Promise<{ readonly status: InteractionSnapshot["status"] }>;
  };
  /** How long a run without an open question rests before another process continues it; default 5 minutes. */
  readonly idleMs?: number;
  /** A conversation that failed; the others are continued all the same. Shape: push. */
  readonly onProblem: (problem: {
    readonly conversationId: string;
    readonly error: unknown;
  }) => void;
  readonly clock?: Clock;
}

const PAGE = 100;
const RUNNING_ELSEWHERE_MS = 1_000;

/**
 * For `resume` of a worker's config: removes expired conversations, continues those whose question was answered in the
 * inbox, and those whose process went away. Returns their ids. Several processes may do so: one of them saves, the
 * others stop, and calls are made once because they have keys.
 */
export function continueFlows(options: ContinueOptions): () => Promise<readonly string[]> {
  const { flow, states, interactions, onProblem } = options;
  const { idleMs = 5 * 60_000, clock = systemClock } = options;

  async function isReady(conversationId: string, updatedAt: string): Promise<boolean> {
    const loaded = await states.load(conversationId);
    if (!loaded.found) return false;
    const open = loaded.snapshot.state.pending_interaction;
    const restedMs = clock.now() - fromIso(updatedAt);
    if (open?.status !== "open") return restedMs >= idleMs;
    try {
      return (await interactions.get(open.interaction_id)).status !== "open";
    } catch (error) {
      if (!isSallyportError(error, "not_found") || open.type !== "connection_lost") throw error;
      // The call still ran elsewhere when it was repeated: nobody is asked, only its result is waited for.
      return restedMs >= RUNNING_ELSEWHERE_MS;
    }
  }

  async function continued(conversationId: string, updatedAt: string): Promise<boolean> {
    try {
      if (!(await isReady(conversationId, updatedAt))) return false;
      const { outcome } = await flow.resume(conversationId);
      return outcome !== "taken_over" && outcome !== "nothing_stored";
    } catch (error) {
      onProblem({ conversationId, error });
      return false;
    }
  }

  return async () => {
    await states.sweep();
    const ids: string[] = [];
    for (let after = 0; ; ) {
      const page = await states.unfinished({ after, limit: PAGE });
      for (const { conversationId, updatedAt } of page) {
        if (await continued(conversationId, updatedAt)) ids.push(conversationId);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return ids;
      after = last.ord;
    }
  };
}
