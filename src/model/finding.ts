import {
  data,
  either,
  instant,
  integer,
  key,
  oneOf,
  place,
  prose,
  type RecordOf,
  record,
  text,
} from "./record.ts";

/** What a gate policy says. `hard-deny` can never be overridden; the others need less and less. */
export interface Finding {
  readonly severity: FindingSeverity;
  readonly policy: string;
  /** Written for the model or person that reads it: what was refused, why, what to do instead. */
  readonly message: string;
}

/** Most severe first. */
export const FINDING_SEVERITIES = [
  "hard-deny",
  "soft-deny",
  "evidence-required",
  "warning",
] as const;
export type FindingSeverity = (typeof FINDING_SEVERITIES)[number];

/**
 * Every gate answers one of four, always with what led to it: allow, review (both machine reviews, no person), ask (both
 * reviews and a person), deny. Deny beats ask, ask beats review, review beats allow.
 */
export interface GateAnswer {
  readonly answer: "allow" | "review" | "ask" | "deny";
  readonly findings: readonly Finding[];
}

/**
 * Where in a run policies are asked. Not called checkpoints: a checkpoint asks a person.
 *
 *     const isPoint = GATE_POINTS.includes("pre-tool");
 */
export const GATE_POINTS = [
  "pre-tool",
  "post-tool",
  "pre-write",
  "post-write",
  "pre-verify-command",
  "pre-delegation",
  "post-delegation",
  "pre-phase-transition",
] as const;
export type GatePoint = (typeof GATE_POINTS)[number];

export const GRANTORS = ["user", "plan-revision", "evidence-update"] as const;

/** This finding anywhere, whatever its policy says at one point, or whatever it says in one phase. */
type GrantScope =
  | { readonly kind: "finding" }
  | { readonly kind: "point"; readonly point: GatePoint }
  | { readonly kind: "phase"; readonly phase: string };

/** Recorded permissions to override a finding. */
export const GRANTS = record(
  "grants",
  {
    /** `AUTH001`. */
    id: key<`AUTH${string}`>(),
    /** The session it is for; empty for all of the tenant. */
    sessionId: text(),
    revoked: either({ no: "live", yes: "revoked" }).as("state"),
    grantor: oneOf(GRANTORS),
    /** The finding it is about, by policy and message. */
    finding: data<{ readonly policy: string; readonly message: string }>(),
    scope: data<GrantScope>(),
    by: text().as("given_by"),
    reason: prose(),
    /** Epoch milliseconds from which on it is void; undefined lasts until it is revoked. */
    expiresAt: integer().optional(),
    createdAt: instant(),
    updatedAt: instant(),
    ord: place(),
  },
  { indexes: [{ name: "by_session", on: ["session_id", "ord"] }] },
);

export type RecordedGrant = RecordOf<typeof GRANTS>;

/** What policies know of a grant. */
export type Grant = Pick<RecordedGrant, "id" | "finding" | "grantor" | "scope" | "expiresAt"> & {
  readonly revoked?: boolean;
};

export const USER_GRANT_MS = 30 * 60 * 1000;

/** `AUTH001`, `AUTH002` …; from the thousandth on they grow longer. */
export function grantId(number: number): Grant["id"] {
  return `AUTH${String(number).padStart(3, "0")}`;
}
