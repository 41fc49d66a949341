import type { JsonValue } from "../../util/json.ts";
import { formatPath } from "../../util/json-error.ts";
import type { InputIssue } from "../tool.ts";

/** Whether the value fits; what does not is reported to the run. */
export type Check = (value: JsonValue, run: Run) => boolean;

/** Thrown through all checks, `not` included, so that running out of budget can never look like a pass. */
export class OverBudget extends Error {}

const MOST_ISSUES = 20;
/** 20 to 70 ms here, whatever the steps are; 90,000 numbers with two rules each need two thirds of it. */
const MOST_STEPS = 1_500_000;
const DEEPEST = 300;

/**
 * One value being checked: where the walk stands, what was found, and how much work is left (T27). A schema can ask for
 * more than any input is worth: branches that double at each level, references in a circle, patterns over long texts.
 */
export class Run {
  readonly path: (string | number)[] = [];
  #issues: InputIssue[] = [];
  #stepsLeft = MOST_STEPS;
  #depth = 0;

  get issues(): readonly InputIssue[] {
    return this.#issues;
  }

  /** A field and not a method, so that it can be handed on. */
  readonly spend = (steps: number): void => {
    this.#stepsLeft -= steps;
    if (!(this.#stepsLeft >= 0)) {
      throw new OverBudget(
        "it takes too long to check against the schema; send shorter texts or less at a time",
      );
    }
  };

  /** Says what is wrong as the rest of a sentence about the value; never repeats the value, which may be a secret. */
  fail(message: string): false {
    this.spend(20);
    if (this.#issues.length < MOST_ISSUES) {
      this.#issues.push({ path: formatPath(this.path), message });
    }
    return false;
  }

  /** All of them, so that the sender learns everything at once. */
  every(checks: readonly Check[], value: JsonValue): boolean {
    this.spend(6);
    this.#depth += 1;
    if (this.#depth > DEEPEST) {
      throw new OverBudget("the schema refers to itself without end at this place");
    }
    let fits = true;
    for (const check of checks) {
      if (!check(value, this)) fits = false;
    }
    this.#depth -= 1;
    return fits;
  }

  below(step: string | number, check: Check, value: JsonValue): boolean {
    this.path.push(step);
    const fits = check(value, this);
    this.path.pop();
    return fits;
  }

  /** Tries a check without reporting: undefined when it fits, else what it would have reported. */
  attempt(check: Check, value: JsonValue): readonly InputIssue[] | undefined {
    this.spend(20);
    const reported = this.#issues;
    this.#issues = [];
    const fits = check(value, this);
    const found = this.#issues;
    this.#issues = reported;
    return fits ? undefined : found;
  }

  report(issues: readonly InputIssue[]): false {
    this.#issues.push(...issues.slice(0, MOST_ISSUES - this.#issues.length));
    return false;
  }
}
