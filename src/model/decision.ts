import { bytes, data, flag, instant, key, oneOf, prose, text } from "./field.ts";
import type { Instant } from "./names.ts";
import { type RecordOf, record } from "./record.ts";
import { NO_VERDICT, type Verdict, verdictProblem } from "./verdict.ts";

/**
 * The life of a decision. Types, checks, documentation and buttons are derived from this table; the names are stored and
 * never renamed.
 */
export const MOVES = {
  pending_tech: ["rejected_tech", "pending_ml"],
  pending_ml: ["rejected_ml", "approved"],
  approved: ["executed", "failed"],
  rejected_tech: [],
  rejected_ml: [],
  executed: [],
  failed: [],
} as const satisfies Record<string, readonly string[]>;

export type DecisionState = keyof typeof MOVES;
export type DecisionId = string;
export type SessionId = string;

export const DECISION_STATES = Object.keys(MOVES) as readonly DecisionState[];

export function isDecisionState(name: unknown): name is DecisionState {
  return typeof name === "string" && Object.hasOwn(MOVES, name);
}

/** Looks only at the table above: no guard is asked, and a name outside the seven is never legal. */
export function isLegal(from: string, to: string): boolean {
  return isDecisionState(from) && (MOVES[from] as readonly string[]).includes(to);
}

/** Final states have no way out; the other three are in flight. */
export function isFinal(state: string): boolean {
  return isDecisionState(state) && MOVES[state].length === 0;
}

/** Free facts beside the payload. Any structured-clonable value is kept as given. */
export type Metadata = Readonly<Record<string, unknown>>;

/** Flat metadata, the common case, is copied by hand: a structured clone costs ten times as much. */
export function copyMetadata(metadata: Metadata): Metadata {
  const flat = Object.values(metadata).every((value) => typeof value !== "object");
  return flat ? { ...metadata } : structuredClone(metadata);
}

/** One unit of review: approved, rejected or executed as a whole, however many things its payload touches. */
export const DECISIONS = record(
  "decisions",
  {
    id: key<DecisionId>(),
    sessionId: text<SessionId>(),
    state: oneOf(DECISION_STATES),
    /** What an agent wants to change: opaque to staging, decoded only by validators and by whoever executes it. */
    diff: {
      sourceTool: text(),
      raw: bytes(),
      metadata: data<Metadata>({ check: isObject }).as("diff_metadata"),
    },
    /** Null while it mirrors the diff's. */
    metadata: data<Metadata>({ check: isObject }).optional(),
    origin: oneOf(["port"]).optional(),
    /** `NO_VERDICT` until the tier has reviewed, recognisable by its empty validator name. */
    techVerdict: data<Verdict>({ check: isVerdict }).optional(NO_VERDICT),
    bizVerdict: data<Verdict>({ check: isVerdict }).optional(NO_VERDICT),
    /** Undefined unless executed; stored as given and never inspected. */
    executionProof: data<unknown>().optional(),
    /** Empty unless failed. */
    executionError: prose().optional(""),
    /** Whether people were asked about it. */
    asked: flag(),
    /** When a call of the port was staged, and null as soon as people were asked or it was refused; null for all others. */
    unasked: instant().optional(),
    createdAt: instant(),
    /** Refreshed by every move, so it also says when the current state was entered. */
    updatedAt: instant(),
  },
  {
    indexes: [
      { name: "by_session", on: ["session_id", "ord"] },
      { name: "by_state", on: ["state", "ord"] },
      { name: "by_ord", on: ["ord"], only: "postgres" },
      { name: "unasked", on: ["unasked"], whenSet: true },
    ],
  },
);
type StoredDecision = RecordOf<typeof DECISIONS>;
export type Diff = StoredDecision["diff"];
export interface Decision
  extends Omit<StoredDecision, "metadata" | "origin" | "asked" | "unasked"> {
  /** For decisions staged through the engine it mirrors `diff.metadata`. */
  readonly metadata: Metadata;
  /**
   * Present when `createGate` staged it for an agent: then the metadata holds the gate's own facts. The metadata of
   * every other decision belongs to whoever staged it, and only guards read it.
   */
  readonly origin?: "port";
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function isVerdict(value: unknown): boolean {
  return verdictProblem(value as Verdict) === undefined;
}

/** A record as it looks before a store has given it an id. The caller passes the time, as nothing in model/ asks for it. */
export function newDraft(sessionId: SessionId, diff: Diff, now: Instant): Decision {
  return {
    id: "",
    sessionId,
    state: "pending_tech",
    diff,
    metadata: diff.metadata,
    techVerdict: NO_VERDICT,
    bizVerdict: NO_VERDICT,
    executionProof: undefined,
    executionError: "",
    createdAt: now,
    updatedAt: now,
  };
}

/** The two review tiers, as data: where each starts, where its yes and its no lead, and which field holds its verdict. */
export const TIERS = {
  tech: { from: "pending_tech", yes: "pending_ml", no: "rejected_tech", field: "techVerdict" },
  business: { from: "pending_ml", yes: "approved", no: "rejected_ml", field: "bizVerdict" },
} as const satisfies Record<string, TierRow>;

export type Tier = keyof typeof TIERS;

interface TierRow {
  readonly from: DecisionState;
  readonly yes: DecisionState;
  readonly no: DecisionState;
  readonly field: "techVerdict" | "bizVerdict";
}
