// What the invariants cannot know: how each case was meant to end, and which writes had answered before the kill.

import type { Evidence, Invariant } from "../evidence.ts";
import type { Violation } from "../invariants/table.ts";
import { BEGINS, type Look, lookAt } from "../look.ts";
import type { Case, CaseLine } from "./case.ts";

interface Scene {
  readonly one: Case;
  readonly evidence: Evidence;
  readonly look: Look;
  say(id: Invariant["id"], problem: string): void;
}

export function checkCases(
  cases: readonly Case[],
  evidence: Evidence,
  history: readonly CaseLine[],
): readonly Violation[] {
  const violations: Violation[] = [];
  const decisions = Map.groupBy(evidence.decisions, ({ sessionId }) => sessionId);
  const operations = Map.groupBy(evidence.operations, ({ sessionId }) => sessionId);
  const passed = Map.groupBy(history, ({ run }) => run);
  for (const one of cases) {
    const scene: Scene = {
      one,
      evidence: {
        ...evidence,
        decisions: decisions.get(one.id) ?? [],
        operations: operations.get(one.id) ?? [],
      },
      look: lookAt(evidence),
      say: (id, problem) => violations.push({ id, problem: `${nameOf(one)}: ${problem}` }),
    };
    checkAcknowledged(scene, passed.get(one.id) ?? []);
    if (evidence.isAtRest && one.lane !== "own") checkEnd(scene);
  }
  return violations;
}

export function nameOf({ id, kind, crashAt }: Case): string {
  return `${id} (${kind}, ${crashAt === "" ? "not killed" : crashAt})`;
}

/** I9: every write that had answered before the process was killed is there. */
function checkAcknowledged({ evidence, look, say }: Scene, history: readonly CaseLine[]): void {
  const { decisions, operations } = evidence;
  const times = (point: string) =>
    history.filter((line) => "point" in line && line.point === point).length;
  const told = (records: readonly { readonly id: string }[], ...types: readonly string[]) =>
    records.flatMap(({ id }) => look.linesOf(id)).filter(({ type }) => types.includes(type)).length;
  const least: readonly (readonly [string, number])[] = [
    ["S1.after", decisions.length],
    ["S2a.after", told(decisions, "decision.reviewed")],
    ["S3.after", told(decisions, "decision.previewed")],
    ["S4.after", decisions.filter(({ state }) => !state.startsWith("pending")).length],
    ["S5.after", told(operations, ...BEGINS)],
    ["S7.after", told(operations, "operation.succeeded", "operation.failed", "operation.lost")],
  ];
  for (const [point, stored] of least) {
    if (times(point) <= stored) continue;
    say("I9", `came past ${point} ${times(point)} times, ${stored} stored`);
  }
}

function checkEnd({ one, evidence, look, say }: Scene): void {
  for (const { state, executionError } of evidence.decisions) {
    if (state === "executed" && one.failsLast) say("I6", "executed, though production refused it");
    if (state === "failed" && executionError === "") say("I28", "failed without a word");
    // What the done steps changed themselves must not look like a changed world to the rest.
    // A busy machine may be too slow for a look at the target, and then nothing may run: that is no violation.
    if (state === "failed" && !one.failsLast && !executionError.includes("No answer within")) {
      say("I14", `failed, though production refused nothing: ${executionError}`);
    }
  }
  const undos = evidence.operations.filter(({ undoOf }) => undoOf !== "");
  const isFlagged = undos.some(({ status }) => status === "unknown");
  for (const { id, status, undoOf } of evidence.operations) {
    const happened = look.effectsOf(id).some(({ applied }) => applied);
    if (status === "failed" && happened) say("I20", `${id} is failed, but it happened`);
    if (status === "unknown" && one.kind !== "plain" && one.fault !== "die") {
      say("I14", `${id} is unknown, though its target could have been asked`);
    }
    // What is older is not taken back before what rests on it.
    if (one.takesBack && undoOf === "" && status === "success" && !isFlagged) {
      say("I28", `${id} was to be taken back, and it was not`);
    }
  }
}
