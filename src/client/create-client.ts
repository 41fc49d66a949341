import { PATHS, pathOf, type RouteName } from "../http/paths.ts";
import type { AnswerOf, CallName, InputOf } from "../http/routes.ts";
import {
  ERRORS,
  type ErrorCode,
  type ErrorDetails,
  isSallyportError,
  SallyportError,
} from "../model/errors.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonObject } from "../util/json.ts";
import type { Random } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { webRandom } from "../util/web-random.ts";

export interface ClientOptions {
  /** Like http://127.0.0.1:4100. Left out in a browser: the server that the page came from. */
  readonly url?: string;
  /** For programs: an agent, an auditor. A token never decides; people sign in. */
  readonly token?: string;
  /** A person's own session, as `signIn` gives it. */
  readonly session?: PersonSession;
  /** For the server's own pages: the page key of the sign-in. The browser adds the cookie. */
  readonly pageKey?: () => string | undefined;
  /** How often a safe request is retried. */
  readonly retries?: number;
  readonly fetch?: typeof fetch;
  readonly timers?: Timers;
  readonly random?: Random;
}

/** The input is one object; it may be omitted if every field is optional. */
type Caller<Name extends CallName> =
  Record<string, never> extends InputOf<Name>
    ? (input?: InputOf<Name>, options?: SendOptions) => Promise<AnswerOf<Name>>
    : (input: InputOf<Name>, options?: SendOptions) => Promise<AnswerOf<Name>>;

type NounOf<Name extends string> = Name extends `${infer Noun}.${string}` ? Noun : never;
type VerbOf<Name extends string, Noun extends string> = Name extends `${Noun}.${infer Verb}`
  ? Verb
  : never;

/** Every noun with its verbs: `client.interactions.approve({ id, hash })`. */
export type Calls = {
  readonly [Noun in NounOf<CallName>]: {
    readonly [Verb in VerbOf<CallName, Noun>]: Caller<Extract<`${Noun}.${Verb}`, CallName>>;
  };
};

export interface Client extends Calls {
  /** The feed: each event once, in order, across broken connections. Shape: pulled. */
  events(options?: EventsOptions): AsyncGenerator<FeedEvent>;
  /**
   * `sessions.call`, with reports while the tool works. Not repeated when the connection breaks: ask for the result with the
   * same `key`, or `sessions.resultOf`.
   */
  callTool(
    input: InputOf<"sessions.stream">,
    options?: SendOptions & { readonly onProgress?: (progress: CallProgress) => void },
  ): Promise<AnswerOf<"sessions.call">>;
  /** All items of a paged call, page by page. Shape: pulled. */
  all<Item>(ask: (cursor: string | undefined) => Promise<Page<Item>>): AsyncGenerator<Item>;
  /** The whole trail as JSON Lines. */
  exportAudit(options?: Pick<SendOptions, "signal">): Promise<Response>;
  signOut(): Promise<void>;
}

export interface CallProgress {
  readonly message: string;
  /** 0 to 1, if known. */
  readonly done?: number;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** The server's routes as functions. Throws SallyportError with the server's code. */
export function createClient(options: ClientOptions = {}): Client {
  const parts: SendParts = {
    url: options.url ?? "",
    credentials: credentialsOf(options),
    fetch: options.fetch ?? ((...request) => fetch(...request)),
    retries: options.retries ?? 4,
    timers: options.timers ?? systemTimers,
    random: options.random ?? webRandom,
  };
  const calls: Record<string, Record<string, unknown>> = {};
  for (const name of Object.keys(PATHS) as RouteName[]) {
    const [noun = "", verb = ""] = name.split(".");
    const verbs = calls[noun] ?? {};
    verbs[verb] = async (input: object = {}, how: SendOptions = {}) =>
      jsonIn(await send(parts, name, input, how));
    calls[noun] = verbs;
  }
  return {
    ...(calls as unknown as Calls),
    events: (how) => followEvents(parts, how),
    callTool: (input, how) => callTool(parts, input, how),
    async *all(ask) {
      let cursor: string | undefined;
      do {
        const { items, next } = await ask(cursor);
        yield* items;
        cursor = next ?? undefined;
      } while (cursor !== undefined);
    },
    exportAudit: (how) => send(parts, "audit.export", {}, how),
    async signOut() {
      await send(parts, "me.signOut", {});
    },
  };
}

function credentialsOf({ token, session, pageKey, url = "" }: ClientOptions) {
  if (token !== undefined) return () => ({ Authorization: `Bearer ${token}` });
  if (session !== undefined) {
    const { cookie, key } = session;
    // A request with a cookie needs an Origin; outside a browser the client adds it.
    return () => ({ Cookie: cookie, "X-Sallyport-Key": key, Origin: new URL(url).origin });
  }
  return (): Record<string, string> => {
    const key = pageKey?.();
    return key === undefined ? {} : { "X-Sallyport-Key": key };
  };
}

/** A proxy may answer in place of the server, and with success. */
async function jsonIn(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    const hint = `It answered ${response.status} with something that is not JSON. Check the address.`;
    throw new SallyportError("internal_error", { hint }, cause);
  }
}

/** The two halves of a person's session. Both are needed with every request; keep them in memory only. */
export interface PersonSession {
  /** `name=value`, as it goes into a `Cookie` header. */
  readonly cookie: string;
  readonly key: string;
}

export interface SignInOptions {
  /** The link that was printed, or made on another device. It works once. */
  readonly link: string;
  /** The inviter's half, for a link that two admins made. */
  readonly code?: string;
  readonly fetch?: typeof fetch;
}

export interface SignedIn {
  /** The server that the link is of. */
  readonly url: string;
  readonly session: PersonSession;
}

/**
 * Signs in with a link, for interactive programs. Throws unauthenticated when the link was used or is too
 * old, TypeError when it is not a link.
 */
export async function signIn(options: SignInOptions): Promise<SignedIn> {
  const { link, code = "", fetch: post = fetch } = options;
  const address = URL.parse(link.trim());
  const secret = address?.searchParams.get("link");
  if (address === null || secret == null || !/^https?:$/.test(address.protocol)) {
    throw new TypeError(
      "signIn: that is not a sign-in link; it looks like http://…/signin?link=….",
    );
  }
  const response = await post(`${address.origin}/signin`, {
    method: "POST",
    headers: { Accept: "application/json", Origin: address.origin },
    body: new URLSearchParams(code === "" ? { link: secret } : { link: secret, code }),
    redirect: "error",
  });
  if (!response.ok) throw await problemIn(response);
  const { key } = (await response.json()) as { key: string };
  const cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  return { url: address.origin, session: { cookie, key } };
}

interface SendParts {
  /** Empty in a browser: the server that the page came from. */
  readonly url: string;
  /** Authentication headers of every request. Read each time, because a browser may sign in again. */
  readonly credentials: () => Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
  readonly retries: number;
  readonly timers: Timers;
  readonly random: Random;
}

export interface SendOptions {
  readonly signal?: AbortSignal;
  /** Generated for each call by default: pass one to execute a call once across restarts of your program. */
  readonly idempotencyKey?: string;
}

/**
 * The answer to a request. Only safe requests are retried: reads, and requests with an idempotency key, which the server
 * executes once however often they arrive. Every request that changes state gets such a key. Throws SallyportError with
 * the server's code.
 */
async function send(
  parts: SendParts,
  name: RouteName,
  input: object,
  { signal, idempotencyKey = newKey(parts.random) }: SendOptions = {},
): Promise<Response> {
  for (let attempt = 0; ; attempt += 1) {
    signal?.throwIfAborted();
    const { answer, again } = await tryOnce(parts, name, input, idempotencyKey, signal);
    if (answer instanceof Response) return answer;
    if (!again || attempt >= parts.retries) throw answer;
    await parts.timers.sleep(waitMs(attempt, parts.random), signal);
  }
}

async function tryOnce(
  parts: SendParts,
  name: RouteName,
  input: object,
  key: string,
  signal: AbortSignal | undefined,
): Promise<{ answer: Response | Error; again: boolean }> {
  const { method, address, body } = requestOf(name, input);
  try {
    const changes =
      method === "GET" ? {} : { "Content-Type": "application/json", "Idempotency-Key": key };
    const response = await parts.fetch(`${parts.url}${address}`, {
      method,
      headers: { ...parts.credentials(), ...changes },
      credentials: "same-origin",
      redirect: "error",
      ...definedFields({ body, signal }),
    });
    if (response.ok) return { answer: await received(name, response), again: false };
    const error = await problemIn(response);
    return { answer: error, again: error.retry === "safe" || error.code === "still_running" };
  } catch (cause) {
    if (signal?.aborted) throw cause;
    if (cause instanceof SallyportError) return { answer: cause, again: false };
    const hint = "The server could not be reached, or the connection broke.";
    return { answer: new SallyportError("store_unavailable", { hint }, cause), again: true };
  }
}

type Line =
  | { readonly progress: CallProgress }
  | { readonly answer: AnswerOf<"sessions.call"> }
  | { readonly error: unknown };

async function callTool(
  parts: SendParts,
  input: InputOf<"sessions.stream">,
  { onProgress, ...how }: SendOptions & { onProgress?: (progress: CallProgress) => void } = {},
): Promise<AnswerOf<"sessions.call">> {
  const response = await send({ ...parts, retries: 0 }, "sessions.stream", input, how);
  for await (const text of linesOf(response)) {
    const line = JSON.parse(text) as Line;
    if ("answer" in line) return line.answer;
    if ("error" in line) throw errorOf(line.error);
    onProgress?.(line.progress);
  }
  const hint =
    "The connection broke before the answer. Ask for the result by its key before you repeat the call.";
  throw new SallyportError("outcome_unknown", { hint });
}

async function* linesOf({ body }: Response): AsyncGenerator<string> {
  if (body === null) return;
  let rest = "";
  const decoder = new TextDecoder();
  for await (const part of body as unknown as AsyncIterable<Uint8Array>) {
    const lines = `${rest}${decoder.decode(part, { stream: true })}`.split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** The body is read inside the retry, so that a connection broken within an answer is retried too. Streams resume by themselves. */
async function received(name: RouteName, response: Response): Promise<Response> {
  if (name === "audit.export" || name === "sessions.stream") return response;
  return new Response(await response.arrayBuffer(), response);
}

/** The request of a route: path parameters from the input, the rest as query or body. */
export function requestOf(name: RouteName, input: object) {
  const { method, path, params } = pathOf(name);
  const rest: Record<string, unknown> = { ...input };
  let address = path;
  for (const param of params) {
    address = address.replace(`:${param}`, encodeURIComponent(String(rest[param])));
    delete rest[param];
  }
  if (method === "POST") return { method, address, body: JSON.stringify(rest) };
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries(rest)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) query.append(field, String(one));
  }
  const text = query.toString();
  return { method, address: text === "" ? address : `${address}?${text}`, body: undefined };
}

/** The server's problem as the error that the library would have thrown. */
async function problemIn(response: Response): Promise<SallyportError> {
  return errorOf(await response.json().catch(() => undefined), response.status);
}

function errorOf(problem: unknown, status = 200): SallyportError {
  const { code, details } = (problem ?? {}) as { code?: unknown; details?: unknown };
  if (typeof code === "string" && Object.hasOwn(ERRORS, code)) {
    return new SallyportError(code as ErrorCode, readDetails(details));
  }
  const hint = `It answered ${status} in a form that this client does not know.`;
  return new SallyportError("internal_error", { hint });
}

/** Only valid details: the answer may come from a proxy, a newer version or something else. */
function readDetails(given: unknown): ErrorDetails {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return {};
  const isPlain = (value: unknown) =>
    ["string", "number", "boolean"].includes(typeof value) ||
    (Array.isArray(value) && value.every((one) => typeof one === "string"));
  const fits = ([name, value]: [string, unknown]) =>
    name === "hint" ? typeof value === "string" : isPlain(value);
  return Object.fromEntries(Object.entries(given).filter(fits)) as ErrorDetails;
}

/** Growing pauses with jitter. */
function waitMs(attempt: number, random: Random): number {
  const jitter = (random.bytes(1)[0] ?? 0) / 255;
  return Math.min(5_000, 100 * 2 ** attempt) * (0.5 + jitter);
}

function newKey(random: Random): string {
  return Array.from(random.bytes(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** One entry of the trail, as the feed sends it. `data` is null for listeners without access to it. */
export interface FeedEvent {
  readonly seq: number;
  readonly at: string;
  readonly type: string;
  readonly subject: string;
  readonly session: string;
  readonly actor: string;
  readonly dataHash: string;
  readonly hash: string;
  readonly data: JsonObject | null;
}

export interface EventsOptions {
  /** The number of the last known event; by default the feed starts with new events. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Called when the stream connects and when it breaks. Shape: push. */
  readonly onLine?: (state: "open" | "broken") => void;
}

/**
 * The feed until the signal is aborted: each event once and in order, also across broken connections and restarts of the
 * server. Throws only permanent errors: not signed in, not allowed, an invalid number.
 */
async function* followEvents(
  parts: SendParts,
  options: EventsOptions = {},
): AsyncGenerator<FeedEvent> {
  const { signal, onLine } = options;
  let after = options.after;
  for (let failures = 0; !signal?.aborted; failures += 1) {
    const quiet = watchdog(parts.timers);
    try {
      const either = AbortSignal.any([quiet.signal, ...(signal === undefined ? [] : [signal])]);
      const response = await connect(parts, after, either);
      onLine?.("open");
      for await (const { id, data } of readFrames(response, quiet.heard)) {
        failures = 0;
        if (data !== undefined && (after === undefined || id > after)) {
          yield JSON.parse(data) as FeedEvent;
        }
        after = Math.max(after ?? 0, id);
      }
    } catch (error) {
      if (isSallyportError(error) && !isPassing(error)) throw error;
    } finally {
      quiet.end();
    }
    if (signal?.aborted) return;
    onLine?.("broken");
    await parts.timers.sleep(waitMs(failures, parts.random), signal).catch(() => {});
  }
}

/** The server sends heartbeats every few seconds. A connection silent for this long is dead. */
const QUIET_MS = 20_000;

function watchdog(timers: Timers): { signal: AbortSignal; heard(): void; end(): void } {
  const dead = new AbortController();
  const wait = () => timers.after(QUIET_MS, () => dead.abort());
  let cancel = wait();
  return {
    signal: dead.signal,
    heard() {
      cancel();
      cancel = wait();
    },
    end: () => cancel(),
  };
}

async function connect(
  parts: SendParts,
  after: number | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const response = await parts.fetch(`${parts.url}/v1/events`, {
    headers: {
      ...parts.credentials(),
      Accept: "text/event-stream",
      ...(after === undefined ? {} : { "Last-Event-ID": String(after) }),
    },
    credentials: "same-origin",
    signal,
  });
  if (!response.ok) throw await problemIn(response);
  return response;
}

function isPassing(error: unknown): boolean {
  return error instanceof SallyportError && error.status >= 500 && error.code !== "damaged_record";
}

interface Frame {
  readonly id: number;
  /** Undefined for a message that only reports the position. */
  readonly data: string | undefined;
}

/** Server-sent events as the server writes them: `id`, `data`, an empty line. */
async function* readFrames(response: Response, heard: () => void): AsyncGenerator<Frame> {
  if (response.body === null) return;
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunksOf(response.body)) {
    heard();
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const frame = frameOf(part);
      if (frame !== undefined) yield frame;
    }
  }
}

/** Not every browser can iterate a stream. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function frameOf(text: string): Frame | undefined {
  let id: number | undefined;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("id: ")) id = Number(line.slice(4));
    if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  if (id === undefined) return undefined;
  return { id, data: data.length === 0 ? undefined : data.join("\n") };
}
