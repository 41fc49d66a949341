import type { Diff } from "../../model/decision.ts";
import type { ReviewOptions, Validator } from "../../model/validator.ts";
import { effectiveSeverity, type Verdict, verdictProblem } from "../../model/verdict.ts";
import { isObject, need } from "../need.ts";
import { untilAborted } from "../until-aborted.ts";

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
