// `tools/call` of a client as a call of the gate: judged, perhaps held while a person decides, and answered. A call that was
// answered as pending is remembered, so that the same call later returns what became of it; another process finds it by its
// content in the store.

import { isSettled } from "../gate/answers.ts";
import type { Session } from "../gate/session.ts";
import type { CallAnswer } from "../model/operation.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import { isWireData, resultFor } from "./answers.ts";
import {
  isStateless,
  type RequestMessage,
  type ResponseMessage,
  resultMessage,
  withId,
} from "./message.ts";
import type { OfferedTool } from "./offered-tools.ts";
import { createCallTasks } from "./tasks.ts";
import type { Upstream } from "./upstream.ts";
import type { WireRequest } from "./wire.ts";

/** A call that its client waits for: it is executed with the client's own message, and its progress reaches the client. */
export interface LiveCall {
  readonly request: RequestMessage;
  readonly input: JsonObject;
  readonly upstream: Upstream;
  /** How its progress reaches the client. */
  readonly wire: WireRequest;
  /** Set when it is being executed: then its end is worth waiting for. */
  taken: boolean;
}

/** Calls of this process that a client waits for, by call id. */
export type LiveCalls = Map<string, LiveCall>;

export interface AskedCall {
  readonly request: RequestMessage;
  readonly tool: OfferedTool;
  readonly input: JsonObject;
  readonly upstream: Upstream;
  /** How its progress reaches the client. */
  readonly wire: WireRequest;
  /** Whether the client takes a task instead of waiting. */
  readonly asTask: boolean;
  /** Aborted when the client cancels the request: then it must not run. */
  readonly signal: AbortSignal;
  /** Aborted also when the client goes away: nobody waits for a person any more. */
  readonly hold: AbortSignal;
}

export interface GatedCallsOptions {
  readonly session: Session;
  readonly live: LiveCalls;
  readonly holdMs: number;
  readonly newId: () => string;
  /** Errors of the protocol with which upstreams answered calls, by call. */
  readonly refusals: ReadonlyMap<string, JsonObject>;
  /** For the operator. Shape: push. */
  readonly onProblem: (text: string) => void;
}

/** More than any client keeps waiting; beyond it the oldest are asked about again. */
const MOST_WAITING = 1_000;

export interface GatedCalls {
  /** The response for the client; undefined when the client cancelled the request. */
  call(asked: AskedCall): Promise<ResponseMessage | undefined>;
  /** The answer to a request about a task; undefined when it is not one of the gate. */
  task(request: RequestMessage): Promise<ResponseMessage | undefined>;
}

export function createGatedCalls(options: GatedCallsOptions): GatedCalls {
  const { session, live, holdMs, newId, onProblem } = options;
  /** Keys of calls that were answered as pending, by their content. */
  const waiting = new Map<string, string>();
  const tasks = createCallTasks({
    session,
    refusals: options.refusals,
    async onDelivered(key, answer) {
      for (const [content, one] of waiting) if (one === key) waiting.delete(content);
      await session.deliver(key, answer);
    },
  });

  async function ask(given: AskedCall, key: string): Promise<CallAnswer> {
    const { request, tool, input, upstream, wire, signal, hold } = given;
    const call: LiveCall = { request, input, upstream, wire, taken: false };
    live.set(key, call);
    try {
      const asked = { callId: key, requestKey: key, tool: tool.gateName, input };
      let answer = await session.call(asked, { signal, undelivered: true });
      if (isWorthWaiting(answer) && holdMs > 0 && !given.asTask) {
        const terms = { timeoutMs: holdMs, signal: hold, untilLost: true } as const;
        answer = (await session.wait(key, terms)) ?? answer;
      }
      // It began while its client was waiting, or runs since its approval, so it ends soon.
      if ((call.taken && isWorthWaiting(answer)) || isRunning(answer)) {
        // Of an identical call of another process it knows the operation alone.
        const id = isRunning(answer) ? answer.operationId : key;
        const terms = { timeoutMs: RUNNING_MS, signal, untilLost: true } as const;
        answer = (await session.wait(id, terms)) ?? answer;
      }
      return answer;
    } finally {
      live.delete(key);
    }
  }

  /** What its client cancelled must not run later. One that was decided in the meantime stays decided. */
  async function withdraw(answer: CallAnswer, key: string): Promise<void> {
    if (answer.answer !== "pending") return;
    try {
      await session.withdraw(answer.interactionId, "The client cancelled its request.");
      await session.deliver(key, answer);
    } catch (error) {
      onProblem(`a cancelled call could not be withdrawn: ${errorText(error)}`);
    }
  }

  return {
    async call(asked) {
      const { request, tool, input, signal, hold } = asked;
      const content = sha256Hex(canonicalJson({ tool: tool.gateName, input }));
      const key = waiting.get(content) ?? newId();
      const answer = await ask(asked, key);
      if (signal.aborted) {
        waiting.delete(content);
        await withdraw(answer, key);
        return undefined;
      }
      if (isSettled(answer) && !hold.aborted) {
        waiting.delete(content);
        await session.deliver(key, answer);
        return responseFor(request, answer);
      }
      waiting.delete(content);
      waiting.set(content, key);
      const [oldest] = waiting.keys();
      if (waiting.size > MOST_WAITING && oldest !== undefined) waiting.delete(oldest);
      if (asked.asTask && isWorthWaiting(answer)) return tasks.created(request.id, key, answer);
      return responseFor(request, answer);
    },
    task: (request) => tasks.answer(request),
  };
}

/** As long as the gate lets a tool run. */
const RUNNING_MS = 120_000;

/** A lost outcome waits for a person who has to look at the target first: that takes longer than any hold. */
function isWorthWaiting(answer: CallAnswer): boolean {
  return isRunning(answer) || answer.answer === "pending";
}

/** Begun and not over; nobody has been asked about it. */
function isRunning(answer: CallAnswer): answer is CallAnswer & { readonly answer: "unknown" } {
  return answer.answer === "unknown" && answer.interactionId === undefined;
}

function responseFor(request: RequestMessage, answer: CallAnswer): ResponseMessage {
  const data = "data" in answer ? answer.data : undefined;
  // As the upstream answered, unless people changed the call: then the client is told.
  if (isWireData(data) && answer.edited === undefined) return withId(data.response, request.id);
  const result = resultFor(answer);
  const kind = isStateless(request) ? { resultType: "complete", ...result } : result;
  return resultMessage(request.id, kind);
}
