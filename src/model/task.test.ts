import { expect, test } from "vitest";
import { isTaskStatus, TASK_FIELDS, TASK_MOVES, TASK_STATUSES } from "./task.ts";

test("S4-11 there are four statuses, and names of the prototype are none", () => {
  expect(TASK_STATUSES).toEqual(["pending", "claimed", "completed", "failed"]);
  for (const name of ["", "done", "in_progress", "toString", "__proto__", 1, undefined]) {
    expect(isTaskStatus(name)).toBe(false);
  }
});

test("S4-49 a completed task never moves, a failed one only back to pending", () => {
  expect(TASK_MOVES.completed).toEqual([]);
  expect(TASK_MOVES.failed).toEqual(["pending"]);
});

test("S4-08 every JSON name is the snake-case form of its field", () => {
  for (const [field, { json }] of Object.entries(TASK_FIELDS)) {
    expect(json).toBe(field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  }
});
