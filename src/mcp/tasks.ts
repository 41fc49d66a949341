// Calls that wait for a person as tasks of the Tasks extension, for clients that declare it: the call returns at once, and the
// client asks what became of it whenever it likes, also after a restart. A task is a call of the gate; nothing else is kept.

import type { Session } from "../gate/session.ts";
import { isSallyportError } from "../model/errors.ts";
import type { CallAnswer } from "../model/operation.ts";
import { systemClock, toIso } from "../util/clock.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { resultFor } from "./answers.ts";
import {
  CAPABILITIES_KEY,
  errorMessage,
  type MessageId,
  metaOf,
  type RequestMessage,
  type ResponseMessage,
  RPC,
  resultMessage,
  withParams,
} from "./message.ts";

export const TASKS = "io.modelcontextprotocol/tasks";

/** Longer than any approval is good for; results are kept longer still. */
const TTL_MS = 24 * 3_600_000;
const POLL_MS = 1_000;
const MOST_REMEMBERED = 10_000;

export interface CallTasks {
  /** The answer to a call that has just begun to wait. */
  created(id: MessageId, key: string, answer: CallAnswer): ResponseMessage;
  /** What a request about a task is answered with; undefined when the task is not one of the gate. */
  answer(request: RequestMessage): Promise<ResponseMessage | undefined>;
}

export interface CallTasksOptions {
  readonly session: Session;
  /** Errors of the protocol with which upstreams answered calls, by call. */
  readonly refusals: ReadonlyMap<string, JsonObject>;
  /** The client has learned the outcome of this call. Shape: callback. */
  readonly onDelivered: (key: string, answer: CallAnswer) => Promise<void>;
}

/** Whether the client says with this request that it understands tasks. */
export function declaresTasks(request: RequestMessage): boolean {
  const { extensions } = capabilitiesOf(request);
  return isJsonObject(extensions) && isJsonObject(extensions[TASKS]);
}

function capabilitiesOf(request: RequestMessage): JsonObject {
  const given = metaOf(request)[CAPABILITIES_KEY];
  return isJsonObject(given) ? given : {};
}

/** The same call for an upstream that must answer it: a call that people approved ends with its outcome, not with a promise. */
export function withoutTasks(request: RequestMessage): RequestMessage {
  if (!declaresTasks(request)) return request;
  const { extensions, ...rest } = capabilitiesOf(request);
  const others = Object.entries(isJsonObject(extensions) ? extensions : {});
  const kept = Object.fromEntries(others.filter(([name]) => name !== TASKS));
  const capabilities: JsonObject = { ...rest, extensions: kept };
  const meta = { ...metaOf(request), [CAPABILITIES_KEY]: capabilities };
  return withParams(request, { ...request.params, _meta: meta });
}

/** What a server says about itself, with tasks. */
export function withTasksOffered(response: ResponseMessage): ResponseMessage {
  const { result } = response;
  if (result === undefined) return response;
  const capabilities = isJsonObject(result["capabilities"]) ? result["capabilities"] : {};
  const { extensions } = capabilities;
  const offered = { ...(isJsonObject(extensions) ? extensions : {}), [TASKS]: {} };
  const next = { ...result, capabilities: { ...capabilities, extensions: offered } };
  return { ...response, ...resultMessage(response.id, next) };
}

export function offersTasks({ result = {} }: ResponseMessage): boolean {
  const { capabilities } = result;
  const extensions = isJsonObject(capabilities) ? capabilities["extensions"] : undefined;
  return isJsonObject(extensions) && TASKS in extensions;
}

/** The methods about tasks; others of the same name space are not known to the extension. */
export function isTaskMethod(method: string): boolean {
  return method === "tasks/get" || method === "tasks/update" || method === "tasks/cancel";
}

/** The answer to a request about tasks from a client that does not declare them. */
export function tasksNotDeclared(id: MessageId): ResponseMessage {
  const text = "Declare the tasks extension with the request.";
  const requiredCapabilities = { extensions: { [TASKS]: {} } };
  return errorMessage(id, RPC.missingCapability, text, { requiredCapabilities });
}

export function unknownTask(id: MessageId): ResponseMessage {
  return errorMessage(id, RPC.invalidParams, "There is no such task.");
}

interface TaskState {
  readonly createdAt: string;
  /** Answers to what was asked back, until all are there. */
  readonly replies: Map<string, string>;
  isCancelled: boolean;
  isDelivered: boolean;
}

export function createCallTasks(options: CallTasksOptions): CallTasks {
  const { session, refusals, onDelivered } = options;
  const known = new Map<string, TaskState>();

  function about(key: string) {
    const now = toIso(systemClock.now());
    const task = known.get(key) ?? {
      createdAt: now,
      replies: new Map(),
      isCancelled: false,
      isDelivered: false,
    };
    known.set(key, task);
    const [oldest] = known.keys();
    if (known.size > MOST_REMEMBERED && oldest !== undefined) known.delete(oldest);
    const { createdAt } = task;
    const times = { createdAt, lastUpdatedAt: now, ttlMs: TTL_MS, pollIntervalMs: POLL_MS };
    return { task, fields: { taskId: key, ...times } };
  }

  /** What reviewers have asked back about this call since the last reply, each under an id of its own. */
  async function asked(answer: CallAnswer): Promise<ReadonlyMap<string, string>> {
    if (answer.answer !== "pending") return new Map();
    const one = (await session.askedBack()).find(({ id }) => id === answer.interactionId);
    if (one === undefined) return new Map();
    const last = one.remarks.findLastIndex(({ by }) => one.chain.includes(by));
    const open = one.remarks.slice(last + 1);
    return new Map(open.map(({ text }, index) => [`${one.id}.${last + 1 + index}`, text]));
  }

  /** Those that are not answered yet: the reviewer gets one reply, when the last answer is there. */
  async function inputRequests(key: string, answer: CallAnswer): Promise<JsonObject> {
    const { replies } = about(key).task;
    const open = [...(await asked(answer))].filter(([id]) => !replies.has(id));
    return Object.fromEntries(
      open.map(([id, message]) => [
        id,
        {
          method: "elicitation/create",
          params: { mode: "form", message, requestedSchema: REPLY },
        },
      ]),
    );
  }

  async function state(key: string, answer: CallAnswer): Promise<JsonObject> {
    const { task, fields } = about(key);
    if (answer.answer === "pending" || answer.answer === "unknown") {
      const open = await inputRequests(key, answer);
      const statusMessage = answer.text;
      return Object.keys(open).length === 0
        ? { ...fields, status: "working", statusMessage }
        : { ...fields, status: "input_required", statusMessage, inputRequests: open };
    }
    if (!task.isDelivered) await onDelivered(key, answer);
    task.isDelivered = true;
    if (task.isCancelled) return { ...fields, status: "cancelled" };
    const error = refusals.get(key);
    if (error !== undefined) return { ...fields, status: "failed", error };
    return { ...fields, status: "completed", result: resultFor(answer) };
  }

  async function cancel(key: string, answer: CallAnswer): Promise<void> {
    if (answer.answer !== "pending") return;
    try {
      await session.withdraw(answer.interactionId, "The client cancelled the task.");
      about(key).task.isCancelled = true;
    } catch (error) {
      // Decided in the meantime, and that stands.
      if (!isSallyportError(error, "already_answered")) throw error;
    }
  }

  async function update(
    key: string,
    answer: CallAnswer,
    responses: JsonValue | undefined,
  ): Promise<void> {
    if (answer.answer !== "pending" || !isJsonObject(responses)) return;
    const { replies } = about(key).task;
    const open = await asked(answer);
    for (const id of open.keys()) {
      if (Object.hasOwn(responses, id)) replies.set(id, replyIn(responses[id]));
    }
    const all = [...open.keys()].map((id) => replies.get(id));
    if (all.length === 0 || all.includes(undefined)) return;
    await session.reply(answer.interactionId, all.join("\n"));
    replies.clear();
  }

  return {
    created(id, key, answer) {
      const { fields } = about(key);
      const task = { resultType: "task", ...fields, status: "working", statusMessage: answer.text };
      return resultMessage(id, task);
    },
    async answer({ id, method, params }) {
      const { taskId } = params;
      const answer = typeof taskId === "string" ? await session.resultOf(taskId) : undefined;
      if (answer === undefined || typeof taskId !== "string") return undefined;
      if (method === "tasks/cancel") await cancel(taskId, answer);
      else if (method === "tasks/update") await update(taskId, answer, params["inputResponses"]);
      const said = method === "tasks/get" ? await state(taskId, answer) : {};
      return resultMessage(id, { resultType: "complete", ...said });
    },
  };
}

const REPLY = {
  type: "object",
  properties: { reply: { type: "string", description: "The answer to the reviewer." } },
  required: ["reply"],
};

/** What the client's person or model answered, as a remark for the reviewer. */
function replyIn(response: JsonValue | undefined): string {
  const { action, content } = isJsonObject(response) ? response : {};
  if (action !== undefined && action !== "accept") return `The client said: ${String(action)}.`;
  const reply = isJsonObject(content) ? content["reply"] : undefined;
  return typeof reply === "string" && reply !== "" ? reply : JSON.stringify(content ?? response);
}
