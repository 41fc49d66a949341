import { PATHS, type RouteName } from "../http/paths.ts";
import type { AnswerOf, CallName, InputOf } from "../http/routes.ts";
import { SallyportError } from "../model/errors.ts";
import type { Random } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { webRandom } from "../util/web-random.ts";
import { type EventsOptions, type FeedEvent, followEvents } from "./events.ts";
import { createSender, type SendOptions, type SendParts } from "./send.ts";
import type { Session } from "./sign-in.ts";

export interface ClientOptions {
  /** Like http://127.0.0.1:4100. Left out in a browser: the server that the page came from. */
  readonly url?: string;
  /** For programs: an agent, an auditor. A token never decides; people sign in. */
  readonly token?: string;
  /** A person's own session, as `signIn` gives it. */
  readonly session?: Session;
  /** For a page of the server's own: the key that it was given when its person signed in. The browser adds the cookie. */
  readonly pageKey?: () => string | undefined;
  /** How often what is safe to repeat is tried again. */
  readonly retries?: number;
  readonly fetch?: typeof fetch;
  readonly timers?: Timers;
  readonly random?: Random;
}

/** Input is one object with everything; it may be left out where nothing has to be said. */
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
  /** The feed: each event once, in order, across broken lines. Shape: pulled. */
  events(options?: EventsOptions): AsyncGenerator<FeedEvent>;
  /** Everything that a paged call gives, page after page. Shape: pulled. */
  all<Item>(ask: (cursor: string | undefined) => Promise<Page<Item>>): AsyncGenerator<Item>;
  /** The whole trail as JSON Lines. */
  exportAudit(options?: Pick<SendOptions, "signal">): Promise<Response>;
  signOut(): Promise<void>;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** The server's nouns and verbs as functions. Throws SallyportError with the code that the server answered. */
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
    // Who has a cookie has to say where from; outside a browser nobody else adds it.
    return () => ({ Cookie: cookie, "X-Sallyport-Key": key, Origin: new URL(url).origin });
  }
  return (): Record<string, string> => {
    const key = pageKey?.();
    return key === undefined ? {} : { "X-Sallyport-Key": key };
  };
}

/** Something between us and the server may answer in its place, and with success. */
async function jsonIn(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    const hint = `It answered ${response.status} with something that is not JSON. Check the address.`;
    throw new SallyportError("internal_error", { hint }, cause);
  }
}
