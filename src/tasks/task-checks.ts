import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { TASK_LIMITS } from "../model/task.ts";

/** What the task list takes in. One place, so that all stores are handed the same. */

const LEASE_MS_MAX = 7 * 24 * 3_600_000;

/** A title: something to see, on one line. */
export function checkSubject(subject: unknown): asserts subject is string {
  if (typeof subject !== "string" || subject.trim() === "") {
    throw refused("subject", "Give the task a title.");
  }
  const { length } = [...subject];
  if (length > TASK_LIMITS.subject) {
    const hint = `Shorten the subject to ${TASK_LIMITS.subject} characters; the rest belongs in the description.`;
    throw new SallyportError("invalid_input", { what: "subject", length, hint });
  }
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(subject)) {
    throw refused("subject", "A title is one line: remove line breaks and control characters.");
  }
}

/** Free text that is kept as it is. Half characters are refused, because no database could give them back. */
export function checkProse(
  what: string,
  text: unknown,
  most: number = TASK_LIMITS.prose,
): asserts text is string {
  if (typeof text !== "string") throw refused(what, `Give the ${what} as text.`);
  if (text.length > most) {
    const hint = `Keep it under ${most} characters: put the rest into a file and say where it is.`;
    throw new SallyportError("payload_too_large", { what, length: text.length, hint });
  }
  if (!text.isWellFormed()) throw refused(what, "Remove the half of a surrogate pair.");
}

export function checkReason(reason: unknown): asserts reason is string {
  checkProse("reason", reason, TASK_LIMITS.reason);
}

export function checkPriority(priority: number): void {
  const { priority: most } = TASK_LIMITS;
  if (Number.isSafeInteger(priority) && Math.abs(priority) <= most) return;
  throw refused("priority", `Give a whole number between -${most} and ${most}; higher is sooner.`);
}

export function checkLease(leaseMs: number): void {
  if (Number.isSafeInteger(leaseMs) && leaseMs > 0 && leaseMs <= LEASE_MS_MAX) return;
  throw refused("lease", "Give whole milliseconds, more than zero and no more than a week.");
}

export function checkNames(what: string, names: readonly string[], most: number): void {
  if (names.length > most) {
    throw new SallyportError("payload_too_large", { what, length: names.length, most });
  }
  for (const name of names) checkName(what, name);
}

function refused(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { what, hint });
}
