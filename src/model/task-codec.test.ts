import { expect, test } from "vitest";
import { FULL_TASK } from "../tasks/conformance/store-cases.ts";
import { isSallyportError } from "./errors.ts";
import { taskFromJson, taskToJson } from "./task.ts";

test("the JSON of a task has the snake-case names, in order, and reads back the same [S4-08]", () => {
  const json = taskToJson(FULL_TASK);
  expect(Object.keys(json).slice(0, 11)).toEqual([
    "id",
    "subject",
    "description",
    "status",
    "claimed_by",
    "result",
    "fail_reason",
    "created_at",
    "claimed_at",
    "completed_at",
    "version",
  ]);
  expect(taskFromJson(JSON.parse(JSON.stringify(json)))).toEqual(FULL_TASK);
});

test("empty claimer, result and failure reason are left out of JSON [S4-09]", () => {
  const plain = taskFromJson({ id: "a", claimed_by: "", result: "", fail_reason: "" });
  const json = taskToJson(plain);
  for (const name of ["claimed_by", "result", "fail_reason", "claimed_at", "completed_at"]) {
    expect(json).not.toHaveProperty(name);
  }
});

test("a zero time is one that is not set, however it is written [S4-10]", () => {
  for (const zero of [
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00.000Z",
    "0001-01-01T01:00:00+01:00",
  ]) {
    const task = taskFromJson({ id: "a", claimed_at: zero, completed_at: zero });
    expect(task).not.toHaveProperty("claimedAt");
    expect(task).not.toHaveProperty("completedAt");
  }
  const set = taskFromJson({ id: "a", claimed_at: "2026-11-15T08:00:00.123456789+02:00" });
  expect(set.claimedAt).toBe("2026-11-15T06:00:00.123Z");
});

test("a task as the original wrote it is a whole task, with its claimer and its reason [S4-08]", () => {
  const original = {
    id: "task-1f2e",
    subject: "A task",
    description: "",
    status: "failed",
    claimed_by: "agent-3",
    fail_reason: "No access to staging.",
    created_at: "2026-11-15T06:00:00Z",
    claimed_at: "0001-01-01T00:00:00Z",
    completed_at: "0001-01-01T00:00:00Z",
    version: 1,
    something_else: true,
  };
  expect(taskFromJson(original)).toEqual({
    id: "task-1f2e",
    subject: "A task",
    description: "",
    status: "failed",
    claimer: "agent-3",
    failureReason: "No access to staging.",
    createdAt: "2026-11-15T06:00:00.000Z",
    version: 1,
  });
});

test.each([
  ["nothing", null],
  ["no id", { subject: "x" }],
  ["an unknown status", { id: "a", status: "done" }],
  ["a status of the prototype", { id: "a", status: "constructor" }],
  ["a number as subject", { id: "a", subject: 7 }],
  ["half a version", { id: "a", version: 1.5 }],
  ["a negative version", { id: "a", version: -1 }],
  ["a version too large to count", { id: "a", version: 2 ** 53 }],
  ["30 February", { id: "a", created_at: "2026-02-30T00:00:00Z" }],
  ["a date alone", { id: "a", created_at: "2026-02-20" }],
  ["a blocker that is no text", { id: "a", blocked_by: [1] }],
  ["blockers that are no list", { id: "a", blocked_by: "b" }],
  ["a note of an unknown kind", { id: "a", history: [{ at: "2026-02-20T00:00:00Z", what: "x" }] }],
])("%s is damaged_record", (_, value) => {
  let error: unknown;
  try {
    taskFromJson(value);
  } catch (caught) {
    error = caught;
  }
  expect(isSallyportError(error, "damaged_record")).toBe(true);
});

test("a name like __proto__ changes nothing [T26]", () => {
  const task = taskFromJson(
    JSON.parse('{"id":"a","__proto__":{"subject":"x","status":"completed"}}'),
  );
  expect([task.subject, task.status]).toEqual(["", "pending"]);
  expect(({} as { subject?: string }).subject).toBe(undefined);
});
