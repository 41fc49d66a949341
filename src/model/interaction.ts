import { isDeepStrictEqual } from "node:util";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import { checkReason, type DecisionId, type SessionId } from "./decision.ts";
import { SallyportError } from "./errors.ts";
import { checkName, type Instant } from "./names.ts";
import type { OperationId } from "./operation.ts";
import {
  data,
  flag,
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

/** The life of a question to a person: open, then closed once, for good. The names are stored and never renamed. */
export const INTERACTION_MOVES = {
  open: ["resolved", "canceled"],
  resolved: [],
  canceled: [],
} as const satisfies Record<string, readonly string[]>;

export type InteractionStatus = keyof typeof INTERACTION_MOVES;
export const INTERACTION_STATUSES = Object.keys(INTERACTION_MOVES) as readonly InteractionStatus[];

export const INTERACTION_TYPES = ["ask_user", "confirm", "connection_lost"] as const;
export type InteractionType = (typeof INTERACTION_TYPES)[number];
export type InteractionId = string;

/** The id of the question about a lost outcome. One per attempt: an attempt that is repeated and lost again is another one. */
export function lostId(operationId: string, attempt: number): InteractionId {
  return `${operationId}.lost-${attempt}`;
}

/** How a question was closed, and what that means for its status. */
export const INTERACTION_OUTCOMES = {
  answered: "resolved",
  approved: "resolved",
  rejected: "resolved",
  /** Another question took its place: the input was edited, or what was shown is no longer what would run. */
  superseded: "resolved",
  /** Silence means no. */
  expired: "canceled",
  canceled: "canceled",
} as const satisfies Record<string, InteractionStatus>;

export type InteractionOutcome = keyof typeof INTERACTION_OUTCOMES;
const OUTCOMES = Object.keys(INTERACTION_OUTCOMES) as readonly InteractionOutcome[];

/** Written into every snapshot, so that a later version knows what it reads. */
export const SNAPSHOT_VERSION = 1;

/** A tool call that waits, as text: this layer knows no tool's arguments, runs nothing and takes nothing back. */
export interface PendingTool {
  readonly tool_name: string;
  readonly args_json: string;
  readonly summary: string;
}

/** What a flow stores of the question it stopped at, and where it resumes. Plain JSON with exactly these keys. */
export interface InteractionSnapshot {
  readonly version: number;
  readonly interaction_id: InteractionId;
  readonly type: InteractionType;
  readonly status: InteractionStatus;
  readonly display_text: string;
  readonly resume_node: string;
  readonly resume_phase: string;
  readonly resume_step: number;
  /** Left out when empty. */
  readonly pending_tool?: PendingTool;
  /** Left out when empty. */
  readonly metadata?: JsonObject;
}

/** One remark between reviewers and the agent about an open question; the audit log has its time. */
export interface Remark {
  readonly by: string;
  readonly text: string;
}

const ANY_SIZE = { limit: "none" } as const;
const LIST = { ...ANY_SIZE, check: Array.isArray } as const;

/**
 * A durable question to a person, from whatever depth it was asked. A confirmation has the id of the decision it is about:
 * a decision is asked about once. `dueAt` and the time of `escalation` are null once it is closed, so that a query by time
 * finds only open ones.
 */
export const INTERACTIONS = record(
  "interactions",
  {
    id: key<InteractionId>(),
    type: oneOf(INTERACTION_TYPES),
    status: oneOf(INTERACTION_STATUSES),
    sessionId: text<SessionId>(),
    /** The agent's call that waits for it, so that the answer finds its question. */
    callId: text(),
    /** What was shown; an answer that carries another one is not an answer to this. */
    hash: text(),
    /** What a `confirm` shows, without what the other columns say (see `storedPreview`); null for the other types. */
    preview: data<StoredPreview>().optional(),
    /** The hashes of its tools' definitions, one per call. Earlier versions stored the definitions themselves here. */
    definitions: data<readonly (string | JsonObject)[]>(LIST).optional(),
    /** The decision that a confirmation is about, empty for the others. */
    decisionId: text<DecisionId | "">(),
    /** The operation whose outcome was lost, empty for the others. */
    operationId: text<OperationId | "">(),
    displayText: prose(ANY_SIZE).packedIn("facts"),
    /** The agent, its delegators, and the people on whose behalf they act: none of them may decide. */
    chain: data<readonly string[]>(LIST).packedIn("facts"),
    /** What may be answered to a question; empty for free text. */
    choices: data<readonly string[]>(LIST).optional([]).packedIn("facts"),
    pendingTool: data<PendingTool>(ANY_SIZE).optional().packedIn("facts"),
    /** Facts for readers, and for the flow that resumes. */
    metadata: data<JsonObject>(ANY_SIZE).packedIn("facts"),
    requires: data<Requirement>(LIST)
      .optional([{ name: "review", count: 1 }])
      .packedIn("facts"),
    votes: data<readonly Vote[]>().optional([]),
    remarks: data<readonly Remark[]>().optional([]),
    /** Whose turn it is: reviewers may have asked the agent back. */
    waitsFor: oneOf(["people", "agent"]),
    /** Empty: anybody who may decide. */
    assignedTo: text(),
    deadline: instant(),
    dueAt: instant().optional(),
    escalation: {
      at: instant().as("escalate_at").optional(),
      to: text().as("escalate_to"),
    },
    escalated: flag(),
    /** Undefined while it is open. */
    outcome: oneOf(OUTCOMES).optional(),
    answer: data<JsonValue>(ANY_SIZE).optional().packedIn("answer"),
    reason: prose(ANY_SIZE).optional("").packedIn("answer"),
    answeredBy: text(),
    /** The question that took its place. */
    supersededBy: text<InteractionId | "">(),
    /** Counts the changes: of two concurrent changes one finds the version it expects. */
    version: integer(),
    createdAt: instant(),
    updatedAt: instant(),
    /** Order of opening; for paging. */
    ord: place(),
  },
  {
    indexes: [
      { name: "by_session", on: ["session_id", "ord"] },
      { name: "by_status", on: ["status", "ord"] },
      { name: "by_due", on: ["due_at"], whenSet: true },
      { name: "by_escalation", on: ["escalate_at"], whenSet: true },
    ],
  },
);

export interface Interaction
  extends Omit<RecordOf<typeof INTERACTIONS>, "preview" | "definitions" | "dueAt" | "escalation"> {
  /** When and to whom it escalates if it is unanswered; undefined for never. */
  readonly escalation: { readonly at: Instant; readonly to: string } | undefined;
}

/** The tool definitions that people were shown, each stored once under its SHA-256. */
export const DEFINITIONS = record("definitions", {
  id: key(),
  definition: data<JsonObject>(ANY_SIZE),
});

/** Maps a keyed call of a session to its decision, so that a repeated call finds it instead of proposing a second one. */
export const CALL_KEYS = record("call_keys", {
  id: key(),
  decisionId: text<DecisionId>(),
  step: integer(),
  actionHash: text(),
  createdAt: instant(),
});

/** What a caller gives to open a question; the store adds the rest. */
export interface InteractionDraft extends Omit<Question, "text"> {
  readonly type: InteractionType;
  readonly sessionId: SessionId;
  readonly displayText: string;
  readonly hash: string;
  readonly chain: readonly string[];
  /** Instead of `deadlineMs`, which counts from now by the store's clock: a moment that something else depends on too. */
  readonly deadlineAt?: Instant;
  readonly decisionId?: DecisionId;
  readonly operationId?: OperationId;
  readonly pendingTool?: PendingTool;
  readonly requires?: Requirement;
}

/** What an agent asks a person. Asked twice with the same id it is one question. */
export interface Question {
  /** The agent's own id for it, unique in its session. */
  readonly callId: string;
  readonly text: string;
  /** What may be answered; left out: anything. */
  readonly choices?: readonly string[];
  /** Silence after this time means no answer. */
  readonly deadlineMs?: number;
  readonly assignedTo?: string;
  readonly escalation?: { readonly afterMs: number; readonly to: string };
  readonly metadata?: JsonObject;
}

/** What became of a question so far. */
export type QuestionAnswer =
  | { readonly answer: "pending"; readonly interactionId: InteractionId; readonly text: string }
  | {
      readonly answer: "answered";
      readonly interactionId: InteractionId;
      readonly value: JsonValue;
      readonly by: string;
    }
  /** It expired, or was canceled. */
  | {
      readonly answer: "unanswered";
      readonly interactionId: InteractionId;
      readonly outcome: Interaction["outcome"];
      readonly text: string;
    };

/**
 * Who must say yes: so many different people for each factor ("one of security, two of operations"). A person counts for
 * one factor only, and one no is a no.
 */
export type Requirement = readonly Factor[];

export interface Factor {
  readonly name: string;
  readonly count: number;
  /** Who may give it; left out: anybody who may decide at all. */
  readonly from?: readonly string[];
}

/** The audit log has its time. */
export interface Vote {
  readonly by: string;
  readonly factor: string;
}

export const ONE_PERSON: Requirement = [{ name: "review", count: 1 }];

/** What is still missing; empty when all have approved. */
export function missingFactors(requires: Requirement, votes: readonly Vote[]): Requirement {
  return requires.flatMap((factor) => {
    const given = votes.filter((vote) => vote.factor === factor.name).length;
    return given >= factor.count ? [] : [{ ...factor, count: factor.count - given }];
  });
}

/** The factor that this person's yes counts for: the named one, or the first that is open to them. Undefined: none is. */
export function factorFor(
  person: string,
  requires: Requirement,
  votes: readonly Vote[],
  named?: string,
): Factor | undefined {
  return missingFactors(requires, votes).find(
    ({ name, from }) =>
      (named === undefined || named === name) && (from === undefined || from.includes(person)),
  );
}

/** A sentence about what is wrong with it, undefined when it can be met. */
export function requirementProblem(requires: Requirement): string | undefined {
  if (requires.length === 0) return "Name at least one factor: nothing is approved by nobody";
  const names = new Set(requires.map(({ name }) => name));
  if (names.size < requires.length) return "Give every factor its own name";
  for (const { name, count, from } of requires) {
    if (name === "") return "Give every factor a name";
    if (!Number.isSafeInteger(count) || count < 1) return `Factor "${name}" needs at least one yes`;
    if (from !== undefined && new Set(from).size < count) {
      return `Factor "${name}" needs ${count} people and names only ${new Set(from).size}`;
    }
  }
  return undefined;
}

/** A hundred years: longer is a mistake, and no database overflows on it. */
const MAX_MS = 100 * 365 * 24 * 3_600_000;

/** Finds everything that can be wrong with a question before anything is written. Throws invalid_input. */
export function checkQuestion(draft: InteractionDraft): void {
  checkName("session id", draft.sessionId);
  checkName("call id", draft.callId);
  checkName("hash", draft.hash);
  checkReason(draft.displayText);
  if (draft.displayText.trim() === "") wrong("question", "Say what you ask: the text is empty.");
  if (draft.deadlineAt === undefined) checkSpan("deadline", draft.deadlineMs ?? 0);
  if (draft.escalation !== undefined) {
    checkSpan("escalation", draft.escalation.afterMs);
    checkName("escalation", draft.escalation.to);
  }
  const problem = requirementProblem(draft.requires ?? ONE_PERSON);
  if (problem !== undefined) wrong("requirement", `${problem}.`);
}

function checkSpan(what: string, ms: number): void {
  if (Number.isSafeInteger(ms) && ms >= 1 && ms <= MAX_MS) return;
  wrong(what, `Give the ${what} as whole milliseconds, at least 1: every question ends some day.`);
}

function wrong(what: string, hint: string): never {
  throw new SallyportError("invalid_input", { what, hint });
}

const CLOSED = {
  answered: "answered it",
  approved: "said yes",
  rejected: "said no",
  superseded: "put another question in its place",
  expired: "no one answered in time",
  canceled: "called it off",
} as const;

/** Tells the one who came second who was first and what was decided. */
export function whyClosed(closed: Interaction): SallyportError {
  const { id, outcome = "canceled", answeredBy: by, updatedAt: at, supersededBy } = closed;
  const said =
    outcome === "expired"
      ? "No one answered in time, and silence means no."
      : `${by} was first and ${CLOSED[outcome]}.`;
  const next = supersededBy === "" ? "" : ` Look at ${supersededBy} instead.`;
  return new SallyportError("already_answered", {
    id,
    outcome,
    by,
    at,
    ...(supersededBy === "" ? {} : { supersededBy }),
    hint: `${said} Your answer changed nothing.${next}`,
  });
}

/** The verdict of a question that was closed without a yes. */
export function noOf({ by, reason }: { readonly by: string; readonly reason: string }) {
  return {
    approved: false,
    score: 0,
    severity: "block",
    reason,
    validator: by,
    policyVersion: "",
  } as const;
}

/** Only what was found out closes the question about a lost outcome. */
export function staysOpen({ id, type }: Interaction): SallyportError {
  const hint =
    "What became of the call is still open. Say whether it happened; give it up if no one can find out.";
  return new SallyportError("illegal_transition", { id, type, hint });
}

/** It is open and unchanged, so the hash, the deadline or the decision behind it did not match. */
export function whyNotAnswered(
  { id, deadline, hash }: Interaction,
  step: number,
  seen: unknown,
): SallyportError {
  // With the right hash, only the deadline can be the reason.
  if (step === 0 && seen === hash) {
    const hint = `This question expired at ${deadline}; it counted as no.`;
    return new SallyportError("approval_void", { id, deadline, expired: true, hint });
  }
  const hint =
    step === 0
      ? "It changed since you saw it: the hash is not the one of this question. Look at it again."
      : "It changed since you saw it: what it is about was changed or decided in another way. Look at it again.";
  return new SallyportError("approval_void", { id, deadline, hint });
}

/**
 * What a reviewer is shown of a decision and what the approval is bound to. A change of any of it changes the hash, and an
 * approval of another hash is no approval.
 */
export interface Preview {
  readonly decisionId: DecisionId;
  readonly tenant: string;
  readonly sessionId: SessionId;
  /** Who asks: the agent, its delegators, and on whose behalf. */
  readonly askers: readonly string[];
  /** SHA-256 of the staged payload: the action itself. */
  readonly actionHash: string;
  /** Output of the dry runs. */
  readonly dryRun: JsonValue;
  /** Version of each target when it was looked at. */
  readonly stateVersion: JsonValue;
  /** The highest safety class in the chain. */
  readonly safetyClass: string;
  readonly policyHash: string;
  /** Who must say yes. */
  readonly requires: Requirement;
  readonly expiresAt: Instant;
  /** Makes each approval good for one use: two equal actions have different hashes. */
  readonly nonce: string;
  /** The life of the store in which it was shown; a restored backup begins another one. */
  readonly epoch: string;
  /** The verdict of the business validator, next to which the person gives theirs. */
  readonly machine?: JsonObject;
  /** Present when both machine reviews decided and no person was asked. */
  readonly lane?: "review";
  /** What is wrong with a tool of it by its own declaration: no dry run and no undo. */
  readonly warnings?: readonly string[];
  /** The counter-checks of its calls, one per call; null for a call that needs none. */
  readonly deliverables?: JsonValue;
}

/** What a stored preview leaves out because it is usual. A class that is absent reads as the strictest. */
const USUAL: StoredPreview = { stateVersion: [""], safetyClass: "irreversible", epoch: "" };

/** What the other columns of a confirmation repeat of its preview. */
interface BesidePreview
  extends Pick<InteractionDraft, "sessionId" | "chain" | "requires" | "metadata"> {
  readonly tenant: string;
  readonly decisionId: DecisionId | "";
}

/** A preview without what its row repeats; `machine` is null when the preview has none and the row has one. */
type StoredPreview = Partial<Omit<Preview, "machine">> & { readonly machine?: JsonObject | null };

/** Each field of a preview is stored once: what the row of its question says, or is usual, is left out. */
export function storedPreview(preview: Preview, beside: BesidePreview): StoredPreview {
  const repeated: Readonly<Record<string, unknown>> = { ...repeatedIn(beside) };
  const own = Object.entries(preview).filter(
    ([name, value]) => !isDeepStrictEqual(repeated[name], value),
  );
  const lacks = preview.machine === undefined && repeated["machine"] !== undefined;
  return Object.fromEntries(lacks ? [...own, ["machine", null]] : own);
}

/** The preview that was shown. What the cell says counts, so a change of the cell or of the row changes the hash. */
export function wholePreview(stored: StoredPreview, beside: BesidePreview): Preview {
  const { machine, ...rest } = { ...repeatedIn(beside), ...stored };
  return (machine === null || machine === undefined ? rest : { ...rest, machine }) as Preview;
}

function repeatedIn(beside: BesidePreview): StoredPreview {
  const { decisionId, tenant, sessionId, chain: askers, requires = ONE_PERSON, metadata } = beside;
  const same = { ...USUAL, decisionId, tenant, sessionId, askers, requires };
  const machine = metadata?.["machine"];
  return isJsonObject(machine) ? { ...same, machine } : same;
}

/** H of the spine: canonical form, so that any language can recompute it. */
export function previewHash(preview: Preview): string {
  return sha256Hex(canonicalJson({ ...preview, v: 1 }));
}
