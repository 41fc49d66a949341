import type { IncomingMessage } from "node:http";
import { SallyportError } from "../model/errors.ts";
import type { Token } from "../model/identity.ts";
import type { Store } from "../store/store.ts";
import { type Clock, fromIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import type { Random } from "../util/random.ts";
import { type CallerAddress, type Rate, Turnstile } from "./connections.ts";
import type { Call, Services } from "./route.ts";

export type Authenticator = ReturnType<typeof createAuthenticator>;

export interface Signed {
  readonly token: Token;
  readonly secret: Secret;
}

export interface AuthenticatorOptions {
  readonly store: Store;
  /** Tenants that are served here. */
  readonly tenants: ReadonlySet<string>;
  readonly cookie: string;
  /** How long a token is cached: revocation takes at most this long in other processes. */
  readonly memoryMs: number;
  /** Never steps back. */
  readonly stopwatch: Clock;
}

/** The page key of a session, with every request: reads, the feed and downloads too. */
const PAGE_KEY_HEADER = "x-sallyport-key";

/** Beyond this the cache is full of guesses; each then costs a database lookup. */
const MOST_REMEMBERED = 10_000;

/** Who sent a request. The tenant comes from the verified token alone. */
export function createAuthenticator(options: AuthenticatorOptions) {
  const { store, tenants, cookie, memoryMs, stopwatch } = options;
  const known = new Map<string, { readonly token: Token; readonly at: number }>();

  async function find(secret: Secret): Promise<Token | undefined> {
    if (!tenants.has(secret.tenant)) return undefined;
    const now = stopwatch.now();
    const before = known.get(secret.hash);
    if (before !== undefined && now - before.at < memoryMs) return before.token;
    const token = await store.tenant(secret.tenant).tokens.find(secret.hash);
    if (known.size >= MOST_REMEMBERED) known.clear();
    if (token === undefined) known.delete(secret.hash);
    else known.set(secret.hash, { token, at: now });
    return token;
  }

  /** Browsers send the cookie to every port of a machine; only our own page knows the key, which other origins cannot read. */
  function sessionSecret({ headers }: IncomingMessage): Secret | undefined {
    const text = readCookie(headers.cookie, cookie);
    const key = headers[PAGE_KEY_HEADER];
    if (text === undefined || typeof key !== "string") return undefined;
    return readSessionSecret(text, key);
  }

  return {
    /** Throws unauthenticated. */
    async identify(request: IncomingMessage): Promise<Signed> {
      const { authorization } = request.headers;
      const secret = authorization === undefined ? sessionSecret(request) : bearer(authorization);
      const token = secret === undefined ? undefined : await find(secret);
      // Sessions, bearer tokens and links are not interchangeable.
      const kind = authorization === undefined ? "session" : "token";
      if (secret === undefined || token?.kind !== kind) {
        throw new SallyportError("unauthenticated", { hint: NO_IDENTITY });
      }
      return { token, secret };
    },
    /** Whether the identity is still valid; checked while a stream is open. */
    isValid: async ({ secret }: Signed) => (await find(secret)) !== undefined,
    /** This process revoked the token: forget it now instead of waiting for the cache to expire. */
    forget: () => known.clear(),
  };
}

const NO_IDENTITY = "Send a valid token as `Authorization: Bearer …`, or sign in with a link.";

function bearer(authorization: string): Secret | undefined {
  const text = /^Bearer ([!-~]+)$/i.exec(authorization)?.[1];
  return text === undefined ? undefined : readSecret(text);
}

/** The value of one cookie; undefined when it is missing or ambiguous because it was sent twice. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined || header.length > 8_192) return undefined;
  const values = header
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}

export interface CookieTerms {
  readonly name: string;
  readonly value: string;
  readonly maxAgeMs: number;
  readonly secure: boolean;
  /** `Lax` only where another site has to redirect the person back. */
  readonly sameSite: "Strict" | "Lax";
  readonly path?: string;
}

export function cookieHeader(terms: CookieTerms): string {
  const { name, value, maxAgeMs, secure, sameSite, path = "/" } = terms;
  const age = Math.max(0, Math.floor(maxAgeMs / 1_000));
  const parts = [`${name}=${value}`, `Path=${path}`, `Max-Age=${age}`, "HttpOnly"];
  return [...parts, `SameSite=${sameSite}`, ...(secure ? ["Secure"] : [])].join("; ");
}

/**
 * A token as its holder has it: `sallyport_<tenant>.<256 random bits>`. The prefix lets scanners find leaked ones. The tenant
 * is part of it only to find the right store: another tenant's name gives another hash, and nothing is
 * found under that.
 */
interface Secret {
  readonly text: string;
  readonly tenant: string;
  /** What is stored. */
  readonly hash: string;
}

const SECRET = /^sallyport_([A-Za-z0-9_-]{1,684})\.([A-Za-z0-9_-]{43})$/;

/** A second secret, independent of the first: what a signed-in page keeps and sends with every request. */
const PAGE_KEY = /^[A-Za-z0-9_-]{43}$/;

export function newSecret(tenant: string, random: Random): Secret {
  return secretOf(tenant, randomText(random));
}

/** The token whose random half is this one. */
export function secretOf(tenant: string, half: string): Secret {
  const place = Buffer.from(tenant, "utf8").toString("base64url");
  const text = `sallyport_${place}.${half}`;
  return { text, tenant, hash: sha256Hex(text) };
}

/** Undefined if it is not a token. */
export function readSecret(text: string): Secret | undefined {
  const place = text.length <= 800 ? SECRET.exec(text)?.[1] : undefined;
  if (place === undefined) return undefined;
  const bytes = Buffer.from(place, "base64url");
  const tenant = bytes.toString("utf8");
  // One spelling for each tenant: invalid UTF-8 does not round-trip.
  if (Buffer.from(tenant, "utf8").toString("base64url") !== place) return undefined;
  return { text, tenant, hash: sha256Hex(text) };
}

export interface SessionSecret extends Secret {
  /** The half that is not in the cookie. */
  readonly key: string;
}

/**
 * A person's session has two random halves. Browsers send a cookie to every port of a host, so the cookie alone must be
 * worth nothing: what is stored is a hash of both halves, and the cookie's half alone does not even find the session.
 */
export function newSessionSecret(tenant: string, random: Random): SessionSecret {
  return joined(newSecret(tenant, random), randomText(random));
}

/** Undefined if these cannot be the two halves of a session. */
function readSessionSecret(text: string, key: string): SessionSecret | undefined {
  const secret = PAGE_KEY.test(key) ? readSecret(text) : undefined;
  return secret === undefined ? undefined : joined(secret, key);
}

/** Letters and digits that are not confused when read aloud. */
const CODE_LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ23456789";

/** The inviter's half of an invitation, short enough to be read aloud: 12 of 30 letters, 58 bits, and only valid with the link. */
export function newCode(random: Random): string {
  let code = "";
  while (code.length < 12) {
    for (const byte of random.bytes(32)) {
      // The last six values would bias the letters.
      if (byte < 240 && code.length < 12) code += CODE_LETTERS[byte % CODE_LETTERS.length];
    }
  }
  return code.replace(/(.{4})(?=.)/g, "$1-");
}

/** As it is stored with the invitation; spaces, dashes and case do not matter. */
export function codeHash(tenant: string, code: string): string {
  return sha256Hex(`invite\n${tenant}\n${code.toUpperCase().replaceAll(/[^A-Z0-9]/g, "")}`);
}

/** What is stored for a link that needs a code as well. */
export function withCode(link: string, half: string): string {
  return sha256Hex(`${link}\n${half}`);
}

function joined(half: Secret, key: string): SessionSecret {
  return { ...half, key, hash: sha256Hex(`${half.text}\n${key}`) };
}

function randomText(random: Random): string {
  return Buffer.from(random.bytes(32)).toString("base64url");
}

/**
 * An unattended browser may read and decide reversible calls, but not irreversible ones. Throws unauthenticated with
 * `what: "freshness"`, so that a client can ask for another sign-in and keep its place.
 */
export function checkFresh(signed: Signed, services: Services): void {
  if (isFresh(signed, services)) return;
  const minutes = Math.ceil(services.signIn.freshMs / 60_000);
  const hint = `Sign in again: this needs a sign-in of the last ${minutes} minutes.`;
  throw new SallyportError("unauthenticated", { what: "freshness", hint });
}

/** Approving a reversible call needs a valid session; anything else a recent sign-in. */
export async function checkFreshToApprove(ids: readonly string[], call: Call): Promise<void> {
  const { signed, services, gate } = call;
  if (isFresh(signed, services)) return;
  for (const id of ids) {
    // An id without a confirmation is refused by the approval itself.
    const shown = await gate.interactions.shown(id);
    if (shown !== undefined && !UNDOABLE.includes(shown.preview.safetyClass)) {
      checkFresh(signed, services);
    }
  }
}

/** Every other class, including unknown ones, counts as irreversible. */
const UNDOABLE: readonly string[] = ["read", "reversible"];

function isFresh({ token }: Signed, { clock, signIn }: Services): boolean {
  return clock.now() - fromIso(token.createdAt) <= signIn.freshMs;
}

/** What came of looking a credential up. Exactly one of them is called. */
export interface Knock {
  known(): void;
  refused(): void;
}

export interface DoorOptions {
  /** How many unknown credentials one address may have looked up. */
  readonly rate: Rate;
  readonly cookie: string;
  /** Never steps back. */
  readonly stopwatch: Clock;
  readonly addressOf: CallerAddress;
}

/** For how long a refused credential is not looked up again. */
const REFUSED_MS = 5_000;

/**
 * Runs before the look-up of a token, which costs a database query. Credentials that were good before pass; the same bad
 * one is refused again without a look-up; and of unknown ones each address gets only so many. On loopback all share one
 * address, so a flood of invalid tokens must not affect callers whose tokens are known or were made by this server.
 */
export class Door {
  readonly #options: DoorOptions;
  readonly #strangers: Turnstile;
  readonly #known = new Map<string, true>();
  readonly #refused = new Map<string, number>();

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#strangers = new Turnstile(options.rate, options.stopwatch);
  }

  /** A credential that was made here is known before it is first shown. */
  admit(shown: string): void {
    remember(this.#known, sha256Hex(shown), true);
  }

  /** Throws unauthenticated for a credential that was just refused, too_fast for too many unknown ones of an address. */
  knock(request: IncomingMessage): Knock {
    const { authorization, cookie } = request.headers;
    const shown = authorization ?? readCookie(cookie, this.#options.cookie);
    // No credential, so nothing to look up.
    if (shown === undefined) return NO_CREDENTIAL;
    // Including the page key: a cookie without its key says nothing about the cookie with it.
    return this.#knock(shown, ownHeaders(request), request);
  }

  /** The same for a sign-in link, which is shown in a form. */
  knockWithLink(link: string, code: string, request: IncomingMessage): Knock {
    return this.#knock(link, ["link", code], request);
  }

  #knock(shown: string, rest: readonly unknown[], request: IncomingMessage): Knock {
    const credential = sha256Hex(shown);
    const whole = sha256Hex(JSON.stringify([shown, ...rest]));
    const until = this.#refused.get(whole);
    if (until !== undefined && this.#options.stopwatch.now() < until) {
      throw new SallyportError("unauthenticated", { hint: JUST_REFUSED });
    }
    const isKnown = this.#known.has(credential);
    const address = this.#options.addressOf(request);
    if (!isKnown) slowDown(this.#strangers.pass(address));
    return {
      known: () => {
        if (!isKnown) this.#strangers.giveBack(address);
        remember(this.#known, credential, true);
      },
      refused: () => remember(this.#refused, whole, this.#options.stopwatch.now() + REFUSED_MS),
    };
  }
}

const NO_CREDENTIAL: Knock = { known() {}, refused() {} };
const JUST_REFUSED =
  "The same token was refused a moment ago. Send a valid token, or sign in again.";

function ownHeaders({ headers }: IncomingMessage): readonly unknown[] {
  return Object.entries(headers).filter(([name]) => name.startsWith("x-sallyport-"));
}

/** The newest last; the oldest are forgotten. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MOST_REMEMBERED && oldest !== undefined) map.delete(oldest);
}

function slowDown(waitMs: number): void {
  if (waitMs === 0) return;
  const hint = `Too many unknown tokens from this address: retry in ${waitMs} ms.`;
  throw new SallyportError("too_fast", { waitMs, hint });
}

export type OriginCheck = ReturnType<typeof createOriginCheck>;

/**
 * Host and Origin, each against its own list: a page that uses DNS rebinding sends a foreign Host, a page of another site
 * a foreign Origin. `origins` like `http://127.0.0.1:4100`; all others are refused.
 */
export function createOriginCheck(origins: readonly string[]) {
  const [main = ""] = origins;
  const allowed = new Set(origins);
  const hosts = new Set(origins.flatMap(hostsOf));
  return {
    /** The address for people: the first of the list. */
    main,
    isSecure: main.startsWith("https:"),
    /** Throws wrong_origin. */
    check(request: IncomingMessage): void {
      const { host, origin, cookie, authorization } = request.headers;
      if (host === undefined || !hosts.has(host.toLowerCase()) || isDoubled(request, "host")) {
        throw refused("host");
      }
      if (isDoubled(request, "origin")) throw refused("origin");
      if (origin !== undefined) {
        if (!allowed.has(origin)) throw refused("origin");
        return;
      }
      // Browsers send Origin with every request that changes state. A client without it is not a browser and has no cookie.
      const isPlainRead = request.method === "GET" || request.method === "HEAD";
      const byCookie = cookie !== undefined && authorization === undefined;
      if (!isPlainRead && byCookie) throw refused("origin");
      const site = request.headers["sec-fetch-site"];
      if (!isPlainRead && site !== undefined && site !== "same-origin" && site !== "none") {
        throw refused("origin");
      }
    },
  };
}

/** Browsers omit the default port; other programs may send it. */
function hostsOf(origin: string): readonly string[] {
  const { host, hostname, port, protocol } = new URL(origin);
  return port === "" ? [host, `${hostname}:${protocol === "https:" ? 443 : 80}`] : [host];
}

/** Node keeps the first Host and joins other repeated headers; two of them are an attack or a broken proxy. */
function isDoubled(request: IncomingMessage, name: string): boolean {
  let count = 0;
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    if (request.rawHeaders[at]?.toLowerCase() === name) count += 1;
  }
  return count > 1;
}

function refused(what: "host" | "origin"): SallyportError {
  const hint =
    what === "host"
      ? "Use the address that this server printed, or add yours to `remote.origins`."
      : "Open the console under the server's own address; pages of other servers cannot use it.";
  return new SallyportError("wrong_origin", { what, hint });
}
