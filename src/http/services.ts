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

/** A port, with the rooms that not every port has. */
export type ServedPort = Gate & {
  readonly delegations?: Delegations<Session>;
};

/** What the routes of one server share. */
export interface Services {
  readonly store: Store;
  /** By tenant. */
  readonly gates: Readonly<Record<string, ServedPort>>;
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
  /** False once the server is closing: then it is no longer ready for new work. */
  isOpen(): boolean;
  report(error: unknown): void;
}

export interface HttpLimits {
  readonly bodyBytes: number;
  /** How long a body may take to come in. */
  readonly bodyMs: number;
  /** How long nothing may be heard of a request with an idempotency key before it counts as broken off. */
  readonly keyLeaseMs: number;
  readonly keyKeepMs: number;
  /** Requests of agents that are worked on at once; more are refused and may come again. */
  readonly inFlight: number;
  /** What one sender may send, whoever it is; more is refused and may come again. */
  readonly senderRate: Rate;
  /** What the agents of one tenant may send together, so that they do not slow down the others. */
  readonly tenantRate: Rate;
  /** How many unknown tokens of one address are looked up; more are refused and may come again. */
  readonly strangerRate: Rate;
  readonly connections: ConnectionLimits;
  readonly streams: StreamLimits;
  /** What one sender may have added to the task list that nobody has finished. */
  readonly openTasks: TaskQuotaLimits;
  readonly heartbeatMs: number;
  /** How much may wait for a slow listener before it is cut off; it goes on where it was. */
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
  /** What a signed-in person may do when nobody says otherwise. */
  readonly roles: readonly Role[];
}
