import type { Decision } from "../../model/decision.ts";
import type { Invariant } from "../evidence.ts";
import { type Look, lookAt } from "../look.ts";

export const I28: Invariant = {
  id: "I28",
  text: "Each call is taken back at most once; a bundle ends done, taken back, or plainly in need of somebody.",
  check(evidence) {
    const look = lookAt(evidence);
    const taken = new Set(evidence.operations.map(({ undoOf }) => undoOf));
    const twice = [...taken].flatMap((id) => whyTwice(id, look));
    const untrue = evidence.operations.flatMap(({ id, status }) => {
      const done = look.undosOf(id).filter((undo) => undo.status === "success").length;
      if (status === "rolled_back" && done !== 1) return [`${id} is rolled back by ${done} calls`];
      return done > 0 && status !== "rolled_back" ? [`${id} was taken back, but is ${status}`] : [];
    });
    const bundles = evidence.decisions.flatMap((decision) => whyBetween(decision, look));
    return [...twice, ...untrue, ...bundles];
  },
};

function whyTwice(id: string, look: Look): readonly string[] {
  const tries = look.undosOf(id);
  // Also where the first never reached production: nobody knew that, so nobody may have tried again.
  const alive = tries.filter(({ status }) => status !== "failed").length;
  const effects = tries.flatMap((undo) => look.effectsOf(undo.id));
  const taken = effects.filter(({ applied, kind }) => applied && kind !== "plain").length;
  const problems: string[] = [];
  if (alive > 1) problems.push(`${alive} operations take ${id} back`);
  if (taken > 1) problems.push(`${id} was taken back ${taken} times`);
  return problems;
}

/** A closed decision must say the truth about each of its steps. */
function whyBetween(decision: Decision, look: Look): readonly string[] {
  const { id, state, executionError } = decision;
  const calls = look.calls(decision);
  if (calls === undefined) return [];
  const own = look.operationsOf(id);
  if (state === "executed") {
    const isDone = (step: number) =>
      own.some((one) => one.step === step && ENDED_WELL.includes(one.status));
    const missing = calls.map((_, step) => step).filter((step) => !isDone(step));
    return missing.map((step) => `${id} is executed, but step ${step} is not`);
  }
  // What a person closed by hand is theirs to answer for.
  const closed = look.linesOf(id).findLast(({ type }) => type === "decision.failed");
  if (state !== "failed" || !CLOSES.includes(closed?.actor ?? "executor")) return [];
  const left = own.filter(({ status }) => status === "success");
  return left.flatMap((one) => {
    const isTold = executionError.includes(one.id) && executionError.includes("not complete");
    return isTold ? [] : [`${id} failed, and ${one.id} is neither taken back nor told`];
  });
}

const ENDED_WELL = ["success", "rolled_back"];
const CLOSES = ["executor", "recovery"];
