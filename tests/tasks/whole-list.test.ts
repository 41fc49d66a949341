// The list of a gate, whole and in its order, wherever the tasks are stored.

import { expect, onTestFinished, test } from "vitest";
import type { Gate } from "../../src/gate/create-gate.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { openGate } from "../support/port-world.ts";
import { openMarkdown } from "./task-stores.ts";

const BY = "agent:one";

/** Adds tasks one after the other, changes some old ones, and returns all ids in the order in which they were added. */
async function fill(gate: Gate, batches: readonly number[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const [batch, size] of batches.entries()) {
    const drafts = Array.from({ length: size }, (_, n) => ({ subject: `task ${batch}.${n}` }));
    ids.push(...(await gate.tasks.addAll(drafts)).map(({ id }) => id));
    ids.push((await gate.tasks.add({ subject: `single ${batch}` })).id);
  }
  const [first = "", second = "", third = ""] = ids;
  await gate.tasks.claim({ id: third, claimer: BY });
  await gate.tasks.complete({ id: second, result: "done" });
  await gate.tasks.fail({ id: first, reason: "no longer needed" });
  return ids;
}

async function expectWhole(gate: Gate, ids: readonly string[]): Promise<void> {
  const tasks = await gate.tasks.list();
  expect(tasks.map(({ id }) => id)).toEqual(ids);
  const times = tasks.map(({ createdAt }) => createdAt);
  expect(times).toEqual(times.toSorted());
  expect(tasks.slice(0, 4).map(({ status }) => status)).toEqual([
    "failed",
    "completed",
    "claimed",
    "pending",
  ]);
}

forEachStore("the whole list", (open) => {
  test("list gives all tasks, oldest first, also beyond a page and after older ones changed [S4-25]", async () => {
    const { engine, clock, again } = await open();
    const { gate } = openGate({}, { engine, clock });
    const ids = await fill(gate, Array(41).fill(25));
    await expectWhole(gate, ids);
    const other = await again?.();
    // skip: the memory store has no second handle
    if (other !== undefined)
      await expectWhole(openGate({}, { engine: other.engine, clock }).gate, ids);
  });
});

test("list gives all tasks of a Markdown file behind the gate, oldest first [S4-25]", async () => {
  const { store, again, remove } = await openMarkdown();
  onTestFinished(() => remove?.());
  const { gate } = openGate({ tasks: store });
  const ids = await fill(gate, [20, 3]);
  await expectWhole(gate, ids);
  await expectWhole(openGate({ tasks: (await again?.()) ?? store }).gate, ids);
});
