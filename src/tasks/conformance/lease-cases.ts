import assert from "node:assert/strict";
import { refuses, START } from "../../store/conformance/samples.ts";
import { toIso } from "../../util/clock.ts";
import { casesOf, type TaskCase, type TaskHarness } from "./store-cases.ts";

const MINUTE = 60_000;

async function leased({ tasks }: TaskHarness, claimer = "alice") {
  const { id } = await tasks.add({ subject: "A task" });
  const { fence = 0 } = await tasks.claim({ id, claimer, leaseMs: MINUTE });
  return { id, fence };
}

/** Claims that end by themselves. */
export const taskLeaseCases: readonly TaskCase[] = [
  ...casesOf({
    "lease: a leased claim has its end, and its version as fence": async (harness) => {
      const { id, fence } = await leased(harness);
      const task = await harness.tasks.get(id);
      assert.equal(task.leaseUntil, toIso(START + MINUTE));
      assert.deepEqual([fence, task.version], [2, 2]);
    },
    "lease: another worker can claim the task from the moment the lease ends, not before [I11]":
      async (harness) => {
        const { tasks, clock } = harness;
        const { id, fence } = await leased(harness);
        clock.advance(MINUTE - 1);
        await refuses("not_claimable", () => tasks.claim({ id, claimer: "bob", leaseMs: MINUTE }));
        clock.advance(1);
        const taken = await tasks.claim({ id, claimer: "bob", leaseMs: MINUTE });
        assert.equal(taken.claimer, "bob");
        assert.ok((taken.fence ?? 0) > fence);
        assert.deepEqual(taken.history, [
          { at: toIso(START + MINUTE), what: "expired", by: "alice", fence },
        ]);
      },
    "lease: after a takeover the former holder cannot renew, complete, fail, release or link [I12 T34]":
      async (harness) => {
        const { tasks, clock } = harness;
        const { id, fence } = await leased(harness);
        clock.advance(MINUTE);
        await tasks.claim({ id, claimer: "bob", leaseMs: MINUTE });
        const before = await tasks.get(id);
        const late = { id, fence };
        await refuses("claim_lost", () => tasks.renew({ ...late, leaseMs: MINUTE }));
        await refuses("claim_lost", () => tasks.complete({ ...late, result: "late" }));
        await refuses("claim_lost", () => tasks.fail({ ...late, reason: "late" }));
        await refuses("claim_lost", () => tasks.release(late));
        await refuses("claim_lost", () => tasks.link({ ...late, sessionId: "s" }));
        assert.deepEqual(await tasks.get(id), before);
      },
    "lease: an expired claim stays expired without a takeover and when the clock steps back [I13 T34]":
      async (harness) => {
        const { tasks, clock } = harness;
        const { id, fence } = await leased(harness);
        clock.advance(MINUTE);
        await refuses("claim_lost", () => tasks.complete({ id, fence, result: "late" }));
        clock.set(START);
        await refuses("claim_lost", () => tasks.complete({ id, fence, result: "late" }));
        await refuses("claim_lost", () => tasks.renew({ id, fence, leaseMs: MINUTE }));
        assert.equal((await tasks.get(id)).status, "pending");
      },
    "lease: a renewal counts from now, keeps the fence and is not shortened by a clock that steps back":
      async (harness) => {
        const { tasks, clock } = harness;
        const { id, fence } = await leased(harness);
        clock.advance(MINUTE / 2);
        const renewed = await tasks.renew({ id, fence, leaseMs: MINUTE });
        assert.equal(renewed.leaseUntil, toIso(START + 1.5 * MINUTE));
        assert.deepEqual([renewed.fence, renewed.version], [fence, 3]);
        clock.set(START);
        const again = await tasks.renew({ id, fence, leaseMs: MINUTE });
        assert.equal(again.leaseUntil, toIso(START + 1.5 * MINUTE));
      },
    "lease: the holder completes the task with its fence, which ends the lease": async (
      harness,
    ) => {
      const { tasks } = harness;
      const { id, fence } = await leased(harness);
      const done = await tasks.complete({ id, fence, result: "done" });
      assert.deepEqual([done.status, done.leaseUntil, done.fence], ["completed", undefined, fence]);
    },
    "lease: a leased claim is closed with its fence or with `any`, not without or with another [T34]":
      async (harness) => {
        const { tasks } = harness;
        const { id, fence } = await leased(harness);
        await refuses("claim_lost", () => tasks.complete({ id, result: "x" }));
        await refuses("claim_lost", () => tasks.complete({ id, fence: fence + 1, result: "x" }));
        await refuses("claim_lost", () => tasks.fail({ id, fence: fence - 1, reason: "x" }));
        await refuses("claim_lost", () => tasks.release({ id }));
        const done = await tasks.complete({ id, fence: "any", result: "the leader says so" });
        assert.equal(done.status, "completed");
      },
    "lease: fences grow through release, expiry, failure, reopening [I12]": async ({
      tasks,
      clock,
    }) => {
      const { id } = await tasks.add({ subject: "A task" });
      const fences: number[] = [];
      const claim = async () => {
        const { fence = 0 } = await tasks.claim({ id, claimer: "alice", leaseMs: MINUTE });
        fences.push(fence);
        return fence;
      };
      await tasks.release({ id, fence: await claim() });
      await claim();
      clock.advance(MINUTE);
      await tasks.fail({ id, fence: await claim(), reason: "no" });
      await tasks.reopen({ id });
      await claim();
      assert.equal(fences.length, 4);
      assert.deepEqual(
        fences,
        [...new Set(fences)].toSorted((a, b) => a - b),
      );
    },
    "lease: the fence of a claim without a lease is checked if it is given": async ({ tasks }) => {
      const { id } = await tasks.add({ subject: "A task" });
      const { fence = 0 } = await tasks.claim({ id, claimer: "alice" });
      await tasks.release({ id, fence, reason: "not mine" });
      await tasks.claim({ id, claimer: "bob" });
      await refuses("claim_lost", () => tasks.complete({ id, fence, result: "late" }));
      assert.equal((await tasks.get(id)).claimer, "bob");
    },
    "lease: a released task is pending and records who released it and why": async (harness) => {
      const { tasks } = harness;
      const { id, fence } = await leased(harness);
      const free = await tasks.release({ id, fence, reason: "too hard" });
      assert.deepEqual(
        [free.status, free.claimer, free.leaseUntil],
        ["pending", undefined, undefined],
      );
      assert.deepEqual(free.history, [
        { at: toIso(START), what: "released", by: "alice", reason: "too hard", fence },
      ]);
      await refuses("illegal_transition", () => tasks.release({ id }));
    },
    "lease: concurrent sweeps free each expired claim once and no other claim [I14]": async (
      harness,
    ) => {
      const { tasks, clock, list } = harness;
      const { id } = await leased(harness);
      clock.advance(1);
      const later = await leased(harness, "bob");
      const { id: plain } = await tasks.add({ subject: "plain" });
      await tasks.claim({ id: plain, claimer: "carol" });
      clock.advance(MINUTE - 1);
      const swept = await Promise.all([tasks.sweep(), list().sweep()]);
      assert.deepEqual(
        swept.flat().map((task) => [task.id, task.status]),
        [[id, "pending"]],
      );
      assert.equal((await tasks.get(later.id)).claimer, "bob");
      assert.equal((await tasks.get(plain)).claimer, "carol");
      assert.deepEqual(await tasks.sweep(), []);
    },
    "lease: a task whose lease expires repeatedly can be failed, and reopening resets the count":
      async ({ tasks, clock }) => {
        const { id } = await tasks.add({ subject: "A task" });
        const lose = async () => {
          await tasks.claim({ id, claimer: "alice", leaseMs: MINUTE });
          clock.advance(MINUTE);
          return (await tasks.sweep({ giveUpAfter: 3 }))[0];
        };
        assert.equal((await lose())?.status, "pending");
        assert.equal((await lose())?.status, "pending");
        const given = await lose();
        assert.deepEqual([given?.status, given?.version], ["failed", 7]);
        assert.match(given?.failureReason ?? "", /3 times/);
        await tasks.reopen({ id });
        assert.equal((await lose())?.status, "pending");
      },
  }),
  ...[0, -1, 0.5, Number.NaN, 8 * 24 * 3_600_000].map(
    (leaseMs): TaskCase => ({
      name: `lease: ${leaseMs} ms is rejected as a lease`,
      async run({ tasks }) {
        const { id } = await tasks.add({ subject: "A task" });
        await refuses("invalid_input", () => tasks.claim({ id, claimer: "alice", leaseMs }));
        await refuses("invalid_input", () => tasks.claimNext({ claimer: "alice", leaseMs }));
        assert.equal((await tasks.get(id)).version, 1);
      },
    }),
  ),
];
