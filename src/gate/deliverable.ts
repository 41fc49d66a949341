import type { JsonValue } from "../util/json.ts";
import { JsonError } from "../util/json-error.ts";
import { parseStrictJson } from "../util/strict-json.ts";

/**
 * What an agent has to say against its own plan before a tool that asks for it runs: plan A is what it wants to do, B
 * the best alternative. Evidence that validators may consult, not a validator itself.
 */
export interface Deliverable {
  /** Where in the run it was made; any label. */
  readonly step: string;
  readonly hiddenAssumptions: readonly string[];
  readonly failureScenarios: readonly string[];
  readonly verdict: DeliverableVerdict;
  readonly reason: string;
}

/** Go on; switch to the other way; find out more first. */
export const DELIVERABLE_VERDICTS = ["A_holds", "B_wins", "depends_on_X"] as const;
export type DeliverableVerdict = (typeof DELIVERABLE_VERDICTS)[number];

/** Where a staged decision keeps it in its metadata. */
export const DELIVERABLE_KEY = "sallyport.counterfactual.deliverable";

const MOST_ITEMS = 50;
const LONGEST_TEXT = 4_000;
const KEYS = ["step", "hiddenAssumptions", "failureScenarios", "verdict", "reason"];

export type ReadDeliverable =
  | { readonly ok: true; readonly deliverable: Deliverable }
  /** What is wrong, as the rest of a sentence. */
  | { readonly ok: false; readonly problem: string };

/**
 * Reads what a model wrote, as text or as a value. Strict on purpose: a deliverable with nothing to say against itself,
 * an unknown verdict or fields nobody knows is unreadable, not half good.
 */
export function readDeliverable(written: string | JsonValue): ReadDeliverable {
  const value = typeof written === "string" ? parsed(written) : written;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return unreadable("it is not a JSON object");
  }
  const extra = Object.keys(value).find((key) => !KEYS.includes(key));
  if (extra !== undefined)
    return unreadable(`it has a field that does not belong there; use ${KEYS.join(", ")}`);
  const { step, hiddenAssumptions, failureScenarios, verdict, reason } = value;
  if (!isText(step)) return unreadable("step must be a text");
  if (!isTexts(hiddenAssumptions)) return unreadable(listProblem("hiddenAssumptions"));
  if (!isTexts(failureScenarios)) return unreadable(listProblem("failureScenarios"));
  const known = DELIVERABLE_VERDICTS.find((one) => one === verdict);
  if (known === undefined) {
    return unreadable(`verdict must be one of ${DELIVERABLE_VERDICTS.join(", ")}`);
  }
  if (!isText(reason)) return unreadable("reason must be a text");
  return {
    ok: true,
    deliverable: { step, hiddenAssumptions, failureScenarios, verdict: known, reason },
  };
}

function parsed(text: string): JsonValue {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (error instanceof JsonError) return null;
    throw error;
  }
}

function listProblem(name: string): string {
  return `${name} must be a list of 1 to ${MOST_ITEMS} texts`;
}

function isTexts(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) && value.length > 0 && value.length <= MOST_ITEMS && value.every(isText)
  );
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= LONGEST_TEXT;
}

function unreadable(problem: string): ReadDeliverable {
  return { ok: false, problem };
}
