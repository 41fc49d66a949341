import type { VerifyOptions } from "../audit/verify.ts";
import type { Delegations } from "../delegation/delegations.ts";
import type { Gate } from "../gate/create-gate.ts";
import type { Session } from "../gate/session.ts";
import type { Role } from "../model/identity.ts";
import type { Store } from "../store/store.ts";
import type { Clock } from "../util/clock.ts";
import type { Random } from "../util/random.ts";
import type { Timers } from "../util/timers.ts";
import type { Authenticator } from "./authenticate.ts";
import type {
  ConnectionLimits,
  Connections,
  Rate,
  StreamLimits,
  Streams,
  TaskQuota,
  TaskQuotaLimits,
  Turnstile,
} from "./connections.ts";
import type { Door } from "./door.ts";
import type { Feeds } from "./feeds.ts";
import type { Metrics } from "./metrics.ts";
import type { SignInWithOidc } from "./oidc.ts";
import type { OriginCheck } from "./origin-check.ts";
import type { SessionBook } from "./session-book.ts";

/** A gate, with the facades that are optional. */
export type ServedGate = Gate & {
  readonly delegations?: Delegations<Session>;
};

/** What the routes of one server share. */
export interface Services {
  readonly store: Store;
  /** By tenant. */
  readonly gates: Readonly<Record<string, ServedGate>>;
  readonly authenticator: Authenticator;
  readonly origins: OriginCheck;
  readonly sessions: SessionBook;
  readonly feeds: Feeds;
  readonly metrics: Metrics;
  readonly connections: Connections;
  readonly streams: Streams;
  readonly door: Door;
  readonly taskQuota: TaskQuota;
  readonly turnstiles: { readonly senders: Turnstile; readonly tenants: Turnstile };
  readonly oidc: SignInWithOidc | undefined;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly limits: HttpLimits;
  /** What a verification of the trail is compared with. */
  readonly audit: Pick<VerifyOptions, "anchors" | "publicKeys">;
  readonly signIn: SignInTerms;
  openapi(): Record<string, unknown>;
  /** False once the server is closing. */
  isOpen(): boolean;
  report(error: unknown): void;
}

export interface HttpLimits {
  readonly bodyBytes: number;
  /** How long receiving a body may take. */
  readonly bodyMs: number;
  /** How long a keyed request may be silent before it counts as interrupted. */
  readonly keyLeaseMs: number;
  readonly keyKeepMs: number;
  /** Concurrent requests of agents; more are refused and may be repeated. */
  readonly inFlight: number;
  /** Rate limit of one sender; more is refused and may be repeated. */
  readonly senderRate: Rate;
  /** Rate limit of all agents of a tenant together, so that they do not slow down other tenants. */
  readonly tenantRate: Rate;
  /** How many unknown tokens of one address are looked up; more are refused and may be repeated. */
  readonly strangerRate: Rate;
  readonly connections: ConnectionLimits;
  readonly streams: StreamLimits;
  /** Limit of unfinished tasks that one sender added. */
  readonly openTasks: TaskQuotaLimits;
  readonly heartbeatMs: number;
  /** How much may be buffered for a slow listener before it is disconnected; it resumes where it was. */
  readonly listenerBytes: number;
}

export interface SignInTerms {
  readonly cookie: string;
  readonly sessionMs: number;
  readonly linkMs: number;
  /** How long an invitation may wait to be confirmed, and its link to be used. */
  readonly inviteMs: number;
  /**
   * How recent a sign-in must be to approve something irreversible, to propose or confirm rules, and to administer. Other
   * decisions need a live session.
   */
  readonly freshMs: number;
  /** Default roles of a signed-in person. */
  readonly roles: readonly Role[];
}
