// One client's conversation through the gateway. Everything passes as it is, except that calls of tools go through the gate,
// lists of tools are screened, and the client's folders stay with the client.

import { errorText } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { isJsonObject } from "../util/json.ts";
import { systemTimers } from "../util/timers.ts";
import type { UpstreamConfig } from "./config.ts";
import type { GatedCalls } from "./gated-calls.ts";
import { type HeaderOf, paramProblem } from "./http-headers.ts";
import {
  BadMessageError,
  CAPABILITIES_KEY,
  errorMessage,
  LARGEST_MESSAGE,
  type Message,
  type MessageId,
  metaOf,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
  RPC,
  readClientMessage,
  requestMessage,
  resultMessage,
  VERSION_KEY,
  withId,
  without,
  withoutCapabilities,
} from "./message.ts";
import { hiddenTextIn, MOST_TOOLS, type OfferedTools } from "./offered-tools.ts";
import {
  declaresTasks,
  isTaskMethod,
  offersTasks,
  tasksNotDeclared,
  unknownTask,
  withTasksOffered,
} from "./tasks.ts";
import type { Upstream } from "./upstream.ts";
import type { WireRequest } from "./wire.ts";

/** Where messages for the client go. Shape: push. */
export type Reply = (message: Message) => void;

export interface McpConversation {
  /** Takes one message of the client; resolves when it was answered. Never throws. */
  receive(given: string | Uint8Array, reply: Reply): Promise<void>;
  /** The same for a message that was read already. */
  handle(message: Message, reply: Reply, how?: Carriage): Promise<void>;
  close(): Promise<void>;
}

/** What is special about a message that came over HTTP. */
export interface Carriage extends Pick<WireRequest, "onStream" | "onPause"> {
  /** For a stateless request: aborted when its client hangs up. Its id is unique to that connection alone. */
  readonly gone?: AbortSignal;
  /** Headers that repeat arguments are compared with them. Shape: callback. */
  readonly header?: HeaderOf;
}

/** One request under way. */
interface Asking extends Carriage {
  readonly reply: Reply;
  readonly signal: AbortSignal;
}

export interface ConversationOptions {
  readonly config: readonly UpstreamConfig[];
  /** Parts of the protocol that do not pass, as capabilities name them: `roots`, `sampling`, `prompts`, … */
  readonly refused: readonly string[];
  /** Whether calls that wait are tasks for clients that understand them. */
  readonly offerTasks: boolean;
  readonly tools: OfferedTools;
  readonly calls: GatedCalls;
  /** Opens the connection to one upstream; what it says by itself goes to the second argument. */
  readonly open: (
    config: UpstreamConfig,
    events: { onMessage(message: Message): void; onReady(upstream: Upstream): void },
  ) => Upstream;
  /** For messages that answer nothing. Shape: push. */
  readonly client: Reply;
  /** For the operator. Shape: push. */
  readonly onProblem: (text: string) => void;
}

const MOST_PAGES = 100;
const LARGEST_LIST = 2 * LARGEST_MESSAGE;
/** How long a list may take that no client waits for: calls wait for it. */
const LIST_MS = 20_000;
/** Requests of upstreams that one client may have to answer. */
const MOST_ASKING = 1_000;

export function openConversation(options: ConversationOptions): McpConversation {
  const { config, refused, tools, calls, client, onProblem } = options;
  const underWay = new Map<MessageId | AbortController, { readonly stop: AbortController }>();
  /** Requests of upstreams that the client has not answered yet. */
  const asking = new Map<MessageId, { readonly upstream: Upstream; readonly id: MessageId }>();
  let lastAsked = 0;
  /** The stateless versions that the upstream has named. */
  let supported: JsonValue[] = [];
  let upstreamHasTasks = false;
  let listing: Promise<void> | undefined;
  const running = new Set<Promise<void>>();
  /** Ends what only waits; what is being executed is let finish. */
  const gone = new AbortController();

  const upstreams = config.map((one) => {
    const upstream: Upstream = options.open(one, {
      onMessage: (message) => fromUpstream(upstream, message, client),
      onReady: () => void list(),
    });
    return upstream;
  });
  const [first] = upstreams;
  const isOne = upstreams.length === 1;

  /** Reads the tools of every upstream, so that they are known before the client asks. */
  function list(): Promise<void> {
    listing = (async () => {
      for (const upstream of upstreams) {
        if (!upstream.isReady()) continue;
        try {
          tools.learn(upstream.name, await inTime(upstream));
        } catch (error) {
          onProblem(`${upstream.name}: its tools could not be listed: ${errorText(error)}`);
        }
      }
    })();
    return listing;
  }

  async function inTime(upstream: Upstream): Promise<readonly JsonValue[]> {
    const late = new AbortController();
    const text = `it took longer than ${LIST_MS} ms`;
    const stop = systemTimers.after(LIST_MS, () => late.abort(new Error(text)));
    try {
      return await allTools(upstream, AbortSignal.any([late.signal, gone.signal]));
    } finally {
      stop();
    }
  }

  function fromUpstream(upstream: Upstream, message: Message, reply: Reply): void {
    if (message.kind === "request") {
      askedByUpstream(upstream, message, reply);
      return;
    }
    if (isRefused(message)) return;
    if (message.kind === "notification" && message.method === LIST_CHANGED) void list();
    reply(message);
  }

  function askedByUpstream(upstream: Upstream, message: RequestMessage, reply: Reply): void {
    if (isRefused(message)) {
      upstream.send(errorMessage(message.id, RPC.unknownMethod, NOT_PASSED));
      return;
    }
    // Several upstreams count from the same number, and their client sees one server.
    lastAsked += 1;
    const id = isOne ? message.id : `${upstream.name}-${lastAsked}`;
    if (asking.has(id) || asking.size >= MOST_ASKING) {
      const text = "A request with this id is open, or too many are.";
      upstream.send(errorMessage(message.id, RPC.invalid, text));
      return;
    }
    asking.set(id, { upstream, id: message.id });
    reply(isOne ? message : requestMessage(id, message.method, message.params));
  }

  /** `sampling/createMessage` belongs to `sampling`, `notifications/prompts/list_changed` to `prompts`. */
  function isRefused(message: Message): boolean {
    if (message.kind === "response") return false;
    const [area = ""] = message.method
      .toLowerCase()
      .replace(/^notifications\//, "")
      .split("/");
    return refused.includes(area);
  }

  async function request(given: RequestMessage, reply: Reply, how: Carriage): Promise<void> {
    const stop = new AbortController();
    // Over one connection ids are unique; without a session each request has its own.
    const key: MessageId | AbortController = how.gone === undefined ? given.id : stop;
    if (underWay.has(key)) {
      return reply(errorMessage(given.id, RPC.invalid, "This id is in use. Choose another."));
    }
    underWay.set(key, { stop });
    try {
      const asked = withoutCapabilities(given, refused);
      const response = await answer(asked, { ...how, reply, signal: stop.signal });
      if (response !== undefined) reply(response);
    } catch (error) {
      if (stop.signal.aborted || how.gone?.aborted === true) return;
      reply(errorMessage(given.id, RPC.internal, errorText(error)));
    } finally {
      underWay.delete(key);
    }
  }

  async function answer(
    given: RequestMessage,
    asking: Asking,
  ): Promise<ResponseMessage | undefined> {
    const { id, method } = given;
    if (method === "tools/call") return callTool(given, asking);
    if (method === "tools/list") return listTools(given, asking);
    // No other method of this name exists; a server that reads names loosely must not find one.
    if (method.toLowerCase().startsWith("tools/")) {
      return errorMessage(id, RPC.unknownMethod, `There is no method ${JSON.stringify(method)}.`);
    }
    if (isRefused(given)) return errorMessage(id, RPC.unknownMethod, NOT_PASSED);
    if (first === undefined) throw new Error("there is no upstream");
    const unknown = asking.header === undefined ? undefined : unknownVersion(given);
    if (unknown !== undefined) return unknown;
    if (options.offerTasks && isTaskMethod(method)) return askAboutTask(given, first, asking);
    const answered = isOne
      ? await first.request(given, relatedTo(first, asking))
      : await severalUpstreams(given, asking);
    if (method === "initialize") return screened(answered);
    if (method !== "server/discover" || answered.result === undefined) return answered;
    const { supportedVersions } = answered.result;
    if (Array.isArray(supportedVersions)) supported = supportedVersions;
    upstreamHasTasks = isOne && offersTasks(answered);
    return screened(options.offerTasks ? withTasksOffered(answered) : answered);
  }

  /** What a server says about itself, without what does not pass, and without instructions that hide something from people. */
  function screened(response: ResponseMessage): ResponseMessage {
    const { result } = response;
    if (result === undefined) return response;
    const { instructions = "", capabilities } = result;
    const isAllowed = config.some(({ hiddenText }) => hiddenText === "allow");
    const hidden = isAllowed ? undefined : hiddenTextIn({ instructions });
    if (hidden !== undefined) onProblem(`the instructions of a server are left out: ${hidden}`);
    const claimed = isJsonObject(capabilities) ? Object.keys(capabilities) : [];
    const isPlain = !claimed.some((name) => refused.includes(name));
    if (hidden === undefined && isPlain) return response;
    const next = hidden === undefined ? { ...result } : without(result, ["instructions"]);
    if (isJsonObject(capabilities)) next["capabilities"] = without(capabilities, refused);
    return { ...response, ...resultMessage(response.id, next) };
  }

  /** A task is a call that waits here, or one that the upstream promised. */
  async function askAboutTask(
    given: RequestMessage,
    upstream: Upstream,
    asking: Asking,
  ): Promise<ResponseMessage> {
    if (!declaresTasks(given)) return tasksNotDeclared(given.id);
    const own = await calls.task(given);
    if (own !== undefined) return own;
    if (!upstreamHasTasks) return unknownTask(given.id);
    return upstream.request(given, relatedTo(upstream, asking));
  }

  /** Over HTTP a version that nobody speaks is an error of its own, and not every server behind the gateway says so. */
  function unknownVersion(given: RequestMessage): ResponseMessage | undefined {
    const requested = metaOf(given)[VERSION_KEY] ?? "";
    if (supported.length === 0 || supported.includes(requested)) return undefined;
    const text = `The version ${JSON.stringify(requested)} is not supported.`;
    return errorMessage(given.id, RPC.unsupportedVersion, text, { supported, requested });
  }

  function relatedTo(upstream: Upstream, asking: Asking): WireRequest {
    const { reply, signal, gone, onStream, onPause } = asking;
    return {
      signal: gone === undefined ? signal : AbortSignal.any([signal, gone]),
      related: (message) => fromUpstream(upstream, message, reply),
      onStream,
      onPause,
    };
  }

  async function callTool(
    given: RequestMessage,
    asking: Asking,
  ): Promise<ResponseMessage | undefined> {
    const { name, arguments: input = {}, inputResponses, requestState } = given.params;
    if (typeof name !== "string" || !isJsonObject(input)) {
      const text = "tools/call needs a name and arguments as an object.";
      return errorMessage(given.id, RPC.invalidParams, text);
    }
    await listing;
    if (tools.find(name, input) === undefined) {
      for (const upstream of upstreams) upstream.greet(given);
      await list();
    }
    const tool = tools.find(name, input);
    const upstream = upstreams.find((one) => one.name === tool?.upstream);
    if (tool === undefined || upstream === undefined) {
      const text = `There is no tool ${JSON.stringify(name.slice(0, 200))}.`;
      return errorMessage(given.id, RPC.invalidParams, text);
    }
    const asTask = options.offerTasks && declaresTasks(given);
    if (tool.needsTask && !asTask) return tasksNotDeclared(given.id);
    const isContinued = inputResponses !== undefined || requestState !== undefined;
    if (isContinued && !tool.isRead) {
      return resultMessage(given.id, {
        resultType: "complete",
        isError: true,
        content: [{ type: "text", text: NOT_CONTINUED }],
      });
    }
    const { signal, header } = asking;
    const wrong = header && paramProblem(given, tool.headerParams, input, header);
    if (wrong !== undefined) return wrong;
    const { related, onStream, onPause } = relatedTo(upstream, asking);
    const wire = { related, onStream, onPause };
    const left = [signal, gone.signal, ...(asking.gone === undefined ? [] : [asking.gone])];
    const hold = AbortSignal.any(left);
    return calls.call({ request: given, tool, input, upstream, wire, asTask, signal, hold });
  }

  async function listTools(given: RequestMessage, asking: Asking): Promise<ResponseMessage> {
    if (first === undefined) throw new Error("there is no upstream");
    if (!isOne) {
      const found: JsonObject[] = [];
      for (const upstream of upstreams) {
        upstream.greet(given);
        found.push(...tools.learn(upstream.name, await allTools(upstream, asking.signal)));
      }
      return resultMessage(given.id, withKind(given, { tools: found }));
    }
    const response = await first.request(given, relatedTo(first, asking));
    const listed = response.result?.["tools"];
    if (response.result === undefined || !Array.isArray(listed)) return response;
    const offered = tools.learn(first.name, listed);
    const isSame =
      offered.length === listed.length && offered.every((one, index) => one === listed[index]);
    return isSame ? response : resultMessage(given.id, { ...response.result, tools: [...offered] });
  }

  /** Behind several upstreams there are tools alone: nothing else says which of them is meant. */
  async function severalUpstreams(given: RequestMessage, asking: Asking): Promise<ResponseMessage> {
    const { id, method } = given;
    if (method === "ping") return resultMessage(id, {});
    if (method !== "initialize" && method !== "server/discover") {
      const text = "Behind several upstreams the gateway offers tools alone.";
      return errorMessage(id, RPC.unknownMethod, text);
    }
    const answers = await Promise.all(
      upstreams.map((one) => one.request(given, relatedTo(one, asking))),
    );
    const failed = answers.find(({ error }) => error !== undefined);
    if (failed !== undefined) return failed;
    const results = answers.map(({ result = {} }) => result);
    const versions = new Set(results.map((result) => JSON.stringify(result["protocolVersion"])));
    if (versions.size > 1) {
      const text = "The upstreams speak different versions of the protocol. Ask for an older one.";
      return errorMessage(id, RPC.internal, text);
    }
    const common = results
      .map((result) => result["supportedVersions"])
      .filter((list) => Array.isArray(list))
      .reduce<JsonValue[] | undefined>(
        (left, list) => left?.filter((one) => list.includes(one)) ?? list,
        undefined,
      );
    return resultMessage(id, {
      ...results[0],
      ...(common === undefined ? {} : { supportedVersions: common }),
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "sallyport", version: "0.1.0" },
    });
  }

  function notification(message: NotificationMessage): void {
    const { method, params } = message;
    if (isRefused(message)) return;
    if (method === "notifications/cancelled") {
      const { requestId } = params;
      const known = isId(requestId) ? underWay.get(requestId) : undefined;
      // Aborting it also tells the upstream, if the request is there.
      known?.stop.abort(new Error("the client cancelled the request"));
      return;
    }
    for (const upstream of upstreams) upstream.send(message);
  }

  function response(message: ResponseMessage): void {
    const asked = asking.get(message.id);
    asking.delete(message.id);
    asked?.upstream.send(withId(message, asked.id));
  }

  async function handle(message: Message, reply: Reply, how: Carriage): Promise<void> {
    if (message.kind === "request") return request(message, reply, how);
    if (message.kind === "notification") return notification(message);
    response(message);
  }

  function tracked(work: Promise<void>): Promise<void> {
    const taken = work.finally(() => running.delete(taken));
    running.add(taken);
    return taken;
  }

  return {
    async receive(given, reply) {
      let message: Message;
      try {
        message = readClientMessage(given);
      } catch (error) {
        const code = error instanceof BadMessageError ? error.code : RPC.internal;
        return reply(errorMessage(null, code, errorText(error)));
      }
      return tracked(handle(message, reply, {}));
    },
    handle: (message, reply, how = {}) => tracked(handle(message, reply, how)),
    async close() {
      gone.abort();
      const finished = Promise.all(running);
      await Promise.race([finished, patience(FINISH_MS)]);
      for (const { stop } of underWay.values()) stop.abort(new Error("the client is gone"));
      await finished;
      await Promise.all(upstreams.map((upstream) => upstream.close()));
    },
  };
}

/** How long calls that are being executed may take after their client is gone. */
const FINISH_MS = 5_000;

function patience(ms: number): Promise<void> {
  return new Promise((resolve) => void systemTimers.after(ms, resolve));
}

const LIST_CHANGED = "notifications/tools/list_changed";
const NOT_PASSED = "The gateway does not pass this on.";
const NOT_CONTINUED =
  "Not executed: the tool asks for more input in the middle of a call, and a call that people approve cannot be continued. Ask the operator to allow this tool, or use another one.";

function isId(value: JsonValue | undefined): value is MessageId {
  return typeof value === "string" || typeof value === "number";
}

function withKind(request: RequestMessage, result: JsonObject): JsonObject {
  const meta = request.params["_meta"];
  return isJsonObject(meta) && CAPABILITIES_KEY in meta
    ? { resultType: "complete", ttlMs: 0, cacheScope: "private", ...result }
    : result;
}

/** All pages of an upstream's list. */
async function allTools(upstream: Upstream, signal?: AbortSignal): Promise<readonly JsonValue[]> {
  const found: JsonValue[] = [];
  let cursor: JsonValue | undefined;
  let size = 0;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const params: JsonObject = cursor === undefined ? {} : { cursor };
    const { raw, result, error } = await upstream.ask("tools/list", params, { signal });
    size += raw.length;
    if (size > LARGEST_LIST) throw new Error(`the list is larger than ${LARGEST_LIST} characters`);
    if (result === undefined) throw new Error(String(error?.["message"] ?? "it refused"));
    if (Array.isArray(result["tools"])) found.push(...result["tools"]);
    cursor = result["nextCursor"];
    if (typeof cursor !== "string" || found.length > MOST_TOOLS) break;
  }
  return found;
}
