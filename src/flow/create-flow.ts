import type { LanguageModel, ModelMessage } from "ai";
import {
  DEFAULT_ROUND_LIMIT,
  type FlowSnapshot,
  type FlowStateStore,
} from "../model/flow-state.ts";
import type { InteractionType } from "../model/interaction.ts";
import { checkName } from "../model/names.ts";
import { systemClock } from "../util/clock.ts";
import { createIds, type Ids } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { flowModel, type ShownTool } from "./prompts.ts";
import {
  type FlowEvent,
  type FlowOutcome,
  type FlowParts,
  type FlowProblem,
  inTurn,
  type Run,
  type RunRequest,
  runNodes,
} from "./run.ts";
import { createRuntimeState } from "./runtime-state.ts";
import { runtimeStateOf } from "./snapshot-json.ts";
import { isAboutPlan } from "./take-answer.ts";
import { type FlowSession, newWork, workOf } from "./work.ts";

export interface FlowOptions {
  /** Any model of the AI SDK. Without one a flow can only deliver what is stored. */
  readonly model?: LanguageModel;
  /** Shape: callback. The gate that all its calls and questions go through; the same conversation gets the same session. */
  readonly openSession: (conversation: Conversation) => FlowSession;
  /** What the model is told it can call; a port's registry fits. Asked for anew in every round. */
  readonly tools: { all(): readonly ShownTool[] };
  /** Without one nothing is saved, and a run ends with its process. */
  readonly states?: FlowStateStore;
  /** Shape: callback; the flow waits. When it throws, the run stops and can be resumed from what was saved. */
  readonly onEvent?: (event: FlowEvent) => void | Promise<void>;
  /** Shape: push. What went wrong without stopping the run: a snapshot that could not be saved, a summary not written. */
  readonly onProblem: (problem: FlowProblem) => void;
  readonly roundLimit?: number;
  /** How many unusable answers of the model in a row are corrected before the run ends; 3 when left out. */
  readonly maxCorrections?: number;
  /** How long a snapshot is kept after its last save; 30 days when left out. */
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
  /** Left out: nothing is saved. */
  readonly conversationId?: string;
  readonly userId?: string;
  readonly message: string;
  /** What was said before in plain talk, which the flow does not keep. */
  readonly history?: readonly ModelMessage[];
  /** Stops between two steps and while the model thinks, never a tool in its work. */
  readonly signal?: AbortSignal;
}

/** Which question was answered. What was answered stands in the inbox: nobody can say yes by calling this. */
export interface FlowAnswer {
  readonly conversationId: string;
  readonly interactionId: string;
  /** Of the snapshot that the client has seen. */
  readonly version: number;
  readonly signal?: AbortSignal;
}

/**
 * The life of a run: talk, plan, confirmation, execution, delivery. Requests of one conversation take turns. Throws when the
 * store cannot be read, or the model or a client fails: what was saved stays, and `resume` goes on from there.
 */
export interface Flow {
  /** A message of the user. While something waits for a person it only looks whether there is an answer. */
  handle(request: FlowRequest): Promise<FlowOutcome>;
  /** A question was answered in the inbox. */
  reply(answer: FlowAnswer): Promise<FlowOutcome>;
  /** A confirmation was decided in the inbox. */
  confirm(answer: FlowAnswer): Promise<FlowOutcome>;
  /** Goes on from the stored point: after a restart, or when the connection was lost. */
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

  function sessionOf({ common }: Run["state"]): FlowSession {
    const { conversation_id: conversationId, user_id: userId, trace_id: traceId } = common;
    return options.openSession({ conversationId, userId, traceId });
  }

  async function load(conversationId: string): Promise<FlowSnapshot | undefined> {
    if (conversationId === "" || parts.states === undefined) return undefined;
    const loaded = await parts.states.load(conversationId);
    return loaded.found ? loaded.snapshot : undefined;
  }

  function runOf({ state: saved, work: kept, revision }: FlowSnapshot, request: RunRequest): Run {
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
      return refused("Nothing waits for an answer in this conversation any more.");
    }
    // A plan is confirmed, and it is a question that is replied to: both doors lead to it.
    const isOfType = open.type === type || (type !== "connection_lost" && isAboutPlan(open));
    if (open.interaction_id !== interactionId || !isOfType) {
      return refused("That was another question. Look at the one that is open now.");
    }
    if (open.version !== version) {
      return refused("That was another version of the question. Load it again and look at it.");
    }
    return runNodes(runOf(snapshot, requestOf("", signal)));
  }

  return {
    handle({ conversationId = "", userId = "", message, history = [], signal }) {
      return turns(conversationId, async () => {
        if (conversationId !== "") checkName("conversationId", conversationId);
        const request = { message, history, signal };
        const snapshot = await load(conversationId);
        if (snapshot !== undefined) return runNodes(runOf(snapshot, request));
        const state = createRuntimeState({
          trace_id: ids.next(),
          user_id: userId,
          conversation_id: conversationId,
          round_limit: parts.roundLimit,
        });
        const session = sessionOf(state);
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
