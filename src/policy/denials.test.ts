import { expect, test } from "vitest";
import type { GateAnswer } from "../model/finding.ts";
import {
  allow,
  ask,
  countAnswer,
  type Denials,
  denialSnapshot,
  deny,
  joinAnswers,
  NO_DENIALS,
} from "./answers.ts";

const count = (steps: readonly (readonly [string, GateAnswer])[], start: Denials = NO_DENIALS) =>
  steps.reduce(
    (denials, [tool, answer], index) =>
      countAnswer(denials, { tool, agent: "one", answer, now: 100 + index }),
    start,
  );

const no = (policy: string) => deny(policy, "No.");

test("denials are counted by tool and by the check that denied them [I-25]", () => {
  const denials = count([
    ["a", no("rule.x")],
    ["b", no("rule.x")],
    ["a", joinAnswers([no("rule.x"), no("danger.y"), ask("permission.bash", "Well.")])],
  ]);
  expect(denialSnapshot(denials)).toEqual({
    total: 3,
    inARow: 3,
    byTool: [
      ["a", 2],
      ["b", 1],
    ],
    byPolicy: [
      ["rule.x", 3],
      ["danger.y", 1],
    ],
    byAgent: [["one", 3]],
    lastAt: 102,
  });
});

test("allowed calls end a run of denials, asking changes nothing [I-25]", () => {
  const denials = count([
    ["a", no("x")],
    ["a", ask("x", "Hm.")],
    ["a", no("x")],
  ]);
  expect(denials).toMatchObject({ total: 2, inARow: 2 });
  expect(count([["a", allow()]], denials)).toMatchObject({ total: 2, inARow: 0, lastAt: 102 });
  expect(count([["a", ask("x", "Hm.")]], denials)).toBe(denials);
});

test("later denials change neither a snapshot nor the earlier state [I-25]", () => {
  const first = count([["a", no("x")]]);
  const snapshot = denialSnapshot(first);
  const second = count([["a", no("x")]], first);
  expect(snapshot.byTool).toEqual([["a", 1]]);
  expect(first.total).toBe(1);
  expect(second.total).toBe(2);
  expect(denialSnapshot(NO_DENIALS)).toEqual({
    total: 0,
    inARow: 0,
    byTool: [],
    byPolicy: [],
    byAgent: [],
    lastAt: undefined,
  });
});

test("invented tool names cannot exhaust the memory [I-25]", () => {
  let denials = NO_DENIALS;
  for (let number = 0; number < 3000; number += 1) {
    denials = countAnswer(denials, {
      tool: `invented-${number}`,
      agent: `agent-${number}`,
      answer: no(`p${number}`),
      now: 0,
    });
  }
  const { total, byTool, byPolicy, byAgent } = denialSnapshot(denials);
  expect(byAgent.length).toBe(byTool.length);
  expect(total).toBe(3000);
  expect(byTool.length).toBeLessThanOrEqual(1001);
  expect(byPolicy.length).toBeLessThanOrEqual(1001);
  expect(byTool[0]).toEqual(["(others)", 2000]);
});
