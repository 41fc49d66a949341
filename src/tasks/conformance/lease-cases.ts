import assert from "node:assert/strict";
import { refuses, START } from "../../store/conformance/samples.ts";
import { toIso } from "../../util/clock.ts";
import type { TaskCase, TaskHarness } from "./case.ts";

const MINUTE = 60_000;

async function leased({ tasks }: TaskHarness, claimer = "alice") {
  const { id } = await tasks.add({ subject: "A task" });
  const { fence = 0 } = await tasks.claim({ id, claimer, leaseMs: MINUTE });
  return { id, fence };
}

/** Claims that end by themselves. */
export const taskLeaseCases: readonly TaskCase[] = [
  {
    name: "lease: a claim with a lease says until when, and its fence is the version it wrote",
    async run(harness) {
      const { id, fence } = await leased(harness);
      const task = await harness.tasks.get(id);
      assert.equal(task.leaseUntil, toIso(START + MINUTE));
      assert.deepEqual([fence, task.version], [2, 2]);
    },
  },
  {
    name: "lease: I11 nobody else can claim before it is over, and somebody else can from that moment on",
    async run(harness) {
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
  },
  {
    name: "lease: I12 T34 who wakes up late cannot renew, complete, fail, release or link, and changes nothing",
    async run(harness) {
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
  },
  {
    name: "lease: I13 T34 an expired claim that nobody took is over all the same, and stays so when the clock steps back",
    async run(harness) {
      const { tasks, clock } = harness;
      const { id, fence } = await leased(harness);
      clock.advance(MINUTE);
      await refuses("claim_lost", () => tasks.complete({ id, fence, result: "late" }));
      clock.set(START);
      await refuses("claim_lost", () => tasks.complete({ id, fence, result: "late" }));
      await refuses("claim_lost", () => tasks.renew({ id, fence, leaseMs: MINUTE }));
      assert.equal((await tasks.get(id)).status, "pending");
    },
  },
  {
    name: "lease: a renewal lasts from now on, keeps the fence, and a clock that steps back does not shorten it",
    async run(harness) {
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
  },
  {
    name: "lease: who holds it completes it with its fence, and the lease is gone with the claim",
    async run(harness) {
      const { tasks } = harness;
      const { id, fence } = await leased(harness);
      const done = await tasks.complete({ id, fence, result: "done" });
      assert.deepEqual([done.status, done.leaseUntil, done.fence], ["completed", undefined, fence]);
    },
  },
  {
    name: "lease: T34 a leased claim is not closed without a fence or with a wrong one, only by `any`",
    async run(harness) {
      const { tasks } = harness;
      const { id, fence } = await leased(harness);
      await refuses("claim_lost", () => tasks.complete({ id, result: "x" }));
      await refuses("claim_lost", () => tasks.complete({ id, fence: fence + 1, result: "x" }));
      await refuses("claim_lost", () => tasks.fail({ id, fence: fence - 1, reason: "x" }));
      await refuses("claim_lost", () => tasks.release({ id }));
      const done = await tasks.complete({ id, fence: "any", result: "the leader says so" });
      assert.equal(done.status, "completed");
    },
  },
  {
    name: "lease: I12 fences only grow, through release, expiry, failure and re-opening",
    async run({ tasks, clock }) {
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
  },
  {
    name: "lease: a fence of a plain claim is checked too when it is shown",
    async run({ tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      const { fence = 0 } = await tasks.claim({ id, claimer: "alice" });
      await tasks.release({ id, fence, reason: "not mine" });
      await tasks.claim({ id, claimer: "bob" });
      await refuses("claim_lost", () => tasks.complete({ id, fence, result: "late" }));
      assert.equal((await tasks.get(id)).claimer, "bob");
    },
  },
  {
    name: "lease: a released task is pending, and says who gave it back and why",
    async run(harness) {
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
  },
  {
    name: "lease: I14 the sweep frees every claim that is over and no other, and can be run by many at once",
    async run(harness) {
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
  },
  {
    name: "lease: a task whose lease runs out again and again can be given up, and starts anew when re-opened",
    async run({ tasks, clock }) {
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
  },
  ...[0, -1, 0.5, Number.NaN, 8 * 24 * 3_600_000].map(
    (leaseMs): TaskCase => ({
      name: `lease: ${leaseMs} ms is no lease`,
      async run({ tasks }) {
        const { id } = await tasks.add({ subject: "A task" });
        await refuses("invalid_input", () => tasks.claim({ id, claimer: "alice", leaseMs }));
        await refuses("invalid_input", () => tasks.claimNext({ claimer: "alice", leaseMs }));
        assert.equal((await tasks.get(id)).version, 1);
      },
    }),
  ),
];
