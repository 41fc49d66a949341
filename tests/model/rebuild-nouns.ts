import assert from "node:assert/strict";
import type { AuditEntry } from "../../src/model/audit-entry.ts";
import type { TenantStore } from "../../src/store/store.ts";
import { rebuildDecisions } from "../support/rebuild.ts";

/** What each event leaves its subject in; undefined: as it was. */
const LEFT: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
  interaction: {
    opened: "open",
    answered: "resolved",
    superseded: "resolved",
    expired: "canceled",
    canceled: "canceled",
  },
  operation: {
    started: "started",
    succeeded: "success",
    failed: "failed",
    lost: "unknown",
    taken_over: "started",
    reopened: "started",
    returned: "returned",
    undone: "rolled_back",
  },
  task: {
    added: "pending",
    claimed: "claimed",
    released: "pending",
    expired: "pending",
    completed: "completed",
    failed: "failed",
    reopened: "pending",
  },
};

/** I20: decisions, questions, operations and tasks as the trail tells them are those that are stored. */
export async function assertRebuilt(
  trail: readonly AuditEntry[],
  store: TenantStore,
): Promise<void> {
  const decisions = await rebuildDecisions(store.audit);
  const listed = await store.decisions.list();
  assert.equal(decisions.size, listed.length, "the trail knows all decisions and no others");
  for (const { id, state, updatedAt } of listed) {
    const told = decisions.get(id);
    assert.equal(told?.states.at(-1), state, `decision ${id}`);
    assert.equal(told?.updatedAt, updatedAt, `time of decision ${id}`);
  }
  const nouns = { interaction: new Map(), operation: new Map(), task: new Map() } as const;
  const versions = new Map<string, number>();
  for (const { type, subject, data } of trail) {
    const [noun = "", event = ""] = type.split(".");
    const left = LEFT[noun]?.[event];
    if (left !== undefined) nouns[noun as keyof typeof nouns].set(subject, left);
    if (noun === "task") versions.set(subject, Number(JSON.parse(data ?? "{}").version));
  }
  for (const [id, status] of nouns.interaction) {
    assert.equal((await store.interactions.get(id)).status, status, `interaction ${id}`);
  }
  for (const [id, status] of nouns.operation) {
    assert.equal((await store.operations.get(id)).status, status, `operation ${id}`);
  }
  const tasks = await store.tasks.list();
  assert.equal(tasks.length, nouns.task.size, "the trail knows all tasks and no others");
  for (const { id, status, version } of tasks) {
    assert.deepEqual([nouns.task.get(id), versions.get(id)], [status, version], `task ${id}`);
  }
}
