import type { IncomingMessage } from "node:http";
import { SallyportError } from "../model/errors.ts";
import type { Store } from "../store/store.ts";
import type { Token } from "../store/tokens.ts";
import type { Clock } from "../util/clock.ts";
import { readCookie } from "./cookie.ts";
import { readSecret, readSessionSecret, type Secret } from "./secret.ts";

/** Who sent a request. The tenant comes from the verified token and from nowhere else. */
export interface Authenticator {
  /** Throws unauthenticated. */
  identify(request: IncomingMessage): Promise<Signed>;
  /** Still who they were? Asked while a stream is open. */
  isValid(signed: Signed): Promise<boolean>;
  /** Somebody ended this token in this process: do not wait for the memory to fade. */
  forget(): void;
}

export interface Signed {
  readonly token: Token;
  readonly secret: Secret;
}

export interface AuthenticatorOptions {
  readonly store: Store;
  /** Tenants that are served here. */
  readonly tenants: ReadonlySet<string>;
  readonly cookie: string;
  /** For how long a found token is not looked up again: revoking takes at most so long in other processes. */
  readonly memoryMs: number;
  /** Never steps back. */
  readonly stopwatch: Clock;
}

/** The page key of a session, with every request: reads, the feed and downloads too. */
const PAGE_KEY_HEADER = "x-sallyport-key";

/** More than that is somebody trying out tokens, who is welcome to a database look-up each time. */
const MOST_REMEMBERED = 10_000;

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
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
    async identify(request) {
      const { authorization } = request.headers;
      const secret = authorization === undefined ? sessionSecret(request) : bearer(authorization);
      const token = secret === undefined ? undefined : await find(secret);
      // A session is no bearer token and the other way round; a link is neither.
      const kind = authorization === undefined ? "session" : "token";
      if (secret === undefined || token?.kind !== kind) {
        throw new SallyportError("unauthenticated", { hint: NOBODY });
      }
      return { token, secret };
    },
    isValid: async ({ secret }) => (await find(secret)) !== undefined,
    forget: () => known.clear(),
  };
}

const NOBODY = "Send a live token as `Authorization: Bearer …`, or sign in with a link.";

function bearer(authorization: string): Secret | undefined {
  const text = /^Bearer ([!-~]+)$/i.exec(authorization)?.[1];
  return text === undefined ? undefined : readSecret(text);
}
