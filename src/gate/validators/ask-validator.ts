import type { Diff } from "../../model/decision.ts";
import {
  effectiveSeverity,
  type ReviewOptions,
  type Validator,
  type Verdict,
  verdictProblem,
} from "../../model/verdict.ts";

/**
 * One review, with the answer looked at before anybody believes it. Throws what the validator threw, the signal's reason
 * when it did not answer in time, and a TypeError when what came back is not a verdict; callers turn each into a no.
 */
export async function askValidator(
  validator: Validator,
  diff: Diff,
  { signal }: ReviewOptions,
): Promise<Verdict> {
  const answer: unknown = await untilAborted(signal, () => validator.review(diff, { signal }));
  return readVerdict(answer, validator.name);
}

/** Copies a verdict out of an untyped answer. One without a validator name would look unreviewed, so it gets this one. */
export function readVerdict(answer: unknown, name: string): Verdict {
  // An error that is handed back instead of thrown is still an error, whatever else it says.
  if (answer instanceof Error) throw answer;
  need(isObject(answer), `Validator "${name}" did not answer with a verdict.`);
  const { approved, score, reason, severity, policyVersion, validator } =
    answer as unknown as Verdict;
  const verdict = {
    approved,
    score,
    reason,
    severity,
    policyVersion,
    validator: validator || name,
  };
  const problem = verdictProblem(verdict);
  need(problem === undefined, `Validator "${name}" gave an unusable verdict: ${problem}.`);
  return verdict;
}

/** Block forces a roll-back whatever else the verdict says, so one that approves and blocks at once is a no. */
export function isBlocking(verdict: Verdict): boolean {
  return effectiveSeverity(verdict.severity) === "block";
}

/** The verdict that stands in for an answer that never came or made no sense. */
export function blockVerdict(by: {
  readonly validator: string;
  readonly policyVersion: string;
  readonly reason: string;
}): Verdict {
  return { approved: false, score: 0, severity: "block", ...by };
}

/**
 * Waits for work no longer than the signal allows. Work that ignores the signal is left behind and its late answer is
 * thrown away, also when it arrives in the same turn: after the deadline an approval is worth nothing.
 */
export async function untilAborted<T>(
  signal: AbortSignal,
  work: () => T | PromiseLike<T>,
): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const answer = await Promise.race([work(), aborted.promise]);
    signal.throwIfAborted();
    return answer;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/**
 * Construction checks. A missing or impossible part is a mistake of whoever wires the system up, so it is reported when
 * the part is made and not at the first review, where it could only show up as a refusal. Throws TypeError.
 */
export function need(holds: boolean, sentence: string): asserts holds {
  if (!holds) throw new TypeError(sentence);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** A name that can stand in an audit entry. */
export function isFilledText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** True for anything with a usable name and a method of that name: a validator, an evaluator, a tool, a listener. */
export function isNamedPart(part: unknown, method: string): boolean {
  return isObject(part) && isFilledText(part["name"]) && typeof part[method] === "function";
}
