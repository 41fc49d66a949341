import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { refuses, START, soundTrail } from "../../src/store/conformance/samples.ts";

import type { TaskStore } from "../../src/store/tasks.ts";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { manualClock } from "../../src/util/clock.ts";
import { forEachStore } from "../support/for-each-store.ts";

const MINUTE = 60_000;

forEachStore("tasks over the engine", (open) => {
  async function opened() {
    const harness = await open();
    const store = harness.store.tenant("acme").tasks;
    const trail = async () =>
      (await soundTrail(harness.engine)).map(
        ({ type, subject, session, actor, data }) =>
          [type, subject, session, actor, JSON.parse(data ?? "")] as const,
      );
    const others = createTaskList({ store: harness.store.tenant("other").tasks });
    return { ...harness, store, trail, others, tasks: createTaskList({ store }) };
  }

  test("every change is in the audit log with its actor and session, and a rejected one is not", async () => {
    const { tasks, trail, clock } = await opened();
    const { id } = await tasks.add({ subject: "A task", sessionId: "s-1", by: "leader" });
    const { fence = 0 } = (await tasks.claimNext({ claimer: "alice", leaseMs: MINUTE })) ?? {};
    await tasks.renew({ id, fence, leaseMs: MINUTE });
    clock.advance(MINUTE);
    await refuses("claim_lost", () => tasks.complete({ id, fence, result: "late" }));
    await tasks.fail({ id, reason: "nobody came", by: "leader" });
    await tasks.reopen({ id, by: "carol" });
    const again = await tasks.claimNext({ claimer: "bob", leaseMs: MINUTE });
    await tasks.complete({ id, fence: again?.fence ?? 0, result: "done" });
    await refuses("already_completed", () => tasks.complete({ id, result: "again" }));
    expect(await trail()).toEqual([
      ["task.added", id, "s-1", "leader", { version: 1, subject: "A task" }],
      ["task.claimed", id, "s-1", "alice", { version: 2, fence: 2 }],
      ["task.renewed", id, "s-1", "alice", { version: 3, fence: 2 }],
      ["task.expired", id, "s-1", "watchdog", { version: 4, fence: 2 }],
      ["task.failed", id, "s-1", "leader", { version: 5, fence: 2, reason: "nobody came" }],
      ["task.reopened", id, "s-1", "carol", { version: 6, fence: 2 }],
      ["task.claimed", id, "s-1", "bob", { version: 7, fence: 7 }],
      ["task.completed", id, "s-1", "bob", { version: 8, fence: 7 }],
    ]);
  });

  test("secrets in a subject or a reason are not in the audit log", async () => {
    const { tasks, trail } = await opened();
    const secret = "AKIAIOSFODNN7EXAMPLE";
    const { id } = await tasks.add({ subject: `Use ${secret}` });
    await tasks.fail({ id, reason: `The key ${secret} is refused` });
    expect(JSON.stringify(await trail())).not.toContain(secret);
    expect((await tasks.get(id)).failureReason).toContain(secret);
  });

  test("a worker that is paused between its read and its write cannot write after its lease [T34 I12]", async () => {
    const { store, clock, tasks } = await opened();
    const sleepy: TaskStore = {
      ...store,
      async compareAndSwap(task, version, cause) {
        if (cause?.actor === "alice") clock.advance(MINUTE);
        return store.compareAndSwap(task, version, cause);
      },
    };
    const calls = {
      // A guard, so that the list looks at the task first instead of letting the store do all in one step.
      complete: (id: string, fence: number) =>
        createTaskList({ store: sleepy, mayComplete: () => true }).complete({
          id,
          fence,
          result: "late",
        }),
      fail: (id: string, fence: number) =>
        createTaskList({ store: sleepy }).fail({ id, fence, reason: "late" }),
      release: (id: string, fence: number) =>
        createTaskList({ store: sleepy }).release({ id, fence }),
      link: (id: string, fence: number) =>
        createTaskList({ store: sleepy }).link({ id, fence, sessionId: "late" }),
    };
    for (const [name, call] of Object.entries(calls)) {
      const { id } = await tasks.add({ subject: name });
      const { fence = 0 } = await tasks.claim({ id, claimer: "alice", leaseMs: MINUTE });
      const before = await store.get(id);
      await refuses("claim_lost", () => call(id, fence), name);
      expect(await store.get(id)).toEqual(before);
      const [taken] = await tasks.sweep();
      expect(taken?.history).toMatchObject([{ what: "expired", by: "alice", fence }]);
      await tasks.complete({ id, result: "" });
    }
  });

  test("leases use the store's clock: a process with a wrong clock neither keeps nor steals a claim [T34]", async () => {
    const { store, clock, tasks } = await opened();
    for (const off of [-86_400_000, -3_600_000, 3_600_000, 86_400_000]) {
      const wrong = createTaskList({ store, clock: manualClock(START + off) });
      const { id } = await tasks.add({ subject: `${off}` });
      const claimed = await wrong.claim({ id, claimer: "alice", leaseMs: MINUTE });
      await refuses("not_claimable", () => wrong.claim({ id, claimer: "bob", leaseMs: MINUTE }));
      expect(await wrong.sweep()).toEqual([]);
      expect(await wrong.claimNext({ claimer: "bob", leaseMs: MINUTE })).toBe(undefined);
      clock.advance(MINUTE);
      const fence = claimed.fence ?? 0;
      await refuses("claim_lost", () => wrong.renew({ id, fence, leaseMs: MINUTE }));
      const taken = await wrong.claimNext({ claimer: "bob", leaseMs: MINUTE });
      expect([taken?.id, taken?.claimer]).toEqual([id, "bob"]);
      await wrong.complete({ id, fence: taken?.fence ?? 0, result: "" });
    }
  });

  test("a claim changed through another handle can still be renewed, and is completed once", async () => {
    const { store, tasks, again } = await opened();
    const other = createTaskList({ store: (await again?.())?.store.tenant("acme").tasks ?? store });
    const { id } = await tasks.add({ subject: "A task" });
    const { fence = 0 } = (await tasks.claimNext({ claimer: "alice", leaseMs: MINUTE })) ?? {};
    await other.link({ id, fence: "any", decisionIds: ["dec-1"] });
    const renewed = await tasks.renew({ id, fence, leaseMs: MINUTE });
    expect([renewed.version, renewed.decisionIds]).toEqual([4, ["dec-1"]]);
    await other.renew({ id, fence, leaseMs: 2 * MINUTE });
    const done = await tasks.complete({ id, fence, result: "done" });
    expect([done.version, done.decisionIds, done.claimer]).toEqual([6, ["dec-1"], "alice"]);
    await refuses("already_completed", () => other.complete({ id, fence, result: "again" }));
    expect(await other.get(id)).toEqual(done);
  });

  test("a shorter renewal does not shorten the lease", async () => {
    const { tasks } = await opened();
    const { id } = await tasks.add({ subject: "A task" });
    const claimed = await tasks.claimNext({ claimer: "alice", leaseMs: MINUTE });
    const renewed = await tasks.renew({ id, fence: claimed?.fence ?? 0, leaseMs: 1_000 });
    expect(renewed.leaseUntil).toBe(claimed?.leaseUntil);
  });

  test("changes of a returned task affect neither the store nor the next write", async () => {
    const { tasks } = await opened();
    await tasks.add({ subject: "A task" });
    const mine = await tasks.claimNext({ claimer: "alice", leaseMs: MINUTE });
    const { id = "", fence = 0 } = mine ?? {};
    Object.assign(mine ?? {}, { claimer: "mallory", sessionId: "other" });
    const done = await tasks.complete({ id, fence, result: "done" });
    expect([done.claimer, done.version, done.fence, done.sessionId]).toEqual([
      "alice",
      3,
      2,
      undefined,
    ]);
  });

  test("blockers set through the store: one that is added later, one that is reopened", async () => {
    const { store, tasks } = await opened();
    const late = { ...(await tasks.add({ subject: "late" })), id: "late" };
    await store.compareAndSwap({ ...late, id: "waits", blockedBy: ["late", "waits-too"] }, 0);
    await store.compareAndSwap({ ...late, id: "waits-too", status: "completed" }, 0);
    await store.compareAndSwap(late, 0);
    await tasks.complete({ id: "late", result: "" });
    await tasks.complete({ id: (await tasks.list())[0]?.id ?? "", result: "" });
    const done = await store.get("late");
    await store.compareAndSwap({ ...late, subject: "open again" }, done.version);
    expect((await tasks.claimNext({ claimer: "bob" }))?.subject).toBe("open again");
    expect(await tasks.claimNext({ claimer: "bob" })).toBe(undefined);
    await tasks.complete({ id: "late", result: "" });
    expect((await tasks.claimNext({ claimer: "bob" }))?.id).toBe("waits");
  });

  test("a list is one snapshot while others claim, link and complete", async () => {
    const { store, tasks, again } = await opened();
    const other = createTaskList({ store: (await again?.())?.store.tenant("acme").tasks ?? store });
    const { id } = await tasks.add({ subject: "A task" });
    let reading = true;
    const write = async () => {
      const { fence = 0 } = (await tasks.claimNext({ claimer: "alice", leaseMs: MINUTE })) ?? {};
      for (let n = 0; n < 25; n += 1) {
        await setImmediate();
        await tasks.renew({ id, fence, leaseMs: MINUTE });
        await tasks.link({ id, fence, decisionIds: [`dec-${n}`] });
      }
      await tasks.complete({ id, fence, result: "done" });
    };
    const seen = new Set<number>();
    const read = async () => {
      while (reading) {
        await setImmediate();
        const found = seen.size % 2 === 0 ? await other.get(id) : (await other.list())[0];
        const { version = 0, decisionIds = [], status } = found ?? {};
        seen.add(version);
        // Added, claimed, then a renewal and a link in turn; the completion comes last.
        const links = status === "completed" ? 25 : Math.max(0, Math.floor((version - 2) / 2));
        expect([version, decisionIds.length]).toEqual([version, links]);
      }
    };
    const written = write().finally(() => {
      reading = false;
    });
    await Promise.all([written, read(), read(), read()]);
    expect(seen.size).toBeGreaterThan(1);
    expect(await other.get(id)).toMatchObject({ version: 53, status: "completed", result: "done" });
  });

  test("tasks of one tenant are not visible to another", async () => {
    const { others, tasks } = await opened();
    const { id } = await tasks.add({ subject: "A task" });
    expect(await others.list()).toEqual([]);
    expect(await others.claimNext({ claimer: "bob" })).toBe(undefined);
    await refuses("not_found", () => others.get(id));
    await refuses("not_found", () => others.complete({ id, result: "" }));
    expect((await tasks.get(id)).version).toBe(1);
  });
});
