import { SallyportError } from "../model/errors.ts";
import { isName } from "../model/names.ts";
import { ONE_PERSON, type Requirement, requirementProblem } from "../model/requirement.ts";
import { SAFETY_CLASSES } from "../tools/safety-class.ts";
import { isPlainJson } from "../util/plain-json.ts";
import { isMeetable } from "./merge-requirements.ts";
import type { ReviewDefaults, ReviewRule } from "./review-rules.ts";

/** Once, at start. Throws invalid_input for the first thing that is not exactly understood. */
export function checkReviewRules(rules: readonly ReviewRule[], defaults?: ReviewDefaults): void {
  if (!Array.isArray(rules)) refuse("review rules", "Give the review rules as a list");
  for (const [index, rule] of (rules as readonly ReviewRule[]).entries()) {
    const what = `review rule ${index + 1}`;
    const problem = isPlainJson(rule) ? ruleProblem(rule, defaults) : "It is not plain data";
    if (problem !== undefined) refuse(what, problem);
  }
  if (defaults === undefined) return;
  const { requires = ONE_PERSON } = defaults;
  const problem = ruleProblem({ ...defaults, requires }, defaults);
  if (problem !== undefined) refuse("review defaults", problem);
  if (defaults.deadlineMs === undefined)
    refuse("review defaults", "Every question needs a deadline");
}

const KEYS = [
  "tools",
  "safetyClasses",
  "requires",
  "deadlineMs",
  "escalation",
  "assignedTo",
  "editorMayApprove",
  "mayBatch",
];

function ruleProblem(rule: ReviewRule, defaults?: ReviewDefaults): string | undefined {
  if (typeof rule !== "object" || rule === null) return "It is not an object";
  const odd = Object.keys(rule).find((key) => !KEYS.includes(key));
  if (odd !== undefined) return `It says "${odd}", which means nothing here`;
  const { tools, safetyClasses, requires, deadlineMs, escalation, assignedTo } = rule;
  if (tools !== undefined && !isList(tools, isName)) return "Name its tools, or leave them out";
  const isClass = (name: unknown) => SAFETY_CLASSES.some((known) => known === name);
  if (safetyClasses !== undefined && !isList(safetyClasses, isClass)) {
    return `Its safety classes must be among ${SAFETY_CLASSES.join(", ")}`;
  }
  const span = deadlineMs ?? defaults?.deadlineMs;
  if (span !== undefined && !isSpan(span))
    return "Its deadline must be whole milliseconds, at least 1";
  if (escalation !== undefined) {
    if (!isSpan(escalation.afterMs) || (span !== undefined && escalation.afterMs >= span)) {
      return "Its escalation must come before its deadline, in whole milliseconds";
    }
    if (!isName(escalation.to)) return "Say to whom it escalates";
  }
  if (assignedTo !== undefined && !isName(assignedTo)) return "Say to whom it is assigned";
  for (const name of ["editorMayApprove", "mayBatch"] as const) {
    const value: unknown = rule[name];
    if (value !== undefined && typeof value !== "boolean") return `Its ${name} is true or false`;
  }
  return requiresProblem(requires);
}

function requiresProblem(requires: Requirement): string | undefined {
  if (!isList(requires, (factor) => typeof factor === "object" && factor !== null)) {
    return "Say who has to say yes: a list of factors";
  }
  if (!requires.every(({ from }) => from === undefined || isList(from, isName))) {
    return "Name the people of a factor, or leave them out";
  }
  const problem = requirementProblem(requires);
  if (problem !== undefined) return problem;
  return isMeetable(requires)
    ? undefined
    : "One person counts once, so it needs more people than it names";
}

function isList<Item>(list: unknown, isItem: (item: unknown) => boolean): list is readonly Item[] {
  return Array.isArray(list) && list.length > 0 && list.every(isItem);
}

function isSpan(ms: unknown): ms is number {
  return Number.isSafeInteger(ms) && (ms as number) >= 1;
}

function refuse(what: string, problem: string): never {
  throw new SallyportError("invalid_input", { what, hint: `${problem}.` });
}
