import { expect, test } from "vitest";
import { rowsOf } from "../../proof/codes.ts";
import { GOALS } from "../../proof/goal-list.ts";
import { type Goal, judge } from "../../proof/goals.ts";
import { outcomeOf } from "../../proof/planted/try-bugs.ts";
import { verdictOf } from "../../proof/report.ts";
import { turnsOf } from "../../proof/run-tests.ts";

const GOAL: Goal = {
  id: "G5",
  what: "kill -9",
  zero: ["violations"],
  least: { proof: { crashes: 10 }, full: { crashes: 1_000 } },
  most: { "ready p99 ms": 5_000 },
};
const record = (figures: Record<string, number>) => ({ goal: "G5", what: "w", figures, seed: 7 });

test("counts of a goal are added up, the worst of what is measured counts, and zeros must be told", () => {
  const one = record({ crashes: 6, violations: 0, "ready p99 ms": 10 });
  const two = record({ crashes: 5, violations: 0, "ready p99 ms": 30 });
  expect(judge(GOAL, [one, two], "proof")).toMatchObject({
    verdict: "holds",
    figures: { crashes: 11, violations: 0, "ready p99 ms": 30 },
  });
  expect(judge(GOAL, [one], "proof").verdict).toBe("void");
  expect(judge(GOAL, [one, two], "full").verdict).toBe("void");
  expect(judge(GOAL, [], "proof").verdict).toBe("void");
  expect(judge(GOAL, [record({ crashes: 99, "ready p99 ms": 1 })], "proof").verdict).toBe("void");
  const slow = record({ crashes: 99, violations: 0, "ready p99 ms": 6_000 });
  expect(judge(GOAL, [slow], "proof").verdict).toBe("broken");
  const bad = record({ crashes: 1, violations: 1, "ready p99 ms": 1 });
  expect(judge(GOAL, [bad], "proof").verdict).toBe("broken");
});

test("a row holds when a test names it and all that name it have passed", () => {
  const result = (name: string, outcome: "passed" | "failed" | "skipped") => ({
    file: "f",
    name,
    outcome,
    isOfDoor: false,
    why: "",
  });
  const tests = [
    result("R1 R2 a", "passed"),
    result("R2 b", "failed"),
    result("R3 c", "skipped"),
    result("R10 d", "passed"),
  ];
  const outcomes = rowsOf("R", 4, tests).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(["holds", "broken", "none", "none"]);
});

test("one thing that is broken breaks the whole; what did not happen makes it void", () => {
  const fine = { failed: [], skipped: [], goals: [], corpus: [], planted: [] };
  const tried = { name: "n", what: "w", by: "", why: "", ms: 1 };
  expect(verdictOf(fine)).toBe("holds");
  expect(verdictOf({ ...fine, planted: [{ ...tried, outcome: "missed" }] })).toBe("broken");
  expect(verdictOf({ ...fine, planted: [{ ...tried, outcome: "not planted" }] })).toBe("void");
  expect(verdictOf({ ...fine, planted: [{ ...tried, outcome: "timed out" }] })).toBe("void");
  const skipped = { file: "f", name: "n", outcome: "skipped", isOfDoor: true, why: "" } as const;
  expect(verdictOf({ ...fine, skipped: [skipped] })).toBe("void");
  const row = { code: "R1", outcome: "none", tests: 0 } as const;
  expect(verdictOf({ ...fine, corpus: [row] })).toBe("void");
  expect(verdictOf({ ...fine, corpus: [{ ...row, outcome: "broken" }] })).toBe("broken");
});

test("a planted bug is caught by an assertion alone: neither by time that was over nor by too little that happened", () => {
  const failed = (...failureMessages: string[]) => ({
    fullName: "t",
    status: "failed",
    failureMessages,
  });
  const passed = { fullName: "p", status: "passed" };
  const [planted, ended] = [
    { isPlanted: true, isEnded: false },
    { isPlanted: true, isEnded: true },
  ];
  const late = "Error: Test timed out in 60000ms.\n    at x";
  const outcome = (...given: Parameters<typeof outcomeOf>) => outcomeOf(...given).outcome;
  expect(outcomeOf({}, [failed("AssertionError: 1 is not 2\n    at x")], planted)).toEqual({
    outcome: "caught",
    by: "t",
    why: "AssertionError: 1 is not 2",
  });
  expect(outcomeOf({}, [passed, failed(late)], planted)).toMatchObject({
    outcome: "timed out",
    why: "Error: Test timed out in 60000ms.",
  });
  expect(outcome({ hangs: true }, [failed(late)], planted)).toBe("caught");
  expect(outcome({}, [failed(late, "AssertionError: twice")], planted)).toBe("caught");
  expect(outcome({}, [failed("AssertionError: void: nobody wrote")], planted)).toBe("missed");
  expect(outcome({}, [passed], planted)).toBe("missed");
  expect(outcome({}, [], planted)).toBe("no test");
  expect(outcome({}, [], ended)).toBe("timed out");
  expect(outcome({ hangs: true }, [], ended)).toBe("caught");
  expect(outcome({}, [failed("x")], { isPlanted: false, isEnded: false })).toBe("not planted");
});

test("at full scale the simulation takes all of its seeds, in parts beside each other, and what is measured runs alone [G14]", () => {
  const [simulation, load] = ["tests/simulation/simulation.test.ts", "tests/faults/load.test.ts"];
  expect(turnsOf(["a.test.ts", simulation, load], "proof")).toHaveLength(1);
  const turns = turnsOf(["a.test.ts", simulation, load], "full");
  expect(turns.map((parts) => parts.map(({ files }) => files))).toEqual([
    [["a.test.ts"]],
    [[simulation], [simulation]],
    [[load]],
  ]);
  const seeds = (turns[1] ?? []).flatMap(({ env }) => {
    const [first, count] = [Number(env?.["SIM_FIRST"]), Number(env?.["SIM_COUNT"])];
    return Array.from({ length: count }, (_, at) => first + at);
  });
  expect(new Set(seeds).size).toBe(seeds.length);
  expect([Math.min(...seeds), Math.max(...seeds)]).toEqual([1, 20_000]);
  expect(GOALS.find(({ id }) => id === "G14")?.least.full["seeds"]).toBe(20_000);
});
