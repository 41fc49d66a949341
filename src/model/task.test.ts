import { expect, test } from "vitest";
import { isTaskStatus, TASK_FIELDS, TASK_MOVES, TASK_STATUSES } from "./task.ts";

test("there are four statuses, and names of the prototype are none [S4-11]", () => {
  expect(TASK_STATUSES).toEqual(["pending", "claimed", "completed", "failed"]);
  for (const name of ["", "done", "in_progress", "toString", "__proto__", 1, undefined]) {
    expect(isTaskStatus(name)).toBe(false);
  }
});

test("a completed task never moves, a failed one only back to pending [S4-49]", () => {
  expect(TASK_MOVES.completed).toEqual([]);
  expect(TASK_MOVES.failed).toEqual(["pending"]);
});

test("every JSON name is the snake-case form of its field, but for the two that the original names [S4-08]", () => {
  const original = new Map([
    ["claimer", "claimed_by"],
    ["failureReason", "fail_reason"],
  ]);
  for (const [field, { json }] of Object.entries(TASK_FIELDS)) {
    const plain = field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    expect(json).toBe(original.get(field) ?? plain);
  }
});
