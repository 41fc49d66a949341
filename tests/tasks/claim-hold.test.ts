import { expect, test } from "vitest";
import { claimHold } from "../../src/store/engine-tasks.ts";
import type { Intent } from "../../src/store/operations.ts";
import type { ClaimRef, TaskStore } from "../../src/store/tasks.ts";
import { createTaskList, memoryTaskStore } from "../../src/tasks/create-task-list.ts";
import { checkClaim } from "../../src/tasks/rules.ts";
import { manualClock } from "../../src/util/clock.ts";
import { forEachStore } from "../support/for-each-store.ts";

const MINUTE = 60_000;

function intent(id: string, claim: ClaimRef): Intent {
  return {
    id,
    sessionId: "session-1",
    messageId: "m-1",
    callId: "c-1",
    turn: 1,
    tool: "files.write",
    effect: "write",
    definitionHash: "d".repeat(64),
    input: "{}",
    workingDirectory: "/srv",
    step: 0,
    undoOf: "",
    approval: undefined,
    holds: [claimHold(claim)],
    leaseMs: MINUTE,
    actor: "alice",
  };
}

forEachStore("the write gate asks for the claim", (open) => {
  async function bound() {
    const { store, clock } = await open();
    const { tasks: own, operations, audit } = store.tenant("acme");
    const tasks = createTaskList({ store: own });
    const { id } = await tasks.add({ subject: "A task" });
    const { fence = 0 } = (await tasks.claimNext({ claimer: "alice", leaseMs: MINUTE })) ?? {};
    const claim = { id, fence };
    let asked = 0;
    const start = async () => {
      asked += 1;
      const answer = await operations.start(intent(`op-${asked}`, claim));
      return answer.started ? "started" : answer.reason;
    };
    const findings = async () => (await checkClaim(own, claim)).map(({ severity }) => severity);
    const entries = async () => (await audit.head()).seq;
    return { tasks, clock, claim, start, findings, entries };
  }

  test("a session bound to a claim starts effects until the lease ends, and none from then on [T34]", async () => {
    const { clock, claim, start, findings, entries, tasks } = await bound();
    expect([await start(), await findings()]).toEqual(["started", []]);
    clock.advance(MINUTE - 1);
    expect([await start(), await findings()]).toEqual(["started", []]);
    clock.advance(1);
    const before = await entries();
    expect([await start(), await findings()]).toEqual(["claim_lost", ["hard-deny"]]);
    expect(await entries(), "nothing was written").toBe(before);
    expect((await tasks.get(claim.id)).status).toBe("claimed");
  });

  test("after a takeover the fence has changed and the former holder writes nothing [T34]", async () => {
    const { clock, claim, start, findings, tasks } = await bound();
    clock.advance(MINUTE);
    await tasks.claimNext({ claimer: "bob", leaseMs: MINUTE });
    expect([await start(), await findings()]).toEqual(["claim_lost", ["hard-deny"]]);
    clock.set(clock.now() - MINUTE);
    expect([await start(), await findings()]).toEqual(["claim_lost", ["hard-deny"]]);
    expect(claim.fence).toBeGreaterThan(0);
  });

  const ENDS = {
    completed: ({ tasks, claim }) => tasks.complete({ ...claim, result: "" }),
    failed: ({ tasks, claim }) => tasks.fail({ ...claim, reason: "no" }),
    "given back": ({ tasks, claim }) => tasks.release(claim),
    "given back and claimed by the same worker again": async ({ tasks, claim }) => {
      await tasks.release(claim);
      await tasks.claimNext({ claimer: "alice", leaseMs: MINUTE });
    },
  } satisfies Record<string, (world: Awaited<ReturnType<typeof bound>>) => Promise<unknown>>;

  test.each(Object.keys(ENDS) as (keyof typeof ENDS)[])(
    "a session bound to a claim whose task was %s starts nothing [T34]",
    async (name) => {
      const world = await bound();
      await ENDS[name](world);
      expect([await world.start(), await world.findings()]).toEqual(["claim_lost", ["hard-deny"]]);
    },
  );

  test("a claim without a lease is checked as well, and a missing task denies every call", async () => {
    const { tasks, start } = await bound();
    const { store } = await open();
    const { operations, tasks: own } = store.tenant("acme");
    const list = createTaskList({ store: own });
    const { id } = await list.add({ subject: "Kept" });
    const { fence = 0 } = (await list.claimNext({ claimer: "alice" })) ?? {};
    expect((await operations.start(intent("op-1", { id, fence }))).started).toBe(true);
    const gone = { id: "no-such-task", fence };
    expect(await operations.start(intent("op-2", gone))).toMatchObject({ reason: "claim_lost" });
    expect(await checkClaim(own, gone)).toHaveLength(1);
    expect([await start(), (await tasks.list()).length]).toEqual(["started", 1]);
  });
});

test("over another store the claim is checked too, and an unknown state denies the call [T34]", async () => {
  const clock = manualClock(0);
  const store = memoryTaskStore();
  const tasks = createTaskList({ store, clock });
  const { id } = await tasks.add({ subject: "A task" });
  const { fence = 0 } = await tasks.claim({ id, claimer: "alice", leaseMs: MINUTE });
  expect(await checkClaim(store, { id, fence }, clock)).toEqual([]);
  clock.advance(MINUTE);
  expect(await checkClaim(store, { id, fence }, clock)).toMatchObject([{ severity: "hard-deny" }]);
  const broken: Pick<TaskStore, "get"> = { get: () => Promise.reject(new Error("disk is gone")) };
  const [finding] = await checkClaim(broken, { id, fence }, clock);
  expect(finding?.severity).toBe("hard-deny");
  expect(finding?.message).toContain("disk is gone");
});
