import { PATHS, pathOf, type RouteName } from "../http/paths.ts";
import type { AnswerOf, CallName, InputOf } from "../http/routes.ts";
import { ERRORS, type ErrorCode, type ErrorDetails, SallyportError } from "../model/errors.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { Random } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { webRandom } from "../util/web-random.ts";
import { type EventsOptions, type FeedEvent, followEvents } from "./events.ts";

export interface ClientOptions {
  /** Like http://127.0.0.1:4100. Left out in a browser: the server that the page came from. */
  readonly url?: string;
  /** For programs: an agent, an auditor. A token never decides; people sign in. */
  readonly token?: string;
  /** A person's own session, as `signIn` gives it. */
  readonly session?: Session;
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
  /** All items of a paged call, page by page. Shape: pulled. */
  all<Item>(ask: (cursor: string | undefined) => Promise<Page<Item>>): AsyncGenerator<Item>;
  /** The whole trail as JSON Lines. */
  exportAudit(options?: Pick<SendOptions, "signal">): Promise<Response>;
  signOut(): Promise<void>;
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
  const sender = createSender(parts);
  const calls: Record<string, Record<string, unknown>> = {};
  for (const name of Object.keys(PATHS) as RouteName[]) {
    const [noun = "", verb = ""] = name.split(".");
    const verbs = calls[noun] ?? {};
    verbs[verb] = async (input: object = {}, how: SendOptions = {}) =>
      jsonIn(await sender.send(name, input, how));
    calls[noun] = verbs;
  }
  return {
    ...(calls as unknown as Calls),
    events: (how) => followEvents(parts, how),
    async *all(ask) {
      let cursor: string | undefined;
      do {
        const { items, next } = await ask(cursor);
        yield* items;
        cursor = next ?? undefined;
      } while (cursor !== undefined);
    },
    exportAudit: (how) => sender.send("audit.export", {}, how),
    async signOut() {
      await sender.send("me.signOut", {});
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
export interface Session {
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
  readonly session: Session;
}

/**
 * Signs in with a link, for interactive programs. Throws unauthenticated when the link was used or is too
 * old, TypeError when it is not a link.
 */
export async function signIn(options: SignInOptions): Promise<SignedIn> {
  const { link, code = "", fetch: send = fetch } = options;
  const address = URL.parse(link.trim());
  const secret = address?.searchParams.get("link");
  if (address === null || secret == null || !/^https?:$/.test(address.protocol)) {
    throw new TypeError(
      "signIn: that is not a sign-in link; it looks like http://…/signin?link=….",
    );
  }
  const response = await send(`${address.origin}/signin`, {
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

export interface SendParts {
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

export interface Sender {
  /** The answer to a request, retried where that is safe. Throws SallyportError with the server's code. */
  send(name: RouteName, input: object, options?: SendOptions): Promise<Response>;
}

/**
 * Only safe requests are retried: reads, and requests with an idempotency key, which the server executes once however often
 * they arrive. Every request that changes state gets such a key.
 */
function createSender(parts: SendParts): Sender {
  async function send(
    name: RouteName,
    input: object,
    options: SendOptions = {},
  ): Promise<Response> {
    const { signal, idempotencyKey = newKey(parts.random) } = options;
    for (let attempt = 0; ; attempt += 1) {
      signal?.throwIfAborted();
      const { answer, again } = await tryOnce(name, input, idempotencyKey, signal);
      if (answer instanceof Response) return answer;
      if (!again || attempt >= parts.retries) throw answer;
      await parts.timers.sleep(waitMs(attempt, parts.random), signal);
    }
  }

  async function tryOnce(
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

  return { send };
}

/** The body is read inside the retry, so that a connection broken within an answer is retried too. Streams resume by themselves. */
async function received(name: RouteName, response: Response): Promise<Response> {
  if (name === "audit.export") return response;
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
export async function problemIn(response: Response): Promise<SallyportError> {
  const problem: unknown = await response.json().catch(() => undefined);
  const { code, details } = (problem ?? {}) as { code?: unknown; details?: unknown };
  if (typeof code === "string" && Object.hasOwn(ERRORS, code)) {
    return new SallyportError(code as ErrorCode, readDetails(details));
  }
  const hint = `It answered ${response.status} in a form that this client does not know.`;
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
export function waitMs(attempt: number, random: Random): number {
  const jitter = (random.bytes(1)[0] ?? 0) / 255;
  return Math.min(5_000, 100 * 2 ** attempt) * (0.5 + jitter);
}

function newKey(random: Random): string {
  return Array.from(random.bytes(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
