// An upstream server as a child process: one JSON-RPC message per line of its standard input and output.

import { type ChildProcess, spawn } from "node:child_process";
import { errorText } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { systemTimers } from "../util/timers.ts";
import {
  isStateless,
  LARGEST_MESSAGE,
  type Message,
  type MessageId,
  metaOf,
  notificationMessage,
  type RequestMessage,
  type ResponseMessage,
  readUpstreamMessage,
  requestMessage,
  withId,
} from "./message.ts";
import { UpstreamGoneError, type Wire, type WireEvents, type WireRequest } from "./wire.ts";

export interface StdioPlace {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

interface Waiting {
  readonly resolve: (response: ResponseMessage) => void;
  readonly reject: (error: Error) => void;
}

/** How long a server has to end by itself after its input was closed, and again after a polite signal. */
const PATIENCE_MS = 2_000;

export function openStdioWire(place: StdioPlace, events: WireEvents): Wire {
  const child = spawn(place.command, [...place.args], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...withoutOwnSecrets(process.env), ...place.env },
    ...(place.cwd === undefined ? {} : { cwd: place.cwd }),
  });
  const waiting = new Map<MessageId, Waiting>();
  let over: string | undefined;

  function end(reason: string): void {
    if (over !== undefined) return;
    over = reason;
    for (const { reject } of waiting.values()) reject(new UpstreamGoneError(reason));
    waiting.clear();
    events.onEnd(reason);
  }

  function take(line: string): void {
    let message: Message;
    try {
      message = readUpstreamMessage(line);
    } catch (error) {
      events.onProblem(`dropped a line: ${errorText(error)}`);
      return;
    }
    if (message.kind !== "response") {
      events.onMessage(message);
      return;
    }
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (asked === undefined) events.onProblem("dropped a response to a request that was not sent");
    else asked.resolve(message);
  }

  const ended = new Promise<void>((resolve) => {
    child.once("error", (error) => {
      end(`it could not be started: ${errorText(error)}`);
      resolve();
    });
    child.once("close", (code, signal) => {
      end(`it ended (${signal ?? `exit code ${code}`})`);
      resolve();
    });
  });
  // A broken pipe is reported by the end of the process.
  child.stdin.on("error", () => {});
  void readLines(child, take, events).catch((error) => {
    events.onProblem(errorText(error));
    child.kill("SIGKILL");
  });

  return {
    request(request, { signal, onStream }: WireRequest = {}) {
      // What it says in between has no place of its own, so a client over HTTP gets a stream from the beginning.
      if (!isStateless(request)) onStream?.();
      if (over !== undefined) return Promise.reject(new UpstreamGoneError(over));
      if (waiting.has(request.id)) {
        return Promise.reject(new Error("a request with this id is under way"));
      }
      return new Promise<ResponseMessage>((resolve, reject) => {
        const abort = () => {
          if (!waiting.delete(request.id)) return;
          write(child, cancelled(request).raw);
          reject(signal?.reason);
        };
        const done = <Given>(settle: (given: Given) => void) => {
          return (given: Given) => {
            signal?.removeEventListener("abort", abort);
            settle(given);
          };
        };
        if (signal?.aborted === true) return reject(signal.reason);
        signal?.addEventListener("abort", abort, { once: true });
        waiting.set(request.id, { resolve: done(resolve), reject: done(reject) });
        write(child, request.raw);
      });
    },
    send(message) {
      if (over === undefined) write(child, message.raw);
    },
    async close() {
      child.stdin.end();
      const inTime = () =>
        Promise.race([ended.then(() => true), systemTimers.sleep(PATIENCE_MS).then(() => false)]);
      if (over !== undefined || (await inTime())) return;
      child.kill("SIGTERM");
      if (!(await inTime())) child.kill("SIGKILL");
      await ended;
    },
  };
}

/**
 * The same for several stateless clients at once: their ids, progress tokens and subscriptions may be equal, so each
 * request gets an id of its own, by which everything that belongs to it finds its client.
 */
export function openSharedStdioWire(place: StdioPlace, events: WireEvents): Wire {
  const open = new Map<MessageId, Shared>();
  let last = 0;
  const wire = openStdioWire(place, {
    ...events,
    onMessage(message) {
      const shared = open.get(ownIdIn(message) ?? "");
      if (shared === undefined) return events.onMessage(message);
      shared.related?.(restored(message, shared));
    },
  });
  return {
    ...wire,
    async request(request, options = {}) {
      last += 1;
      const own = `shared-${last}`;
      const meta = metaOf(request);
      const token = meta["progressToken"];
      const params =
        token === undefined
          ? request.params
          : { ...request.params, _meta: { ...meta, progressToken: own } };
      open.set(own, { id: request.id, token, related: options.related });
      try {
        const answer = await wire.request(requestMessage(own, request.method, params), options);
        return withId(answer, request.id);
      } finally {
        open.delete(own);
      }
    },
  };
}

interface Shared {
  readonly id: MessageId;
  readonly token: JsonValue | undefined;
  readonly related: WireRequest["related"];
}

const SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId";

/** The id of the request that a notification belongs to. */
function ownIdIn(message: Message): string | undefined {
  if (message.kind !== "notification") return undefined;
  const { progressToken } = message.params;
  const subscription = metaOf(message)[SUBSCRIPTION_KEY];
  return [progressToken, subscription].find((one) => typeof one === "string");
}

function restored(message: Message, { id, token }: Shared): Message {
  if (message.kind !== "notification") return message;
  const { params } = message;
  const meta = metaOf(message);
  const next: JsonObject = { ...params };
  if ("progressToken" in params && token !== undefined) next["progressToken"] = token;
  if (SUBSCRIPTION_KEY in meta) next["_meta"] = { ...meta, [SUBSCRIPTION_KEY]: id };
  return notificationMessage(message.method, next);
}

function cancelled({ id }: RequestMessage) {
  return notificationMessage("notifications/cancelled", { requestId: id });
}

function write(child: ChildProcess, raw: string): void {
  child.stdin?.write(`${raw}\n`);
}

/** Own settings hold tokens, which no upstream may see. */
function withoutOwnSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^SALLYPORT_/i.test(name)));
}

async function readLines(
  child: ChildProcess,
  take: (line: string) => void,
  events: WireEvents,
): Promise<void> {
  const decoder = new TextDecoder();
  // Only what is new is searched for the end of a line, so that a long one costs no more than its length.
  let begun: string[] = [];
  let length = 0;
  for await (const piece of child.stdout ?? []) {
    const [first = "", ...more] = decoder.decode(piece as Uint8Array, { stream: true }).split("\n");
    begun.push(first);
    length += first.length;
    for (const next of more) {
      const line = begun.join("");
      begun = [next];
      length = next.length;
      if (line.trim() !== "") take(line);
    }
    if (length > LARGEST_MESSAGE) {
      throw new Error(`ended it: a line is longer than ${LARGEST_MESSAGE} characters`);
    }
    await events.ready?.();
  }
}
