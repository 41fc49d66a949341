// One conversation with an upstream: opens its connection, repeats the handshake when it has to be opened again, and keeps
// the ids of the gateway's own requests apart from those of the client.

import { errorText } from "../util/error-text.ts";
import type { JsonObject } from "../util/json.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers } from "../util/timers.ts";
import {
  CAPABILITIES_KEY,
  isStateless,
  type MessageId,
  metaOf,
  type NotificationMessage,
  notificationMessage,
  type RequestMessage,
  type ResponseMessage,
  requestMessage,
  VERSION_KEY,
} from "./message.ts";
import { UpstreamGoneError, type Wire, type WireEvents, type WireRequest } from "./wire.ts";

export interface Upstream {
  readonly name: string;
  request(request: RequestMessage, options?: WireRequest): Promise<ResponseMessage>;
  /** A request of the gateway itself. */
  ask(method: string, params: JsonObject, options?: WireRequest): Promise<ResponseMessage>;
  send(message: NotificationMessage | ResponseMessage): void;
  /** Learns from a request of the stateless era how to ask: there is no handshake that would make the upstream ready. */
  greet(request: RequestMessage): void;
  /** How its client introduced itself; undefined before it did. */
  introduction(): Introduction | undefined;
  /** True once the upstream can be asked: after the handshake, or after a request that needed none. */
  isReady(): boolean;
  close(): Promise<void>;
}

/** What an upstream must know of whoever asks it: the handshake, or what each stateless request carries. */
export type Introduction = { readonly handshake: JsonObject } | { readonly meta: JsonObject };

export interface UpstreamEvents extends WireEvents {
  /** The connection is ready, for the first time or again. Shape: push. */
  onReady(): void;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 10_000;

export function openUpstream(
  name: string,
  open: (events: WireEvents) => Wire,
  events: UpstreamEvents,
  introduced?: Introduction,
): Upstream {
  let wire: Wire | undefined;
  let opening: Promise<Wire> | undefined;
  /** The parameters of the handshake that is repeated when the connection has to be opened again. */
  let handshake = introduced !== undefined && "handshake" in introduced && introduced.handshake;
  /** What the client says about itself with each request, where there is no handshake. */
  let meta = introduced !== undefined && "meta" in introduced ? introduced.meta : undefined;
  /** Opening includes the handshake when there is one already. */
  let hadWire = introduced !== undefined;
  let ready = false;
  let closed = false;
  let pauseMs = 0;
  let asked = 0;
  /** Part of the gateway's own ids: neither a client nor an upstream can guess one. */
  const own = Buffer.from(systemRandom.bytes(8)).toString("hex");

  const nextId = (): MessageId => {
    asked += 1;
    return `sallyport-${own}-${asked}`;
  };

  function start(): Wire {
    const started: Wire = open({
      ...events,
      onEnd(reason) {
        if (wire === started) wire = undefined;
        ready = false;
        if (closed) return;
        events.onEnd(reason);
        void reopen();
      },
    });
    wire = started;
    hadWire = true;
    return started;
  }

  /** The one wire, opened again after it ended; requests wait for that. */
  async function current(): Promise<Wire> {
    if (closed) throw new UpstreamGoneError("the gateway is closing");
    return opening ?? wire ?? (hadWire ? reopen() : start());
  }

  function reopen(): Promise<Wire> {
    opening ??= (async () => {
      try {
        await systemTimers.sleep(pauseMs);
        pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2 || FIRST_PAUSE_MS);
        if (closed) throw new UpstreamGoneError("the gateway is closing");
        const fresh = start();
        if (handshake) {
          await fresh.request(requestMessage(nextId(), "initialize", handshake));
          fresh.send(notificationMessage("notifications/initialized"));
        }
        if (handshake || meta !== undefined) becomeReady();
        return fresh;
      } finally {
        opening = undefined;
      }
    })();
    // The request that needs it reports the failure.
    opening.catch(() => {});
    return opening;
  }

  function becomeReady(): void {
    if (ready) return;
    ready = true;
    events.onReady();
  }

  function greet(request: RequestMessage): void {
    if (handshake || !isStateless(request)) return;
    meta = quietMeta(metaOf(request));
    becomeReady();
  }

  return {
    name,
    async request(request, options) {
      const answer = await (await current()).request(request, options);
      if (answer.error !== undefined) return answer;
      pauseMs = 0;
      if (request.method === "initialize") {
        handshake = request.params;
        meta = undefined;
      } else greet(request);
      return answer;
    },
    greet,
    async ask(method, params, options) {
      const all = meta === undefined ? params : { ...params, _meta: meta };
      return (await current()).request(requestMessage(nextId(), method, all), options);
    },
    send(message) {
      if (message.kind === "notification" && message.method === "notifications/initialized") {
        wire?.send(message);
        return becomeReady();
      }
      wire?.send(message);
    },
    introduction() {
      if (handshake) return { handshake: { ...handshake, capabilities: {} } };
      return meta === undefined ? undefined : { meta };
    },
    isReady: () => ready,
    async close() {
      closed = true;
      await wire?.close().catch((error) => events.onProblem(errorText(error)));
    },
  };
}

/** A request without a client behind it cannot be answered with a question: no capability is claimed. */
function quietMeta(meta: JsonObject): JsonObject {
  const version = meta[VERSION_KEY];
  const quiet: JsonObject = { [CAPABILITIES_KEY]: {} };
  if (version !== undefined) quiet[VERSION_KEY] = version;
  return quiet;
}
