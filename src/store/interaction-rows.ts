import { SallyportError } from "../model/errors.ts";
import {
  INTERACTION_OUTCOMES,
  INTERACTIONS,
  type Interaction,
  type InteractionDraft,
  type InteractionId,
  type InteractionOutcome,
  ONE_PERSON,
  requirementProblem,
} from "../model/interaction.ts";
import { checkName } from "../model/names.ts";
import type { RecordOf } from "../model/record.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { encodeValue } from "../util/value-codec.ts";
import { checkReason } from "./decision-rows.ts";
import {
  type Along,
  type Conditions,
  type EventPlan,
  NOW,
  type Row,
  type Values,
} from "./engine.ts";

/** What a `confirm` shows. */
export type ShownFields = Pick<RecordOf<typeof INTERACTIONS>, "preview" | "definitions">;

function rowOfQuestion(draft: InteractionDraft, shown: ShownFields): Values {
  const { escalation, deadlineMs = 0 } = draft;
  const deadline = draft.deadlineAt ?? { nowPlusMs: deadlineMs };
  return INTERACTIONS.row({
    ...draft,
    ...shown,
    status: "open",
    decisionId: draft.decisionId ?? "",
    operationId: draft.operationId ?? "",
    choices: draft.choices ?? [],
    metadata: draft.metadata ?? {},
    requires: draft.requires ?? ONE_PERSON,
    waitsFor: "people",
    assignedTo: draft.assignedTo ?? "",
    deadline,
    dueAt: deadline,
    escalation: {
      at: escalation === undefined ? null : { nowPlusMs: escalation.afterMs },
      to: escalation?.to ?? "",
    },
    escalated: false,
    answeredBy: "",
    supersededBy: "",
    version: 1,
    createdAt: NOW,
    updatedAt: NOW,
  });
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
  const cells = INTERACTIONS.cells({
    status: INTERACTION_OUTCOMES[outcome],
    outcome,
    answer,
    reason,
    answeredBy: by,
    supersededBy,
    dueAt: null,
    updatedAt: NOW,
  });
  return { ...cells, escalate_at: null, version: { plus: 1 } };
}

const withoutShown = INTERACTIONS.without("preview", "definitions", "dueAt");

/** Without what it shows, which may be large: `Confirmations` reads that. */
export function interactionOf(row: Row): Interaction {
  const { escalation, ...rest } = withoutShown(row);
  const { at, to } = escalation;
  return { ...rest, escalation: at === undefined ? undefined : { at, to } };
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
  shown: ShownFields = { preview: undefined, definitions: undefined },
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
