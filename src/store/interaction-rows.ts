import { SallyportError } from "../model/errors.ts";
import {
  INTERACTION_OUTCOMES,
  INTERACTION_STATUSES,
  INTERACTION_TYPES,
  type Interaction,
  type InteractionDraft,
  type InteractionId,
  type InteractionOutcome,
  ONE_PERSON,
  type PendingTool,
  type Remark,
  requirementProblem,
  type Vote,
} from "../model/interaction.ts";
import { checkName } from "../model/names.ts";
import { fromIso, toIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { encodeValue } from "../util/value-codec.ts";
import { checkReason } from "./decision-rows.ts";
import {
  type Along,
  type Conditions,
  type EventPlan,
  NOW,
  type NowPlus,
  type Row,
  type Table,
  type Values,
} from "./engine.ts";
import { damaged, decoded, instantIn, oneOf } from "./readable.ts";

/**
 * Row of an interaction. `due_at` and `escalate_at` are NULL once it is closed, so that a query by time finds only open
 * ones. `preview` and `definitions` hold what a `confirm` shows and are NULL for the other types; `Confirmations` reads them.
 */
export const INTERACTIONS: Table = {
  name: "interactions",
  columns: {
    type: "text",
    status: "text",
    session_id: "text",
    call_id: "text",
    hash: "text",
    preview: "text",
    definitions: "text",
    decision_id: "text",
    operation_id: "text",
    facts: "text",
    votes: "text",
    remarks: "text",
    waits_for: "text",
    assigned_to: "text",
    deadline: "int",
    due_at: "int",
    escalate_at: "int",
    escalate_to: "text",
    escalated: "int",
    outcome: "text",
    answer: "text",
    answered_by: "text",
    superseded_by: "text",
    version: "int",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["session_id", "status", "due_at", "escalate_at"],
};

/** What never changes about a question, in one cell. */
type Facts = Pick<Interaction, "displayText" | "chain" | "choices" | "metadata" | "requires"> & {
  readonly pendingTool?: PendingTool;
};

/** What a `confirm` shows, encoded. */
export type ShownCells = Readonly<Record<"preview" | "definitions", string | null>>;

function rowOfQuestion(draft: InteractionDraft, shown: ShownCells): Values {
  const facts: Facts = {
    displayText: draft.displayText,
    chain: draft.chain,
    choices: draft.choices ?? [],
    ...(draft.pendingTool === undefined ? {} : { pendingTool: draft.pendingTool }),
    metadata: draft.metadata ?? {},
    requires: draft.requires ?? ONE_PERSON,
  };
  const { escalation } = draft;
  const deadline = deadlineOf(draft);
  return {
    type: draft.type,
    status: "open",
    session_id: draft.sessionId,
    call_id: draft.callId,
    hash: draft.hash,
    ...shown,
    decision_id: draft.decisionId ?? "",
    operation_id: draft.operationId ?? "",
    facts: encodeValue(facts),
    votes: null,
    remarks: null,
    waits_for: "people",
    assigned_to: draft.assignedTo ?? "",
    deadline,
    due_at: deadline,
    escalate_at: escalation === undefined ? null : { nowPlusMs: escalation.afterMs },
    escalate_to: escalation?.to ?? "",
    escalated: 0,
    outcome: null,
    answer: null,
    answered_by: "",
    superseded_by: "",
    version: 1,
    created_at: NOW,
    updated_at: NOW,
  };
}

function deadlineOf({ deadlineAt, deadlineMs = 0 }: InteractionDraft): number | NowPlus {
  return deadlineAt === undefined ? { nowPlusMs: deadlineMs } : fromIso(deadlineAt);
}

export interface Closing {
  readonly outcome: InteractionOutcome;
  readonly by: string;
  readonly reason: string;
  readonly answer?: JsonValue;
  readonly supersededBy?: string;
}

/** The columns that every way of closing a question sets. */
export function rowOfClosing(closing: Closing): Values {
  const { outcome, by, reason, answer, supersededBy = "" } = closing;
  return {
    status: INTERACTION_OUTCOMES[outcome],
    outcome,
    answer: encodeValue(answer === undefined ? { reason } : { answer, reason }),
    answered_by: by,
    superseded_by: supersededBy,
    due_at: null,
    escalate_at: null,
    version: { plus: 1 },
    updated_at: NOW,
  };
}

export function interactionOf(row: Row): Interaction {
  const facts = decoded<Facts>(row, "facts");
  const { displayText, chain, choices, pendingTool, metadata, requires } = facts;
  const lists: readonly unknown[] = [chain, choices, requires];
  if (typeof displayText !== "string" || !lists.every(Array.isArray)) throw damaged(row, "facts");
  const given = row["answer"] === null ? { reason: "" } : decoded<GivenCell>(row, "answer");
  return {
    id: String(row["id"]),
    type: oneOf(row, "type", INTERACTION_TYPES),
    status: oneOf(row, "status", INTERACTION_STATUSES),
    sessionId: String(row["session_id"]),
    callId: String(row["call_id"]),
    displayText,
    hash: String(row["hash"]),
    decisionId: String(row["decision_id"]),
    operationId: String(row["operation_id"]),
    chain,
    choices,
    pendingTool,
    metadata,
    requires,
    votes: row["votes"] === null ? [] : decoded<readonly Vote[]>(row, "votes"),
    remarks: row["remarks"] === null ? [] : decoded<readonly Remark[]>(row, "remarks"),
    waitsFor: oneOf(row, "waits_for", ["people", "agent"] as const),
    assignedTo: String(row["assigned_to"]),
    deadline: instantIn(row, "deadline"),
    escalation: escalationOf(row),
    escalated: row["escalated"] === 1,
    outcome: row["outcome"] === null ? undefined : oneOf(row, "outcome", OUTCOMES),
    answer: given.answer,
    answeredBy: String(row["answered_by"]),
    reason: given.reason,
    supersededBy: String(row["superseded_by"]),
    createdAt: instantIn(row, "created_at"),
    updatedAt: instantIn(row, "updated_at"),
    version: Number(row["version"]),
    ord: Number(row["ord"]),
  };
}

interface GivenCell {
  readonly answer?: JsonValue;
  readonly reason: string;
}

const OUTCOMES = Object.keys(INTERACTION_OUTCOMES) as readonly InteractionOutcome[];

function escalationOf(row: Row): Interaction["escalation"] {
  const at = row["escalate_at"];
  return typeof at === "number" ? { at: toIso(at), to: String(row["escalate_to"]) } : undefined;
}

/** A change of an open question as data, with what must happen in the same transaction. */
export interface Write {
  readonly where?: Conditions;
  readonly set: Values;
  readonly event: Pick<EventPlan, "type" | "actor" | "data" | "hashes">;
  readonly also?: readonly Along[];
}

export function openingOf(
  id: InteractionId,
  draft: InteractionDraft,
  actor: string,
  shown: ShownCells = { preview: null, definitions: null },
): Along {
  const { type, sessionId, hash, decisionId = "", operationId = "" } = draft;
  // The preview of a confirmation holds a nonce. The other hashes are made of texts that could be guessed.
  const isGuessable = type !== "confirm";
  return {
    step: { op: "insert", table: INTERACTIONS, id, row: rowOfQuestion(draft, shown) },
    event: (step) => ({
      type: "interaction.opened",
      subject: id,
      session: sessionId,
      actor,
      data: {
        type,
        ...(isGuessable ? {} : { hash }),
        decision: decisionId,
        operation: operationId,
        text: draft.displayText.toWellFormed(),
      },
      ...(isGuessable ? { hashes: { hash } } : {}),
      facts: { deadline: { left: "deadline", step } },
    }),
  };
}

/** Closes an open interaction for which `where` holds too; logged with the session that the row names. */
export function closingStep(id: InteractionId, how: Closing, where: Conditions): Along {
  return {
    step: {
      op: "update",
      table: INTERACTIONS,
      id,
      where: { status: "open", ...where },
      set: rowOfClosing(how),
    },
    event: (step) => ({ ...closingEvent(how), subject: id, session: { left: "session_id", step } }),
  };
}

export function closingEvent(how: Closing): Write["event"] {
  const { outcome, by, reason, answer, supersededBy } = how;
  const data = {
    outcome,
    reason: reason.toWellFormed(),
    ...(supersededBy === undefined ? {} : { successor: supersededBy }),
  };
  const event = { type: `interaction.${EVENTS[outcome]}`, actor: by, data };
  return answer === undefined
    ? event
    : { ...event, hashes: { answer: sha256Hex(encodeValue(answer)) } };
}

const EVENTS = {
  answered: "answered",
  approved: "answered",
  rejected: "answered",
  superseded: "superseded",
  expired: "expired",
  canceled: "canceled",
} as const;

export function told(event: Write["event"], { id, sessionId }: Interaction): EventPlan {
  return { ...event, subject: id, session: sessionId };
}

/** A hundred years: longer is a mistake, and no database overflows on it. */
const MAX_MS = 100 * 365 * 24 * 3_600_000;

/** Everything that can be wrong with a question is found before anything is written. */
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
  expired: "nobody answered in time",
  canceled: "called it off",
} as const;

/** Tells the one who came second who was first and what was decided. */
export function whyClosed(closed: Interaction): SallyportError {
  const { id, outcome = "canceled", answeredBy: by, updatedAt: at, supersededBy } = closed;
  const said =
    outcome === "expired"
      ? "Nobody answered in time, and silence means no."
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

/** It is open and unchanged, so the hash, the deadline or the decision behind it did not match. */
export function whyNotAnswered(
  { id, deadline, hash }: Interaction,
  step: number,
  seen: unknown,
): SallyportError {
  // With the right hash, only the deadline can have been in the way.
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
