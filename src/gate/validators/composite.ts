import type { Diff } from "../../model/decision.ts";
import {
  effectiveSeverity,
  MAX_REASON,
  type ReviewOptions,
  type Severity,
  type Validator,
  type Verdict,
} from "../../model/decision.ts";

import { errorText, oneLine } from "../../util/error-text.ts";
import { askValidator, isBlockVerdict, isFilledText, isNamedPart, need } from "../review.ts";

export interface CompositeOptions {
  readonly name: string;
  readonly policyVersion: string;
  readonly validators: readonly Validator[];
}

/** One child must not be able to crowd the others out of the record. */
const LONGEST_REASON = 2000;

/** Runs every child at the same time and needs all of them, so that one refusal carries everything there is to say. */
export function allMustApprove(options: CompositeOptions): Validator {
  const children = checkChildren("allMustApprove", options);
  return {
    name: options.name,
    async review(diff, { signal }) {
      const answers = await Promise.all(children.map((child) => ask(child, diff, { signal })));
      return combine(answers, options);
    },
  };
}

/** Runs the children one after the other and stops at the first refusal or error: put the cheap ones first. */
export function waterfall(options: CompositeOptions): Validator {
  const children = checkChildren("waterfall", options);
  return {
    name: options.name,
    async review(diff, { signal }) {
      const answers: Answer[] = [];
      for (const child of children) {
        const answer = await ask(child, diff, { signal });
        answers.push(answer);
        if ("error" in answer || !isYes(answer.verdict)) break;
      }
      return combine(answers, options);
    },
  };
}

type Answer =
  | { readonly child: string; readonly verdict: Verdict }
  | { readonly child: string; readonly error: unknown };

async function ask(child: Validator, diff: Diff, options: ReviewOptions): Promise<Answer> {
  try {
    return { child: child.name, verdict: await askValidator(child, diff, options) };
  } catch (error) {
    return { child: child.name, error };
  }
}

/**
 * An error beats every verdict, also an approving one: a review that is missing a part is no review. It is thrown, so
 * that the engine makes the block verdict; what the other children said stands in its message.
 */
function combine(answers: readonly Answer[], { name, policyVersion }: CompositeOptions): Verdict {
  const reason = oneLine(answers.map(describe).join("; "), MAX_REASON);
  const errors = answers.flatMap((answer) => ("error" in answer ? [answer.error] : []));
  if (errors.length > 0) {
    // The first one is the cause as well, because `isSallyportError` and most loggers follow only that chain.
    throw new AggregateError(errors, `Validator "${name}" could not review: ${reason}`, {
      cause: errors[0],
    });
  }
  const verdicts = answers.flatMap((answer) => ("verdict" in answer ? [answer.verdict] : []));
  return {
    approved: verdicts.every(isYes),
    score: Math.min(...verdicts.map((verdict) => verdict.score)),
    reason,
    severity: worst(verdicts),
    validator: name,
    policyVersion,
  };
}

function isYes(verdict: Verdict): boolean {
  return verdict.approved && !isBlockVerdict(verdict);
}

/** Empty only when all are empty; otherwise the worst severity, where an empty one counts as `warn`. */
function worst(verdicts: readonly Verdict[]): Severity {
  if (verdicts.every((verdict) => verdict.severity === "")) return "";
  return verdicts.some(isBlockVerdict) ? "block" : effectiveSeverity("");
}

/** The children's policy versions appear nowhere else, and the auditor will ask for them. */
function describe(answer: Answer): string {
  if ("error" in answer) return `${answer.child} failed: ${errorText(answer.error)}`;
  const { approved, policyVersion, reason } = answer.verdict;
  const version = policyVersion === "" ? "" : `@${policyVersion}`;
  return `${answer.child}${version} ${approved ? "approved" : "refused"}: ${oneLine(reason, LONGEST_REASON)}`;
}

function checkChildren(mode: string, options: CompositeOptions): readonly Validator[] {
  const { name, policyVersion, validators } = options;
  need(isFilledText(name), `${mode} needs a name for the audit trail.`);
  need(isFilledText(policyVersion), `${mode} "${name}" needs a policyVersion.`);
  // All of none would approve everything.
  need(
    Array.isArray(validators) && validators.length > 0,
    `${mode} "${name}" needs at least one validator.`,
  );
  for (const child of validators) {
    need(
      isNamedPart(child, "review"),
      `Each child of "${name}" needs a name and a review function.`,
    );
  }
  return [...validators];
}
