import { SallyportError } from "../model/errors.ts";
import type { Interaction, InteractionDraft } from "../model/interaction.ts";
import { checkName } from "../model/names.ts";
import { ONE_PERSON, requirementProblem } from "../model/requirement.ts";
import { checkReason } from "./decision-checks.ts";

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

/** It is open and unchanged, so the hash, the deadline or what stands behind it did not hold. */
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
