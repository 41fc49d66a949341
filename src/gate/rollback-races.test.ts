import { expect, test } from "vitest";
import { forEachStore } from "../../tests/support/for-each-store.ts";
import { scaled } from "../../tests/support/scale.ts";
import type { TestStore } from "../../tests/support/stores.ts";
import {
  BY,
  CRASH_POINTS,
  type CrashPoint,
  LEASE_MS,
  UndoWorld,
} from "../../tests/support/undo-world.ts";
import { together } from "../store/conformance/samples.ts";
import type { OperationStore } from "../store/operations.ts";
import { type RollbackOptions, rollback } from "./rollback.ts";
import { leftOver, type RollbackReport } from "./rollback-report.ts";

const STEPS = Array.from({ length: 10 }, (_, n) => `step-${n}`);
const NEWEST_FIRST = STEPS.toReversed();
const ONCE = Object.fromEntries(STEPS.map((id) => [id, 1]));

interface Saga {
  readonly operations: OperationStore;
  readonly world: UndoWorld;
  roll(over?: Partial<RollbackOptions>): Promise<RollbackReport>;
}

async function sagaIn({ store }: TestStore): Promise<Saga> {
  const { operations } = store.tenant("acme");
  const world = new UndoWorld(operations);
  for (const id of STEPS) await world.act(id);
  const scope = { sessionId: "session-1", messageId: "m-1" };
  return {
    operations,
    world,
    roll: (over) => rollback({ operations, scope, dispatch: world.dispatch, by: BY, ...over }),
  };
}

/** A process that dies at one point of one step: after it, none of its calls and reports arrive. */
async function rollAndDie(saga: Saga, step: string, at: CrashPoint): Promise<void> {
  let isDead = false;
  const alive = (): true => {
    if (isDead) throw new Error("this process is dead");
    return true;
  };
  saga.world.onPoint = (point, id) => {
    isDead ||= point === at && id === step;
    alive();
  };
  await saga.roll({
    operations: {
      get: async (id) => alive() && saga.operations.get(id),
      listBySession: saga.operations.listBySession,
    },
    dispatch: async (request) => alive() && saga.world.dispatch(request),
  });
  expect(isDead).toBe(true);
  saga.world.onPoint = () => {};
}

/** Every step is in the report exactly once, whatever else is. */
function expectComplete(report: RollbackReport): void {
  const ids = Object.values(report).flatMap((list) => list.map(({ operationId }) => operationId));
  expect(ids.filter((id) => STEPS.includes(id)).toSorted()).toEqual(STEPS);
  expect(new Set(ids).size).toBe(ids.length);
}

forEachStore("rollback at the same time", (open) => {
  test("of 32 rollbacks at once each effect is undone once, in order, and none is left [T9 I-35]", async () => {
    const { world, roll } = await sagaIn(await open());
    const reports = await together(32, () => roll());
    expect(world.counts).toEqual(ONCE);
    expect(world.undone).toEqual(NEWEST_FIRST);
    for (const report of reports) expectComplete(report);
    const undone = reports.flatMap((report) => report.undone.map(({ operationId }) => operationId));
    expect(undone.toSorted()).toEqual(STEPS);
    expect(reports.flatMap((report) => [...report.failed, ...report.conflicted])).toEqual([]);
    expect(leftOver(await roll())).toEqual([]);
  });

  test("of 32 that go on around each other each effect is still undone once [T9]", async () => {
    const { world, roll } = await sagaIn(await open());
    const reports = await together(32, () => roll({ whenUnfinished: "go_on" }));
    expect(world.counts).toEqual(ONCE);
    for (const report of reports) expectComplete(report);
    expect(reports.flatMap((report) => [...report.failed, ...report.conflicted])).toEqual([]);
  });

  test("32 rollbacks after a failure share one second try [T9]", async () => {
    const { world, roll } = await sagaIn(await open());
    world.fates.set("step-4", "failed");
    await roll();
    world.fates.clear();
    await together(32, () => roll());
    expect(world.counts).toEqual(ONCE);
  });

  test("while one rollback is at work another dispatches nothing before it [T9]", async () => {
    const { world, roll } = await sagaIn(await open());
    let second: RollbackReport | undefined;
    world.onPoint = async (point, id) => {
      if (point !== "after_start" || id !== "step-6" || second !== undefined) return;
      second = await roll();
      expect(world.undone).toEqual(["step-9", "step-8", "step-7"]);
    };
    const first = await roll();
    expect(first.undone.length).toBe(10);
    expect(second?.unfinished.map(({ operationId }) => operationId)).toEqual(
      NEWEST_FIRST.slice(NEWEST_FIRST.indexOf("step-6")),
    );
    expect(world.counts).toEqual(ONCE);
  });
});

/** The first, the last and some between in `npm test`; each of them in the proof. */
const EVERY = scaled({ test: 3, proof: 1, full: 1 });
const DIES_AT = STEPS.filter((_, at) => at % EVERY === 0);

forEachStore("rollback after a crash", (open) => {
  test.each(CRASH_POINTS)(
    "a saga of 10 that dies %s of any step is flagged, then fully compensated, each effect once [T9 I-36]",
    async (point) => {
      for (const step of DIES_AT) {
        const store = await open();
        const saga = await sagaIn(store);
        await rollAndDie(saga, step, point);
        // Immediately, before the lease ends: the report says what is open, and nothing is done twice.
        const early = await saga.roll();
        expectComplete(early);
        const isCutOff = point === "after_start" || point === "after_effect";
        const left = isCutOff ? NEWEST_FIRST.slice(NEWEST_FIRST.indexOf(step)) : [];
        expect(leftOver(early).map(({ operationId }) => operationId)).toEqual(left);
        store.clock.advance(LEASE_MS);
        await saga.world.recover("probed");
        const late = await saga.roll();
        expectComplete(late);
        expect(leftOver(late)).toEqual([]);
        expect(saga.world.counts).toEqual(ONCE);
        expect(saga.world.undone).toEqual(NEWEST_FIRST);
        for (const id of STEPS) expect((await saga.operations.get(id)).status).toBe("rolled_back");
      }
    },
  );

  test("a saga that dies at every single step, one process after the other, is compensated once [T9]", async () => {
    const store = await open();
    const saga = await sagaIn(store);
    for (const [n, step] of NEWEST_FIRST.entries()) {
      await rollAndDie(saga, step, CRASH_POINTS[n % CRASH_POINTS.length] ?? "after_start");
      store.clock.advance(LEASE_MS);
      await saga.world.recover("probed");
    }
    expect(leftOver(await saga.roll())).toEqual([]);
    expect(saga.world.counts).toEqual(ONCE);
    expect(saga.world.undone).toEqual(NEWEST_FIRST);
  });

  test.each(["after_start", "after_effect"] as const)(
    "where nobody can tell whether it happened (%s), it stays flagged and is never dispatched again [T9]",
    async (point) => {
      const store = await open();
      const saga = await sagaIn(store);
      await rollAndDie(saga, "step-5", point);
      store.clock.advance(LEASE_MS);
      await saga.world.recover("without probe");
      const held = await saga.roll();
      expect(leftOver(held).map(({ operationId }) => operationId)).toEqual(NEWEST_FIRST.slice(4));
      const around = await saga.roll({ whenUnfinished: "go_on" });
      expectComplete(around);
      expect(leftOver(around)).toMatchObject([
        { operationId: "step-5", reason: expect.stringContaining("nobody can tell") },
      ]);
      const count = point === "after_effect" ? 1 : undefined;
      expect(saga.world.counts["step-5"]).toBe(count);
      expect(Object.keys(saga.world.counts).length).toBe(point === "after_effect" ? 10 : 9);
    },
  );
});
