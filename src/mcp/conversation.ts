// One client's conversation through the gateway. Everything passes as it is, except that calls of tools go through the gate,
// lists of tools are screened, and the client's folders stay with the client.

import { errorText } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { isJsonObject } from "../util/json.ts";
import { systemTimers } from "../util/timers.ts";
import type { UpstreamConfig } from "./config.ts";
import type { GatedCalls } from "./gated-calls.ts";
import {
  BadMessageError,
  CAPABILITIES_KEY,
  errorMessage,
  type Message,
  type MessageId,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
  RPC,
  readClientMessage,
  resultMessage,
} from "./message.ts";
import type { OfferedTools } from "./offered-tools.ts";
import { OWN_ID, type Upstream } from "./upstream.ts";

/** Where messages for the client go. Shape: push. */
export type Reply = (message: Message) => void;

export interface McpConversation {
  /** Takes one message of the client; resolves when it was answered. Never throws. */
  receive(given: string | Uint8Array, reply: Reply): Promise<void>;
  close(): Promise<void>;
}

export interface ConversationOptions {
  readonly config: readonly UpstreamConfig[];
  readonly roots: "allow" | "refuse";
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
/** Requests of upstreams that one client may have to answer. */
const MOST_ASKING = 1_000;

export function openConversation(options: ConversationOptions): McpConversation {
  const { config, roots, tools, calls, client, onProblem } = options;
  const underWay = new Map<MessageId, { readonly stop: AbortController }>();
  /** Requests of upstreams that the client has not answered yet. */
  const asking = new Map<MessageId, Upstream>();
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
          tools.learn(upstream.name, await allTools(upstream));
        } catch (error) {
          onProblem(`${upstream.name}: its tools could not be listed: ${errorText(error)}`);
        }
      }
    })();
    return listing;
  }

  function fromUpstream(upstream: Upstream, message: Message, reply: Reply): void {
    if (message.kind === "request") {
      if (message.method === "roots/list" && roots === "refuse") {
        upstream.send(errorMessage(message.id, RPC.unknownMethod, NO_ROOTS));
        return;
      }
      if (asking.has(message.id) || asking.size >= MOST_ASKING) {
        const text = "A request with this id is open, or too many are.";
        upstream.send(errorMessage(message.id, RPC.invalid, text));
        return;
      }
      asking.set(message.id, upstream);
    }
    if (message.kind === "notification" && message.method === LIST_CHANGED) void list();
    reply(message);
  }

  async function request(given: RequestMessage, reply: Reply): Promise<void> {
    if (underWay.has(given.id) || String(given.id).startsWith(OWN_ID)) {
      return reply(errorMessage(given.id, RPC.invalid, "This id is in use. Choose another."));
    }
    const stop = new AbortController();
    underWay.set(given.id, { stop });
    try {
      const response = await answer(withoutRoots(given, roots), reply, stop.signal);
      if (response !== undefined) reply(response);
    } catch (error) {
      if (stop.signal.aborted) return;
      reply(errorMessage(given.id, RPC.internal, errorText(error)));
    } finally {
      underWay.delete(given.id);
    }
  }

  async function answer(
    given: RequestMessage,
    reply: Reply,
    signal: AbortSignal,
  ): Promise<ResponseMessage | undefined> {
    const { id, method } = given;
    if (method === "tools/call") return callTool(given, reply, signal);
    if (method === "tools/list") return listTools(given, reply, signal);
    // No other method of this name exists; a server that reads names loosely must not find one.
    if (method.toLowerCase().startsWith("tools/")) {
      return errorMessage(id, RPC.unknownMethod, `There is no method ${JSON.stringify(method)}.`);
    }
    if (first === undefined) throw new Error("there is no upstream");
    if (isOne) return first.request(given, relatedTo(first, reply, signal));
    return severalUpstreams(given, reply, signal);
  }

  function relatedTo(upstream: Upstream, reply: Reply, signal: AbortSignal) {
    return { signal, related: (message: Message) => fromUpstream(upstream, message, reply) };
  }

  async function callTool(
    given: RequestMessage,
    reply: Reply,
    signal: AbortSignal,
  ): Promise<ResponseMessage | undefined> {
    const { name, arguments: input = {}, inputResponses, requestState } = given.params;
    if (typeof name !== "string" || !isJsonObject(input)) {
      const text = "tools/call needs a name and arguments as an object.";
      return errorMessage(given.id, RPC.invalidParams, text);
    }
    await listing;
    if (tools.find(name) === undefined) await list();
    const tool = tools.find(name);
    const upstream = upstreams.find((one) => one.name === tool?.upstream);
    if (tool === undefined || upstream === undefined) {
      const text = `There is no tool ${JSON.stringify(name.slice(0, 200))}.`;
      return errorMessage(given.id, RPC.invalidParams, text);
    }
    const isContinued = inputResponses !== undefined || requestState !== undefined;
    if (isContinued && !tool.isRead) {
      return resultMessage(given.id, {
        resultType: "complete",
        isError: true,
        content: [{ type: "text", text: NOT_CONTINUED }],
      });
    }
    const { related } = relatedTo(upstream, reply, signal);
    const hold = AbortSignal.any([signal, gone.signal]);
    return calls.call({ request: given, tool, input, upstream, related, signal, hold });
  }

  async function listTools(
    given: RequestMessage,
    reply: Reply,
    signal: AbortSignal,
  ): Promise<ResponseMessage> {
    if (first === undefined) throw new Error("there is no upstream");
    if (!isOne) {
      const found: JsonObject[] = [];
      for (const upstream of upstreams) {
        found.push(...tools.learn(upstream.name, await allTools(upstream, signal)));
      }
      return resultMessage(given.id, withKind(given, { tools: found }));
    }
    const response = await first.request(given, relatedTo(first, reply, signal));
    const listed = response.result?.["tools"];
    if (response.result === undefined || !Array.isArray(listed)) return response;
    const offered = tools.learn(first.name, listed);
    const isSame =
      offered.length === listed.length && offered.every((one, index) => one === listed[index]);
    return isSame ? response : resultMessage(given.id, { ...response.result, tools: [...offered] });
  }

  /** Behind several upstreams there are tools alone: nothing else says which of them is meant. */
  async function severalUpstreams(
    given: RequestMessage,
    reply: Reply,
    signal: AbortSignal,
  ): Promise<ResponseMessage> {
    const { id, method } = given;
    if (method === "ping") return resultMessage(id, {});
    if (method !== "initialize" && method !== "server/discover") {
      const text = "Behind several upstreams the gateway offers tools alone.";
      return errorMessage(id, RPC.unknownMethod, text);
    }
    const answers = await Promise.all(
      upstreams.map((one) => one.request(given, relatedTo(one, reply, signal))),
    );
    const failed = answers.find(({ error }) => error !== undefined);
    if (failed !== undefined) return failed;
    const results = answers.map(({ result = {} }) => result);
    const versions = new Set(results.map((result) => JSON.stringify(result["protocolVersion"])));
    if (versions.size > 1) {
      const text = "The upstreams speak different versions of the protocol. Ask for an older one.";
      return errorMessage(id, RPC.internal, text);
    }
    return resultMessage(id, {
      ...results[0],
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "sallyport", version: "0.1.0" },
    });
  }

  function notification(message: NotificationMessage): void {
    const { method, params } = message;
    if (method === "notifications/roots/list_changed" && roots === "refuse") return;
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
    const upstream = asking.get(message.id);
    asking.delete(message.id);
    upstream?.send(message);
  }

  async function take(given: string | Uint8Array, reply: Reply): Promise<void> {
    let message: Message;
    try {
      message = readClientMessage(given);
    } catch (error) {
      const code = error instanceof BadMessageError ? error.code : RPC.internal;
      return reply(errorMessage(null, code, errorText(error)));
    }
    if (message.kind === "request") return request(message, reply);
    if (message.kind === "notification") return notification(message);
    response(message);
  }

  return {
    receive(given, reply) {
      const taken = take(given, reply).finally(() => running.delete(taken));
      running.add(taken);
      return taken;
    },
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
const NO_ROOTS = "The gateway does not pass on the client's folders.";
const NOT_CONTINUED =
  "Not executed: the tool asks for more input in the middle of a call, and a call that people approve cannot be continued. Ask the operator to allow this tool, or use another one.";

function isId(value: JsonValue | undefined): value is MessageId {
  return typeof value === "string" || typeof value === "number";
}

function withKind(request: RequestMessage, result: JsonObject): JsonObject {
  const meta = request.params["_meta"];
  return isJsonObject(meta) && CAPABILITIES_KEY in meta
    ? { resultType: "complete", ...result }
    : result;
}

/** All pages of an upstream's list. */
async function allTools(upstream: Upstream, signal?: AbortSignal): Promise<readonly JsonValue[]> {
  const found: JsonValue[] = [];
  let cursor: JsonValue | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const params: JsonObject = cursor === undefined ? {} : { cursor };
    const { result, error } = await upstream.ask("tools/list", params, { signal });
    if (result === undefined) throw new Error(String(error?.["message"] ?? "it refused"));
    if (Array.isArray(result["tools"])) found.push(...result["tools"]);
    cursor = result["nextCursor"];
    if (typeof cursor !== "string") break;
  }
  return found;
}

/** The request without the claim that the client has folders to offer, in both eras of the protocol. */
function withoutRoots(request: RequestMessage, roots: "allow" | "refuse"): RequestMessage {
  if (roots === "allow") return request;
  const { params } = request;
  const meta = params["_meta"];
  const inMeta = isJsonObject(meta) ? meta[CAPABILITIES_KEY] : undefined;
  const inParams = request.method === "initialize" ? params["capabilities"] : undefined;
  if (!hasRoots(inMeta) && !hasRoots(inParams)) return request;
  const next: JsonObject = { ...params };
  if (hasRoots(inParams)) next["capabilities"] = without(inParams);
  if (hasRoots(inMeta) && isJsonObject(meta)) {
    next["_meta"] = { ...meta, [CAPABILITIES_KEY]: without(inMeta) };
  }
  const { id, method } = request;
  return {
    ...request,
    params: next,
    raw: JSON.stringify({ jsonrpc: "2.0", id, method, params: next }),
  };
}

function hasRoots(capabilities: JsonValue | undefined): capabilities is JsonObject {
  return isJsonObject(capabilities) && Object.hasOwn(capabilities, "roots");
}

function without({ roots: _, ...rest }: JsonObject): JsonObject {
  return rest;
}
