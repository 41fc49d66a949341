// The gateway over Streamable HTTP, for any number of clients that were authenticated before. Clients of the era with a
// handshake have sessions, each with its own connections to the upstreams; stateless ones share one per identity.

import type { IncomingMessage, ServerResponse } from "node:http";
import { systemClock } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { createIds } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { systemTimers } from "../util/timers.ts";
import type { McpConversation, Reply } from "./conversation.ts";
import type { Gateway } from "./gateway.ts";
import { type HeaderOf, headerProblem, isStatelessPost, statusOf } from "./http-headers.ts";
import { type ClientStream, openStream } from "./http-streams.ts";
import {
  BadMessageError,
  errorMessage,
  LARGEST_MESSAGE,
  type Message,
  type RequestMessage,
  type ResponseMessage,
  RPC,
  readClientMessage,
} from "./message.ts";

/** Who sends a request: checked by the server that the gateway is part of. */
export interface HttpClient {
  /** Its calls are recorded for this agent. */
  readonly agent: string;
  readonly owner?: string;
  /** The session of its calls in the gate, which outlives its connections. Shape: callback. */
  readonly openSession: (name: string) => Promise<string>;
  /** Whether it may still be here; asked while a stream is open. Shape: callback. */
  readonly isValid: () => Promise<boolean>;
}

export interface McpEndpoint {
  /** Answers one request; never throws. */
  handle(request: IncomingMessage, response: ServerResponse, client: HttpClient): Promise<void>;
  close(): Promise<void>;
}

/** Two tokens of one agent with different owners are two clients: an owner is excluded from approving their own calls alone. */
function identityOf({ agent, owner = "" }: Pick<HttpClient, "agent" | "owner">): string {
  return JSON.stringify([agent, owner]);
}

interface Place {
  /** Agent and owner. */
  readonly identity: string;
  readonly conversation: McpConversation;
  /** What the upstreams say by themselves, in a session. */
  readonly own: ClientStream;
  readonly streams: Map<string, ClientStream>;
  /** The requests under way, the newest last. */
  readonly replies: Set<Reply>;
  version: string;
  usedMs: number;
}

const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** Sessions of one identity: each may hold processes of its own. */
const MOST_SESSIONS = 64;
/** Streams of one session that a client may come back to. */
const MOST_STREAMS = 64;
/** A call that waits longer gets a stream, so that nothing between takes it for dead. */
const PATIENT_MS = 5_000;
const SESSION = "mcp-session-id";
/** In the gate all connections of one identity are one session, so that a later one learns what became of its calls. */
const SESSION_NAME = "mcp";

export function serveHttp(gateway: Gateway): McpEndpoint {
  const ids = createIds({ clock: systemClock, random: systemRandom });
  const sessions = new Map<string, Place>();
  const shared = new Map<string, Promise<Place>>();
  let stopSweeping = sweepLater();

  async function openPlace(client: HttpClient, isShared: boolean): Promise<Place> {
    const { agent, owner, openSession, isValid } = client;
    const session = await openSession(SESSION_NAME);
    const terms = { isPrimed: false, isValid };
    const own = openStream(isShared ? terms : { ...terms, id: "0" });
    const streams = new Map<string, ClientStream>();
    const replies = new Set<Reply>();
    const conversation = gateway.open({
      agent,
      session,
      isShared,
      ...(owner === undefined ? {} : { owner }),
      // Into an answer that is under way, where there is one: not every client listens otherwise.
      send: (message) => ([...replies].at(-1) ?? own.push)(message),
      ready: () => [own, ...streams.values()].map((one) => one.ready()).find((one) => one),
    });
    return {
      identity: identityOf(client),
      conversation,
      own,
      streams,
      replies,
      version: "",
      usedMs: now(),
    };
  }

  function sharedPlace(client: HttpClient): Promise<Place> {
    const identity = identityOf(client);
    const known = shared.get(identity);
    if (known !== undefined) return known;
    const opened = openPlace(client, true);
    shared.set(identity, opened);
    opened.catch(() => shared.delete(identity));
    return opened;
  }

  function sessionOf(request: IncomingMessage, client: HttpClient): Place | undefined {
    const id = request.headers[SESSION];
    const place = typeof id === "string" ? sessions.get(id) : undefined;
    return place?.identity === identityOf(client) ? place : undefined;
  }

  async function post(
    request: IncomingMessage,
    response: ServerResponse,
    client: HttpClient,
  ): Promise<void> {
    const { accept = "", "content-type": type = "" } = request.headers;
    if (!/^application\/json\b/i.test(type)) {
      return refuse(response, 415, "Send application/json.");
    }
    const isAccepted =
      accept.includes("*/*") || (accept.includes("json") && accept.includes("event-stream"));
    if (!isAccepted) {
      return refuse(response, 406, "Accept application/json and text/event-stream.");
    }
    let message: Message;
    try {
      message = readClientMessage(await bodyOf(request));
    } catch (error) {
      const code = error instanceof BadMessageError ? error.code : RPC.invalid;
      return refuse(response, 400, errorText(error), code);
    }
    const header: HeaderOf = (name) => headerIn(request, name);
    if (isStatelessPost(message, header)) return statelessPost(message, header, response, client);
    const isFirst = message.kind === "request" && message.method === "initialize";
    if (isFirst && request.headers[SESSION] === undefined) {
      return initialize(message as RequestMessage, response, client);
    }
    const place = sessionOf(request, client);
    if (place === undefined) return noSession(request, response);
    if (message.kind !== "request") {
      await place.conversation.handle(message, () => {});
      response.writeHead(202).end();
      return;
    }
    await answer(place, message, response, client);
  }

  async function statelessPost(
    message: Message,
    header: HeaderOf,
    response: ServerResponse,
    client: HttpClient,
  ): Promise<void> {
    if (message.kind !== "request") {
      response.writeHead(202).end();
      return;
    }
    const problem = headerProblem(message, header);
    if (problem !== undefined) return sendJson(response, problem, 400);
    await answer(await sharedPlace(client), message, response, client, header);
  }

  async function initialize(
    message: RequestMessage,
    response: ServerResponse,
    client: HttpClient,
  ): Promise<void> {
    const mine = [...sessions].filter(([, { identity }]) => identity === identityOf(client));
    const [oldest] = mine.filter(([, { replies }]) => replies.size === 0);
    if (mine.length >= MOST_SESSIONS) {
      if (oldest === undefined) return refuse(response, 429, "Too many sessions are open.");
      await drop(oldest[0]);
    }
    const id = ids.next();
    const place = await openPlace(client, false);
    sessions.set(id, place);
    response.setHeader(SESSION, id);
    const answered = await answer(place, message, response, client);
    const version = answered?.result?.["protocolVersion"];
    if (typeof version === "string") place.version = version;
    else await drop(id);
  }

  /** Answers one request with a message, or with a stream once more than one is to be said or it takes long. */
  async function answer(
    place: Place,
    message: RequestMessage,
    response: ServerResponse,
    { isValid }: HttpClient,
    header?: HeaderOf,
  ): Promise<ResponseMessage | undefined> {
    const isStateless = header !== undefined;
    const gone = new AbortController();
    const id = isStateless ? undefined : ids.next();
    // The event without a message is unknown to the versions before.
    const isPrimed = place.version >= "2025-11-25";
    let stream: ClientStream | undefined;
    let answered: ResponseMessage | undefined;
    const begin = () => {
      if (stream !== undefined || answered !== undefined) return;
      stream = openStream({ isPrimed, isValid, ...(id === undefined ? {} : { id }) });
      if (id !== undefined) remember(place.streams, id, stream);
      if (!response.destroyed) stream.attach(response);
    };
    response.once("close", () => {
      if (!response.writableFinished) gone.abort(new Error("the client hung up"));
    });
    const stopWaiting = systemTimers.after(PATIENT_MS, begin);
    const reply: Reply = (said) => {
      const isAnswer = said.kind === "response" && said.id === message.id;
      if (isAnswer && stream === undefined) {
        sendJson(response, said, statusOf(said, isStateless));
      } else {
        begin();
        stream?.push(said);
      }
      if (isAnswer) answered = said;
    };
    place.replies.add(reply);
    try {
      const how = isStateless ? { gone: gone.signal, header } : {};
      await place.conversation.handle(message, reply, {
        onStream: begin,
        onPause: () => stream?.pause(),
        ...how,
      });
    } finally {
      stopWaiting();
      stream?.end();
      place.replies.delete(reply);
      place.usedMs = now();
      // Cancelled: nothing is said about it.
      if (!response.headersSent) response.writeHead(202).end();
    }
    return answered;
  }

  /** The stream of what the upstreams say by themselves, or one that the client lost. */
  function listen(request: IncomingMessage, response: ServerResponse, client: HttpClient): void {
    const place = sessionOf(request, client);
    const last = request.headers["last-event-id"];
    const [, id = "", number = "0"] = /^(.{1,100})_(\d{1,15})$/.exec(String(last ?? "0_0")) ?? [];
    const stream = id === "0" ? place?.own : place?.streams.get(id);
    if (place === undefined) noSession(request, response);
    else if (!String(request.headers.accept ?? "").includes("text/event-stream")) {
      refuse(response, 406, "Accept text/event-stream.");
    } else if (stream === undefined) refuse(response, 404, "This stream is not known any more.");
    else stream.attach(response, last === undefined ? undefined : Number(number));
  }

  async function drop(id: string): Promise<void> {
    const place = sessions.get(id);
    sessions.delete(id);
    await closePlace(place);
  }

  async function closePlace(place: Place | undefined): Promise<void> {
    for (const stream of place?.streams.values() ?? []) stream.end();
    place?.own.end();
    await place?.conversation.close();
  }

  function sweepLater(): () => void {
    return systemTimers.after(SWEEP_MS, () => {
      const isIdle = ({ replies, usedMs }: Place) => replies.size === 0 && now() - usedMs > IDLE_MS;
      for (const [id, place] of sessions) if (isIdle(place)) void drop(id);
      for (const [identity, opened] of shared) {
        void opened.then((place) => {
          if (!isIdle(place)) return;
          shared.delete(identity);
          return closePlace(place);
        });
      }
      stopSweeping = sweepLater();
    });
  }

  return {
    async handle(request, response, client) {
      try {
        if (request.method === "POST") await post(request, response, client);
        else if (request.method === "GET") listen(request, response, client);
        else if (request.method === "DELETE") {
          if (sessionOf(request, client) === undefined) return noSession(request, response);
          await drop(String(request.headers[SESSION]));
          response.writeHead(200).end();
        } else refuse(response.setHeader("allow", "GET, POST, DELETE"), 405, "Use POST.");
      } catch (error) {
        if (response.headersSent) response.destroy();
        else refuse(response, 500, errorText(error), RPC.internal);
      }
    },
    async close() {
      stopSweeping();
      const places = await Promise.allSettled(shared.values());
      await Promise.all([
        ...[...sessions.keys()].map(drop),
        ...places.map((one) => closePlace(one.status === "fulfilled" ? one.value : undefined)),
      ]);
    },
  };
}

function now(): number {
  return systemTimers.elapsedMs();
}

function remember(streams: Map<string, ClientStream>, id: string, stream: ClientStream): void {
  streams.set(id, stream);
  for (const [known, one] of streams) {
    if (streams.size <= MOST_STREAMS) break;
    if (!one.isOpen()) streams.delete(known);
  }
}

/** Without an id there is nothing to look for; with one that is over the client begins anew. */
function noSession(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers[SESSION] !== undefined) {
    refuse(response, 404, "This session is over. Initialize again.");
  } else if (request.method === "POST") {
    refuse(response, 400, "Send Mcp-Session-Id, or initialize.");
  } else refuse(response.setHeader("allow", "POST"), 405, "Only a session has this.");
}

function refuse(
  response: ServerResponse,
  status: number,
  text: string,
  code: number = RPC.invalid,
): void {
  sendJson(response, errorMessage(null, code, text), status);
}

function sendJson(response: ServerResponse, { raw }: Message, status: number): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(raw);
}

/** One header; undefined when it is missing or was sent twice. */
function headerIn(request: IncomingMessage, name: string): string | undefined {
  const values = request.headersDistinct[name] ?? [];
  return values.length === 1 ? values[0] : undefined;
}

async function bodyOf(request: IncomingMessage): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request) {
    pieces.push(piece as Buffer);
    size += (piece as Buffer).length;
    if (size > LARGEST_MESSAGE) {
      throw new BadMessageError(RPC.invalid, `A message is larger than ${LARGEST_MESSAGE} bytes.`);
    }
  }
  return Buffer.concat(pieces);
}
