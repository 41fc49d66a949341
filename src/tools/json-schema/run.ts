import type { JsonValue } from "../../util/json.ts";
import { formatPath } from "../../util/json-error.ts";
import type { InputIssue } from "../tool.ts";

/** Returns whether the value fits, and reports to the run what does not. */
export type Check = (value: JsonValue, run: Run) => boolean;

/**
 * One value being checked: the current place, the issues found, and the budget left (T27). A schema can demand unbounded
 * work: branches that double at each level, reference cycles, patterns over long texts.
 */
export class Run {
  readonly path: (string | number)[] = [];
  #issues: InputIssue[] = [];
  #stepsLeft = MOST_STEPS;
  #depth = 0;

  get issues(): readonly InputIssue[] {
    return this.#issues;
  }

  /** A field, not a method, so that it can be passed as a function. */
  readonly spend = (steps: number): void => {
    this.#stepsLeft -= steps;
    if (!(this.#stepsLeft >= 0)) {
      throw new OverBudget(
        "it takes too long to check against the schema; send shorter texts or less at a time",
      );
    }
  };

  /** The message is the rest of a sentence about the value and never repeats it, because it may be a secret. */
  fail(message: string): false {
    this.spend(20);
    if (this.#issues.length < MOST_ISSUES) {
      this.#issues.push({ path: formatPath(this.path), message });
    }
    return false;
  }

  /** Runs all checks, so that one answer lists all issues. */
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

  /** Runs a check without reporting. Returns undefined when it fits, otherwise the issues. */
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

/** Thrown through all checks, including `not`, so that an exhausted budget never counts as a pass. */
export class OverBudget extends Error {}

const MOST_ISSUES = 20;
/** Takes 20 to 70 ms, whatever the steps are. 90,000 numbers with two rules each need two thirds of it. */
const MOST_STEPS = 1_500_000;
const DEEPEST = 300;
