import type { PlanStep } from "../model/flow-state.ts";
import { findJson } from "../staging/validators/find-json.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { parseStrictJson } from "../util/strict-json.ts";

/** What a model may answer with. */
export type Action =
  | { readonly action: "plan"; readonly steps: readonly PlanStep[] }
  | {
      readonly action: "call_tool";
      readonly tool: string;
      readonly args: string;
      readonly summary: string;
    }
  | { readonly action: "ask_user"; readonly question: string; readonly choices: readonly string[] }
  | { readonly action: "next_step"; readonly check: string }
  | { readonly action: "done"; readonly check: string };

export type ActionName = Action["action"];

export type ReadAction<Name extends ActionName> =
  | { readonly ok: true; readonly action: Extract<Action, { action: Name }> }
  /** Written for the model. */
  | { readonly ok: false; readonly problem: string };

const MOST_STEPS = 50;

/** Reads the one action out of what a model wrote; prose and fences around it are fine, a doubt about what it meant is not. */
export function readAction<Name extends ActionName>(
  text: string,
  allowed: readonly Name[],
): ReadAction<Name> {
  try {
    return { ok: true, action: actionIn(text, allowed) as Extract<Action, { action: Name }> };
  } catch (error) {
    return { ok: false, problem: errorText(error) };
  }
}

/** Whether a text that may also be plain talk asks for a plan. Talk does no harm, so a doubt counts as that. */
export function wantsPlan(text: string): boolean {
  try {
    return actionsIn(text).some(({ action }) => action === "plan");
  } catch {
    return false;
  }
}

function actionsIn(text: string): readonly JsonObject[] {
  const found = findJson(text).values.map((value) => parseStrictJson(value));
  return found.filter(isObject).filter((value) => "action" in value);
}

function actionIn(text: string, allowed: readonly ActionName[]): Action {
  const actions = actionsIn(text);
  const [said] = actions;
  need(said !== undefined, 'there is no JSON object with an "action" in it');
  need(actions.length === 1, "it holds more than one action");
  const name = allowed.find((known) => known === said["action"]);
  need(name !== undefined, `"action" must be one of ${allowed.join(", ")}`);
  return READERS[name](said);
}

const READERS: Readonly<Record<ActionName, (said: JsonObject) => Action>> = {
  plan: ({ steps }) => {
    need(Array.isArray(steps) && steps.length > 0, '"steps" must be a list with at least one step');
    need(steps.length <= MOST_STEPS, `"steps" holds more than ${MOST_STEPS} steps`);
    return { action: "plan", steps: steps.map(stepOf) };
  },
  call_tool: ({ tool, input, summary }) => {
    need(isFilled(tool), '"tool" must name the tool');
    need(input !== undefined && isObject(input), '"input" must be an object');
    const told = isFilled(summary) ? summary.trim() : `calls ${tool}`;
    return { action: "call_tool", tool, args: canonicalJson(input), summary: told };
  },
  ask_user: ({ question, choices = [] }) => {
    need(isFilled(question), '"question" must be text');
    need(Array.isArray(choices) && choices.every(isFilled), '"choices" must be a list of texts');
    return { action: "ask_user", question: question.trim(), choices };
  },
  next_step: (said) => ({ action: "next_step", check: checkIn(said) }),
  done: (said) => ({ action: "done", check: checkIn(said) }),
};

function stepOf(step: JsonValue): PlanStep {
  need(isObject(step), "each step must be an object");
  const { text, done_when } = step;
  need(isFilled(text) && isFilled(done_when), 'each step needs "text" and "done_when"');
  return { text: text.trim(), done_when: done_when.trim() };
}

/** The model is believed, but it has to say what it looked at. */
function checkIn({ goal_check }: JsonObject): string {
  need(isFilled(goal_check), '"goal_check" must say how you know that the goal is reached');
  return goal_check.trim();
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFilled(value: JsonValue | undefined): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function need(holds: boolean, problem: string): asserts holds {
  if (!holds) throw new Error(problem);
}
