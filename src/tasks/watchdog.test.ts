import { expect, test } from "vitest";
import { manualTimers } from "../../tests/support/manual-timers.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import { manualClock } from "../util/clock.ts";
import { createTaskList, memoryTaskStore } from "./create-task-list.ts";
import { startHeartbeat, startWatchdog } from "./watchdog.ts";

const LEASE = 30_000;

async function claimed() {
  const clock = manualClock(Date.parse("2026-11-15T06:00:00.000Z"));
  const timers = manualTimers(clock);
  const tasks = createTaskList({ store: memoryTaskStore(), clock });
  const { id } = await tasks.add({ subject: "A task" });
  const { fence = 0 } = await tasks.claim({ id, claimer: "alice", leaseMs: LEASE });
  const renew = tasks.renew;
  return { clock, timers, tasks, id, fence, renew };
}

test("a heartbeat keeps a claim until it is stopped, and leaves no timer", async () => {
  const { timers, tasks, id, fence } = await claimed();
  const heartbeat = startHeartbeat({ tasks, id, fence, leaseMs: LEASE, timers });
  await timers.advance(20 * LEASE);
  expect(heartbeat.signal.aborted).toBe(false);
  expect(await tasks.claimNext({ claimer: "bob" })).toBe(undefined);
  heartbeat.stop();
  expect(timers.open).toBe(0);
  await timers.advance(LEASE);
  expect((await tasks.claimNext({ claimer: "bob" }))?.claimer).toBe("bob");
  expect(heartbeat.signal.aborted).toBe(false);
});

test("a worker whose claim was taken over gets the signal at the next renewal [T34]", async () => {
  const { timers, tasks, id, fence } = await claimed();
  const heartbeat = startHeartbeat({ tasks, id, fence, leaseMs: LEASE, timers });
  await tasks.release({ id, fence: "any" });
  await tasks.claim({ id, claimer: "bob", leaseMs: LEASE });
  await timers.advance(LEASE / 3);
  expect(isSallyportError(heartbeat.signal.reason, "claim_lost")).toBe(true);
  expect(timers.open).toBe(0);
});

test("a worker that cannot reach the store gets the signal when its lease ends [G10]", async () => {
  const { clock, timers, tasks, id, fence, renew } = await claimed();
  let answer: "yes" | "down" | "never" = "yes";
  const shaky = {
    renew: (request: Parameters<typeof renew>[0]) => {
      if (answer === "down") return Promise.reject(new SallyportError("store_unavailable"));
      return answer === "never" ? new Promise<never>(() => {}) : renew(request);
    },
  };
  const heartbeat = startHeartbeat({ tasks: shaky, id, fence, leaseMs: LEASE, timers });
  await timers.advance(LEASE / 3);
  answer = "down";
  await timers.advance(LEASE / 2);
  answer = "yes";
  await timers.advance(LEASE);
  expect(heartbeat.signal.aborted).toBe(false);
  const until = Date.parse((await tasks.get(id)).leaseUntil ?? "");
  answer = "never";
  await timers.advance(until - 1 - clock.now());
  expect(heartbeat.signal.aborted).toBe(false);
  await timers.advance(1);
  expect(isSallyportError(heartbeat.signal.reason, "claim_lost")).toBe(true);
});

test("a concurrent change of the task does not stop the heartbeat", async () => {
  const { timers, id, fence, renew } = await claimed();
  let first = true;
  const racing = {
    async renew(request: Parameters<typeof renew>[0]) {
      if (!first) return renew(request);
      first = false;
      throw new SallyportError("concurrent_modification");
    },
  };
  const heartbeat = startHeartbeat({ tasks: racing, id, fence, leaseMs: LEASE, timers });
  await timers.advance(5 * LEASE);
  expect(heartbeat.signal.aborted).toBe(false);
  heartbeat.stop();
});

test("the watchdog frees expired claims within one round and reports each stuck task once [I14]", async () => {
  const { timers, tasks, id } = await claimed();
  const old = await tasks.add({ subject: "old" });
  await tasks.claim({ id: old.id, claimer: "bob" });
  const reported: string[] = [];
  const errors: unknown[] = [];
  const watchdog = startWatchdog({
    tasks,
    everyMs: 1_000,
    claimedForMs: 2 * LEASE,
    onStuck: ({ task, why }) => reported.push(`${task.subject} ${why}`),
    onError: (error) => errors.push(error),
    timers,
  });
  await timers.advance(LEASE);
  expect((await tasks.get(id)).status).toBe("pending");
  await timers.advance(3 * LEASE);
  expect(reported).toEqual(["old claimed_long"]);
  await tasks.link({ id: old.id, sessionId: "s" });
  await timers.advance(1_000);
  expect(reported).toEqual(["old claimed_long", "old claimed_long"]);
  watchdog.stop();
  expect(timers.open).toBe(0);
  expect(errors).toEqual([]);
});

test("a failed round of the watchdog is reported, and the next one runs", async () => {
  const timers = manualTimers(manualClock(0));
  let rounds = 0;
  const errors: unknown[] = [];
  const broken = async () => {
    rounds += 1;
    throw new Error("down");
  };
  const tasks = { sweep: broken, findStuck: broken };
  const onError = (error: unknown) => errors.push(error);
  const watchdog = startWatchdog({
    tasks,
    everyMs: 10,
    claimedForMs: 1,
    onStuck: () => {},
    onError,
    timers,
  });
  await timers.advance(35);
  watchdog.stop();
  expect([rounds, errors.length, timers.open]).toEqual([3, 3, 0]);
});
