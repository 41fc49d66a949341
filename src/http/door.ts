import type { IncomingMessage } from "node:http";
import { SallyportError } from "../model/errors.ts";
import type { Clock } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import { readCookie } from "./authenticate.ts";
import { type Rate, Turnstile } from "./connections.ts";

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
}

const MOST_REMEMBERED = 10_000;
/** For how long a refused credential is not looked up again. */
const REFUSED_MS = 5_000;

/**
 * Stands before the look-up of a token, which costs a database query. Credentials that were good before pass; the same bad
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
    if (shown === undefined) return NOBODY;
    // Including the page key: a cookie without its key says nothing about the cookie with it.
    return this.#knock(shown, ownHeaders(request), request);
  }

  /** The same for a sign-in link, which is shown in a form. */
  knockWithLink(link: string, code: string, request: IncomingMessage): Knock {
    return this.#knock(link, ["link", code], request);
  }

  #knock(shown: string, rest: readonly unknown[], { socket }: IncomingMessage): Knock {
    const credential = sha256Hex(shown);
    const whole = sha256Hex(JSON.stringify([shown, ...rest]));
    const until = this.#refused.get(whole);
    if (until !== undefined && this.#options.stopwatch.now() < until) {
      throw new SallyportError("unauthenticated", { hint: JUST_REFUSED });
    }
    const isKnown = this.#known.has(credential);
    const address = socket.remoteAddress ?? "";
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

const NOBODY: Knock = { known() {}, refused() {} };
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
