// An upstream server over Streamable HTTP, in both eras: with a session and a stream of its own messages, or stateless. One
// POST per message; the answer is one message or a stream of them.

import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { errorText } from "../util/error-text.ts";
import { systemTimers } from "../util/timers.ts";
import { headersOf } from "./http-headers.ts";
import {
  errorMessage,
  isStateless,
  LARGEST_MESSAGE,
  type Message,
  type RequestMessage,
  type ResponseMessage,
  RPC,
  readUpstreamMessage,
  withId,
} from "./message.ts";
import { readEvents } from "./sse.ts";
import { UpstreamGoneError, type Wire, type WireEvents, type WireRequest } from "./wire.ts";

export interface HttpPlace {
  readonly url: string;
  /** Sent with every request, for instance a token. */
  readonly headers?: Readonly<Record<string, string>>;
}

const ACCEPTED = "application/json, text/event-stream";
const RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
/** How often a stream that broke is continued without anything new in it. */
const MOST_RETRIES = 5;
/** How long the goodbye to a session may take. */
const GOODBYE_MS = 2_000;

export function openHttpWire(place: HttpPlace, events: WireEvents): Wire {
  const url = new URL(place.url);
  const isSecure = url.protocol === "https:";
  const agent = isSecure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
  const stop = new AbortController();
  let session: string | undefined;
  let version: string | undefined;
  let over: string | undefined;
  /** Messages without an answer are in order with the requests after them. */
  let sending: Promise<void> = Promise.resolve();

  function end(reason: string): void {
    if (over !== undefined) return;
    over = reason;
    stop.abort(new UpstreamGoneError(reason));
    agent.destroy();
    events.onEnd(reason);
  }

  function ask(
    method: "POST" | "GET" | "DELETE",
    headers: Readonly<Record<string, string>>,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const own: Record<string, string> = {
      ...place.headers,
      ...(session === undefined ? {} : { "mcp-session-id": session }),
      ...(version === undefined ? {} : { "mcp-protocol-version": version }),
      ...headers,
    };
    if (body !== undefined) {
      own["content-type"] = "application/json";
      own["content-length"] = String(Buffer.byteLength(body));
    }
    return new Promise((resolve, reject) => {
      const send = isSecure ? httpsRequest : httpRequest;
      const sent = send(url, { method, headers: own, agent, signal }, resolve);
      sent.on("error", reject);
      sent.end(body);
    });
  }

  /** Reads what came; a broken message is reported and left out. */
  function messageIn(text: string): Message | undefined {
    try {
      return readUpstreamMessage(text);
    } catch (error) {
      events.onProblem(`dropped a message: ${errorText(error)}`);
      return undefined;
    }
  }

  function other(message: Message, related: WireRequest["related"]): void {
    if (message.kind === "response") {
      events.onProblem("dropped a response to a request that was not sent");
    } else if (related === undefined) events.onMessage(message);
    else related(message);
  }

  /** The messages of a stream until the wanted response; a stream that ends early is continued where it was. */
  async function fromStream(
    first: IncomingMessage,
    wanted: RequestMessage | undefined,
    { related, onPause }: WireRequest,
    signal: AbortSignal,
  ): Promise<ResponseMessage | undefined> {
    let response = first;
    let lastId: string | undefined;
    let retryMs = RETRY_MS;
    for (let tries = 0; tries < MOST_RETRIES; tries += 1) {
      try {
        for await (const event of readEvents(response)) {
          retryMs = Math.min(LONGEST_RETRY_MS, event.retryMs ?? retryMs);
          if (event.id !== undefined) lastId = event.id;
          if (event.data.trim() === "") continue;
          tries = 0;
          const message = messageIn(event.data);
          if (message === undefined) continue;
          const isAnswer = message.kind === "response" && message.id === wanted?.id;
          if (isAnswer) {
            response.destroy();
            return message;
          }
          other(message, related);
          await events.ready?.();
        }
      } catch (error) {
        if (signal.aborted) throw error;
        events.onProblem(`a stream broke: ${errorText(error)}`);
      }
      // Only a session remembers what was in a stream.
      if (session === undefined || (wanted !== undefined && lastId === undefined)) return undefined;
      onPause?.();
      await systemTimers.sleep(retryMs, signal);
      const place = lastId === undefined ? {} : { "last-event-id": lastId };
      response = await ask("GET", { accept: "text/event-stream", ...place }, undefined, signal);
      if (response.statusCode !== 200) {
        response.resume();
        return undefined;
      }
    }
    return undefined;
  }

  /** What the upstream says by itself, where it offers such a stream. */
  async function listen(): Promise<void> {
    try {
      const opened = await ask("GET", { accept: "text/event-stream" }, undefined, stop.signal);
      if (opened.statusCode !== 200) {
        opened.resume();
        return;
      }
      await fromStream(opened, undefined, {}, stop.signal);
      if (over === undefined) events.onProblem("its own messages do not arrive any more");
    } catch (error) {
      if (over === undefined) {
        events.onProblem(`its own messages do not arrive: ${errorText(error)}`);
      }
    }
  }

  async function responseIn(
    request: RequestMessage,
    response: IncomingMessage,
    options: WireRequest,
    signal: AbortSignal,
  ): Promise<ResponseMessage> {
    const status = response.statusCode ?? 0;
    const type = String(response.headers["content-type"] ?? "");
    if (status === 200 && type.startsWith("text/event-stream")) {
      options.onStream?.();
      const answer = await fromStream(response, request, options, signal);
      if (answer !== undefined) return answer;
      throw new UpstreamGoneError("its stream ended before the answer");
    }
    const text = await textOf(response);
    if (status === 404 && session !== undefined && request.method !== "initialize") {
      end("its session is over");
      return errorMessage(request.id, RPC.internal, "Not executed: the session is over.");
    }
    const isJson = type.startsWith("application/json");
    const message = isJson ? messageIn(status < 400 ? text : withAnyId(text)) : undefined;
    if (message?.kind === "response" && (message.id === request.id || message.id === NO_ID)) {
      return { ...withId(message, request.id), status };
    }
    if (status >= 400 && status < 500) {
      const refused = `Not executed: the upstream refused the request with status ${status}.`;
      return errorMessage(request.id, RPC.internal, refused);
    }
    throw new UpstreamGoneError(`it answered with status ${status} and no message`);
  }

  function learn(request: RequestMessage, answer: ResponseMessage, from: IncomingMessage): void {
    if (request.method !== "initialize" || answer.result === undefined) return;
    const id = from.headers["mcp-session-id"];
    session = typeof id === "string" ? id : undefined;
    const { protocolVersion } = answer.result;
    version = typeof protocolVersion === "string" ? protocolVersion : undefined;
  }

  return {
    async request(request, options = {}) {
      if (over !== undefined) throw new UpstreamGoneError(over);
      const signal = AbortSignal.any([stop.signal, ...(options.signal ? [options.signal] : [])]);
      await sending;
      const headers = { accept: ACCEPTED, ...headersOf(request), ...options.headers };
      try {
        const response = await ask("POST", headers, request.raw, signal);
        const answer = await responseIn(request, response, options, signal);
        learn(request, answer, response);
        return answer;
      } catch (error) {
        if (options.signal?.aborted === true) {
          cancel(request);
          throw options.signal.reason;
        }
        if (wasNotSent(error)) {
          const text = `Not executed: the upstream cannot be reached (${errorText(error)}).`;
          return errorMessage(request.id, RPC.internal, text);
        }
        throw error instanceof UpstreamGoneError ? error : new UpstreamGoneError(errorText(error));
      }
    },
    send,
    async close() {
      const farewell = session;
      over ??= "the gateway closed it";
      if (farewell !== undefined) {
        const patience = new AbortController();
        const giveUp = systemTimers.after(GOODBYE_MS, () => patience.abort());
        const said = ask("DELETE", {}, undefined, patience.signal).then(textOf);
        // A server that is gone has no session to end.
        await said.catch(() => {});
        giveUp();
      }
      stop.abort(new UpstreamGoneError(over));
      agent.destroy();
    },
  };

  /** Without a session, closing the connection says so. */
  function cancel({ id, ...request }: RequestMessage): void {
    if (isStateless(request)) return;
    const params = { requestId: id };
    const raw = JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    send({ kind: "notification", method: "notifications/cancelled", params, raw });
  }

  function send(message: Parameters<Wire["send"]>[0]): void {
    if (over !== undefined) return;
    const headers = { accept: ACCEPTED };
    sending = sending.then(async () => {
      try {
        const response = await ask("POST", headers, message.raw, stop.signal);
        await textOf(response);
        const status = response.statusCode ?? 0;
        if (status >= 400) events.onProblem(`it refused a message with status ${status}`);
        const isReady = message.kind === "notification" && message.method.endsWith("/initialized");
        if (isReady && session !== undefined) void listen();
      } catch (error) {
        if (over === undefined) events.onProblem(`a message was not sent: ${errorText(error)}`);
      }
    });
  }
}

/** Stands for the missing id of an error that is about a whole request. */
const NO_ID = "";

/** Servers answer a request that they cannot read with `"id": null`; over HTTP it is clear which one is meant. */
function withAnyId(text: string): string {
  try {
    const value = JSON.parse(text);
    const isOpen = typeof value === "object" && value !== null && value.error !== undefined;
    return isOpen && (value.id ?? null) === null ? JSON.stringify({ ...value, id: NO_ID }) : text;
  } catch {
    return text;
  }
}

/** Nothing can have happened at an address that nobody listens on. */
function wasNotSent(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EAI_AGAIN";
}

async function textOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response) {
    pieces.push(piece as Buffer);
    size += (piece as Buffer).length;
    if (size > LARGEST_MESSAGE) {
      response.destroy();
      throw new Error(`the answer is larger than ${LARGEST_MESSAGE} bytes`);
    }
  }
  return Buffer.concat(pieces).toString("utf8");
}
