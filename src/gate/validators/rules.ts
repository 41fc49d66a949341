import type { Diff, ReviewRequest } from "../../model/decision.ts";
import {
  MAX_REASON,
  type ReviewOptions,
  type Severity,
  type Validator,
} from "../../model/decision.ts";
import { parseJson } from "../../model/names.ts";

import { errorText, oneLine } from "../../util/error-text.ts";
import type { JsonLimits, JsonValue } from "../../util/json.ts";
import { isFilledText, isNamedPart, isObject, need, untilAborted } from "../review.ts";

/** One check. It objects, or says nothing by returning undefined; it never has to approve. */
export interface ValidatorRule {
  readonly name: string;
  check(
    request: ReviewRequest,
    options: ReviewOptions,
  ): Objection | undefined | Promise<Objection | undefined>;
}

export interface Objection {
  /** `block` refuses; `warn` lets the decision pass with the warning on record. */
  readonly severity: "warn" | "block";
  readonly reason: string;
  /** From 0 to 1. Without it a block scores 0 and a warning leaves the score alone. */
  readonly score?: number;
}

/** One rule must not be able to crowd the others out of the record. */
const LONGEST_REASON = 2000;

export interface RulesOptions {
  readonly name: string;
  readonly policyVersion: string;
  readonly rules: readonly ValidatorRule[];
}

/**
 * A validator made of rules. Every rule is asked, in order, so that one refusal names all that is wrong. A rule that
 * throws is not an objection but a failure of the review: the error goes out with the rule's name and the original as
 * its cause, and the engine turns it into a block.
 */
export function rulesValidator({ name, policyVersion, rules }: RulesOptions): Validator {
  need(isFilledText(name), "rulesValidator needs a name for the audit trail.");
  need(isFilledText(policyVersion), `rulesValidator "${name}" needs a policyVersion.`);
  // No rules would approve everything, which has to be said in another way than by an empty list.
  need(Array.isArray(rules) && rules.length > 0, `rulesValidator "${name}" needs a rule.`);
  const known = [...rules];
  for (const rule of known) {
    need(isNamedPart(rule, "check"), `Each rule of "${name}" needs a name and a check function.`);
  }
  const names = new Set(known.map((rule) => rule.name));
  need(names.size === known.length, `Two rules of "${name}" have the same name.`);

  return {
    name,
    async review(diff, { signal }) {
      let severity: Severity = "";
      let score = 1;
      const reasons: string[] = [];
      for (const rule of known) {
        const objection = await ask(rule, diff, { signal, validator: name });
        if (objection === undefined) continue;
        if (severity !== "block") severity = objection.severity;
        score = Math.min(score, objection.score ?? (objection.severity === "block" ? 0 : 1));
        reasons.push(`${rule.name}: ${oneLine(objection.reason, LONGEST_REASON)}`);
      }
      const reason = oneLine(reasons.join("; "), MAX_REASON) || `all ${known.length} rules passed`;
      return {
        approved: severity !== "block",
        score,
        reason,
        severity,
        validator: name,
        policyVersion,
      };
    },
  };
}

/** Parses the payload strictly, for rules that expect JSON. Throws invalid_json, payload_too_large: the review fails. */
export function decodeJson(diff: Diff, limits?: JsonLimits): JsonValue {
  return parseJson(diff.raw, limits);
}

async function ask(
  rule: ValidatorRule,
  diff: ReviewRequest,
  { signal, validator }: ReviewOptions & { readonly validator: string },
): Promise<Objection | undefined> {
  try {
    const answer: unknown = await untilAborted(signal, () => rule.check(diff, { signal }));
    return answer === undefined ? undefined : readObjection(answer);
  } catch (error) {
    const message = `Rule "${rule.name}" of validator "${validator}" failed: ${errorText(error)}`;
    throw new Error(message, { cause: error });
  }
}

/** A rule in plain JavaScript may return false, null or a misspelt severity; guessing what it meant could let it pass. */
function readObjection(answer: unknown): Objection {
  need(isObject(answer), "a rule answers with undefined or an objection.");
  const { severity, reason, score } = answer;
  need(severity === "warn" || severity === "block", 'severity must be "warn" or "block".');
  need(isFilledText(reason), "an objection needs a reason.");
  if (score === undefined) return { severity, reason };
  need(typeof score === "number" && score >= 0 && score <= 1, "score must lie between 0 and 1.");
  return { severity, reason, score };
}
