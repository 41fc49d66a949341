import { expect, test } from "vitest";
import { manualClock } from "../util/clock.ts";
import type { Random } from "../util/random.ts";
import { createActionPlan, createPlan, type PlanDraft } from "./plan.ts";

const MS = 1_763_200_000_000;
const bytes = (...list: number[]): Random => ({ bytes: () => new Uint8Array(list) });
const sources = (...list: number[]) => ({ clock: manualClock(MS), random: bytes(...list) });
const draft: PlanDraft = {
  role: "research",
  task: "find the cause",
  capsule: "the log says no",
  promiseId: "p-1",
  traceId: "t-1",
};

test("S3-08 a plan carries its id, role, task, capsule, write permission and the two ids it is bound to", () => {
  expect(createPlan(draft, sources(0xab, 0xcd))).toEqual({
    ...draft,
    planId: `plan-${MS}-abcd`,
    writePermission: "none",
  });
});

test("S3-09 the id is plan, milliseconds and four lower-case hex digits, padded with zeros", () => {
  const id = (...list: number[]) => createPlan(draft, sources(...list)).planId;
  expect(id(0, 0)).toBe(`plan-${MS}-0000`);
  expect(id(0, 7)).toBe(`plan-${MS}-0007`);
  expect(id(0, 0xff)).toBe(`plan-${MS}-00ff`);
  expect(id(0xff, 0xff)).toBe(`plan-${MS}-ffff`);
});

test("S3-10 two plans of one millisecond may have the same id", () => {
  expect(createPlan(draft, sources(1, 2)).planId).toBe(createPlan(draft, sources(1, 2)).planId);
});

test("S3-11 the permission comes from the role unless one is given", () => {
  const given = (more: Partial<PlanDraft>) =>
    createPlan({ ...draft, ...more }, sources(0, 1)).writePermission;
  expect(given({ role: "doc" })).toBe("documents-and-artefact");
  expect(given({ role: "verify" })).toBe("evidence-through-tool");
  expect(given({ role: "code", writePermission: "none" })).toBe("none");
});

test("S3-12 everything is kept as given, also what is wrong", () => {
  const odd = { ...draft, task: "  \n", capsule: "", promiseId: "", traceId: " " };
  expect(createPlan(odd, sources(0, 1))).toMatchObject(odd);
});

test("I-61 an action plan is the counterpart for one step and shares the form of the id", () => {
  const plan = createActionPlan({ action: "edit a.ts", doneWhen: "it compiles" }, sources(0, 9));
  expect(plan).toEqual({ planId: `plan-${MS}-0009`, action: "edit a.ts", doneWhen: "it compiles" });
});
