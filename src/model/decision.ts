import type { JsonValue } from "../util/json.ts";
import { SallyportError } from "./errors.ts";
import { checkName, type Instant, isName } from "./names.ts";
import {
  bytes,
  data,
  flag,
  instant,
  key,
  oneOf,
  prose,
  type RecordOf,
  record,
  text,
} from "./record.ts";

/**
 * The life of a decision. Types, checks, documentation and buttons are derived from this table; the names are stored and
 * never renamed.
 *
 *     const next = MOVES.approved; // ["executed", "failed"]
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

/**
 * The seven states, in the order of the table.
 *
 *     const options = DECISION_STATES.map((state) => ({ value: state }));
 */
export const DECISION_STATES = Object.keys(MOVES) as readonly DecisionState[];

export function isDecisionState(name: unknown): name is DecisionState {
  return typeof name === "string" && Object.hasOwn(MOVES, name);
}

/**
 * Looks only at the table above: no guard is asked, and a name outside the seven is never legal.
 *
 *     isLegal("pending_tech", "approved"); // false
 */
export function isLegal(from: string, to: string): boolean {
  return isDecisionState(from) && (MOVES[from] as readonly string[]).includes(to);
}

/**
 * Final states have no way out; the other three are in flight.
 *
 *     isFinal("executed"); // true
 */
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

/**
 * The verdict of a review that has not happened yet.
 *
 *     const isReviewed = decision.techVerdict.validator !== NO_VERDICT.validator;
 */
export const NO_VERDICT: Verdict = Object.freeze({
  approved: false,
  score: 0,
  reason: "",
  severity: "",
  validator: "",
  policyVersion: "",
});

/** One unit of review: approved, rejected or executed as a whole, however many things its payload touches. */
export const DECISIONS = record(
  "decisions",
  {
    id: key<DecisionId>(),
    sessionId: text<SessionId>(),
    state: oneOf(DECISION_STATES),
    /** What an agent wants to change: opaque to staging, decoded only by validators and the executor. */
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
    /** Null unless it was shown; see `Decision`. */
    machineVerdict: data<PackedVerdict>({ check: isPackedVerdict }).optional(),
    /** Undefined unless executed; stored as given and never inspected. */
    executionProof: data<unknown>().optional(),
    /** Empty unless failed. */
    executionError: prose().optional(""),
    /** Whether people were asked about it. */
    asked: flag(),
    /** When a call of the port was staged, and null as soon as people were asked or it was refused; null for all others. */
    unasked: instant().optional(),
    /** When a process approved it that lacks one of its tools; null as soon as it is begun or closed. */
    awaitsTool: instant().optional(),
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
      { name: "awaits_tool", on: ["awaits_tool"], whenSet: true },
    ],
  },
);
type StoredDecision = RecordOf<typeof DECISIONS>;
export type Diff = StoredDecision["diff"];
export interface Decision
  extends Omit<
    StoredDecision,
    "metadata" | "origin" | "machineVerdict" | "asked" | "unasked" | "awaitsTool"
  > {
  /** For decisions staged through the engine it mirrors `diff.metadata`. */
  readonly metadata: Metadata;
  /**
   * Present when `createGate` staged it for an agent: then the metadata holds the gate's own facts. The metadata of
   * every other decision belongs to its stager, and only guards read it.
   */
  readonly origin?: "port";
  /**
   * What the business validator said before it was shown; whoever decided then gave `bizVerdict`, and signed a hash with this in
   * it. `NO_VERDICT` for a decision that was not shown.
   */
  readonly machineVerdict: Verdict;
  /** A process approved it that lacks one of its tools: it waits for one that has them all. */
  readonly awaitsTool?: true;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** A verdict as it is stored beside two others: its values without their names. */
type PackedVerdict = readonly [
  approved: Verdict["approved"],
  score: Verdict["score"],
  severity: Severity,
  reason: string,
  validator: string,
  policyVersion: string,
];

/** Throws invalid_input. */
export function packVerdict(given: object): PackedVerdict {
  const verdict = given as Verdict;
  checkVerdict(verdict);
  const { approved, score, severity, reason, validator, policyVersion } = verdict;
  return [approved, score, severity, reason, validator, policyVersion];
}

export function unpackVerdict(packed: PackedVerdict): Verdict {
  const [approved, score, severity, reason, validator, policyVersion] = packed;
  return { approved, score, reason, severity, validator, policyVersion };
}

function isPackedVerdict(value: unknown): boolean {
  return Array.isArray(value) && isVerdict(unpackVerdict(value as unknown as PackedVerdict));
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
    machineVerdict: NO_VERDICT,
    executionProof: undefined,
    executionError: "",
    createdAt: now,
    updatedAt: now,
  };
}

export const MAX_RAW_BYTES = 1024 * 1024;
const MAX_DEPTH = 64;

/** Everything that can be wrong with a draft is found before anything is written. */
export function checkDraft(draft: Decision): void {
  if (draft.state !== "pending_tech") {
    const hint = "Stage a fresh draft; a decision moves on only by being reviewed.";
    throw new SallyportError("illegal_transition", { from: String(draft.state), hint });
  }
  if (draft.sessionId === "") {
    const hint = "Name the session this decision belongs to; without one it could never be found.";
    throw new SallyportError("illegal_transition", { what: "session id", hint });
  }
  checkName("session id", draft.sessionId);
  checkName("source tool", draft.diff.sourceTool);
  if (!(draft.diff.raw instanceof Uint8Array)) {
    const hint = "Give the payload as bytes (Uint8Array); encode text with TextEncoder.";
    throw new SallyportError("invalid_input", { what: "raw payload", hint });
  }
  if (draft.diff.raw.byteLength > MAX_RAW_BYTES) {
    const hint = "Stage a reference to the data instead, or split it into several decisions.";
    const bytes = draft.diff.raw.byteLength;
    throw new SallyportError("payload_too_large", { bytes, limit: MAX_RAW_BYTES, hint });
  }
  checkMetadata(draft.diff.metadata);
  if (draft.metadata !== draft.diff.metadata) checkMetadata(draft.metadata);
}

function checkMetadata(metadata: Metadata): void {
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) {
    const hint = "Give metadata as an object of names and values; {} for none.";
    throw new SallyportError("invalid_input", { what: "metadata", hint });
  }
  if (isDeeperThan(metadata, MAX_DEPTH)) {
    const hint = "Flatten the metadata, or put the structure into the payload.";
    throw new SallyportError("payload_too_large", { what: "metadata", depth: MAX_DEPTH, hint });
  }
}

/** Level by level instead of by recursion: hostile nesting must not end the process. */
function isDeeperThan(value: object, limit: number): boolean {
  let level: object[] = [value];
  const seen = new Set<object>();
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > limit) return true;
    level = level.flatMap((node) =>
      Object.values(node).filter((child): child is object => {
        if (typeof child !== "object" || child === null || ArrayBuffer.isView(child)) return false;
        return !seen.has(child) && seen.add(child) !== undefined;
      }),
    );
  }
  return false;
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

/**
 * What a validator says of a decision. Only `approved` decides the route; severity says how serious a doubt is: `warn`
 * does not stop a commit but counts as a sample for the breaker, `block` counts as a failure.
 */
export interface Verdict {
  readonly approved: boolean;
  /** 0 to 1 by convention; the validator decides what it means. */
  readonly score: number;
  readonly reason: string;
  readonly severity: Severity;
  /** Who reviewed and under which policy: both are for the audit log. */
  readonly validator: string;
  readonly policyVersion: string;
}

/** Empty is read as `warn`. */
export type Severity = "" | "warn" | "block";

export function effectiveSeverity(severity: Severity): "warn" | "block" {
  return severity === "block" ? "block" : "warn";
}

/** Longer reasons are not read and fill the audit log. */
export const MAX_REASON = 64 * 1024;

/** Throws invalid_input. */
export function checkReason(reason: string): void {
  if (typeof reason === "string" && reason.length <= MAX_REASON) return;
  const hint = `Give the reason as text of at most ${MAX_REASON} characters.`;
  throw new SallyportError("invalid_input", { what: "reason", hint });
}

/** What is wrong with a verdict, as a sentence without its full stop; undefined when nothing is. */
export function verdictProblem(verdict: Verdict): string | undefined {
  if (typeof verdict !== "object" || verdict === null) return "A verdict is an object";
  if (typeof verdict.approved !== "boolean") return "approved must be true or false";
  if (typeof verdict.score !== "number" || !(Math.abs(verdict.score) <= 1e9)) {
    return "score must be a finite number between -1e9 and 1e9";
  }
  if (typeof verdict.reason !== "string" || verdict.reason.length > MAX_REASON) {
    return `reason must be text of at most ${MAX_REASON} characters`;
  }
  if (!["", "warn", "block"].includes(verdict.severity)) {
    return 'severity must be "warn", "block" or empty';
  }
  if (typeof verdict.policyVersion !== "string") return "policyVersion must be text";
  if (!isName(verdict.validator)) return "validator must name who reviewed";
  return undefined;
}

/** Throws invalid_input. */
export function checkVerdict(verdict: Verdict): void {
  const problem = verdictProblem(verdict);
  if (problem === undefined) return;
  throw new SallyportError("invalid_input", { what: "verdict", hint: `${problem}.` });
}

/**
 * A gate before commit. Both review tiers use this one contract. Shape: callback; the engine waits for the answer. A
 * validator that throws, or does not answer in time, means no.
 */
export interface Validator {
  readonly name: string;
  review(request: ReviewRequest, options: ReviewOptions): Promise<Verdict> | Verdict;
}

/** What a validator reviews: the payload as it was staged and, for calls of an agent, the same calls decoded. */
export interface ReviewRequest extends Diff {
  /** Empty for a decision that another platform staged: only that platform knows what its bytes mean. */
  readonly calls: readonly ReviewedCall[];
  readonly session: SessionId;
  /** Empty for a decision that another platform staged. */
  readonly agent: string;
}

export interface ReviewedCall {
  readonly tool: string;
  readonly input: JsonValue;
  readonly callId: string;
}

export interface ReviewOptions {
  readonly signal: AbortSignal;
}

/**
 * An orthogonal yes or no on a move that the state table allows. The decision it sees already carries the fresh verdict,
 * while its state is still the old one. Shape: callback. A guard that throws means no.
 */
export interface Guard {
  allows(
    decision: Decision,
    target: DecisionState,
    options: ReviewOptions,
  ): Promise<boolean> | boolean;
}
