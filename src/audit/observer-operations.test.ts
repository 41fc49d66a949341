import { expect, test } from "vitest";
import { BY, intentOf, success, UndoWorld } from "../../tests/support/undo-world.ts";
import { rollback } from "../gate/rollback.ts";
import { memoryStore } from "../store/memory/index.ts";
import type { OperationStore } from "../store/operations.ts";
import { manualClock } from "../util/clock.ts";
import {
  type AuditSink,
  createAuditObserver,
  type ObserverProblem,
  type ToolAuditEntry,
} from "./observer.ts";

const START = Date.parse("2026-11-15T06:00:00.000Z");

/** Operations over a real store, with a sink that writes down what it hears. */
function setUp(
  over: { sinks?: AuditSink[]; before?: (store: OperationStore) => OperationStore } = {},
) {
  const clock = manualClock(START);
  const store = memoryStore({ clock }).tenant("acme");
  const entries: ToolAuditEntry[] = [];
  const problems: ObserverProblem[] = [];
  const own = { name: "own", write: (entry: ToolAuditEntry): void => void entries.push(entry) };
  const observer = createAuditObserver({
    sinks: [...(over.sinks ?? []), own],
    findTool: () => undefined,
    onProblem: (problem) => problems.push(problem),
    clock,
  });
  const operations = observer.around(over.before?.(store.operations) ?? store.operations);
  const told = () => entries.map(({ outcome, tool, callId }) => `${outcome} ${tool} ${callId}`);
  return { clock, store, operations, entries, problems, told };
}

test("every stored outcome is reported once, with the store's time [I-27]", async () => {
  const { operations, clock, entries, told } = setUp();
  const outcomes = {
    a: success("1"),
    b: { status: "failed", error: "disk full", output: "" },
    c: { status: "unknown", error: "no answer" },
  } as const;
  for (const [id, outcome] of Object.entries(outcomes)) {
    await operations.start(intentOf(id));
    clock.advance(1_000);
    await operations.settle(id, { fence: 1, outcome, actor: "executor" });
  }
  expect(told()).toEqual([
    "done thing.set call-a",
    "failed thing.set call-b",
    "unknown thing.set call-c",
  ]);
  expect(entries[1]).toMatchObject({ at: "2026-11-15T06:00:02.000Z", turn: 1, operation: "edit" });
});

test("an outcome that came too late is not reported [I-27]", async () => {
  const { operations, told } = setUp();
  await operations.start(intentOf("a"));
  const settlement = { fence: 1, outcome: success("1"), actor: "executor" };
  await operations.settle("a", { ...settlement, fence: 9 });
  expect(told()).toEqual([]);
  await operations.settle("a", settlement);
  await operations.settle("a", settlement);
  expect(told()).toEqual(["done thing.set call-a"]);
});

test("an undo is reported as a call of its own, then its target as undone [I-27]", async () => {
  const { operations, told, problems } = setUp();
  const world = new UndoWorld(operations);
  await world.act("a", { turn: 4 });
  await rollback({
    operations,
    scope: { sessionId: "session-1" },
    dispatch: world.dispatch,
    by: BY,
  });
  expect(told()).toEqual([
    "done thing.set call-a",
    "done thing.restore call-undo.a",
    "undone thing.set call-a",
  ]);
  expect(problems).toEqual([]);
});

test("a start that the kill switch or the approval refuses is reported as denied [I-30]", async () => {
  const { operations, store, entries, told } = setUp();
  const approval = { decisionId: "dec-1", hash: "h" };
  await operations.start(intentOf("a", { approval, turn: 2 }));
  await store.killSwitch.stop("fire drill", { actor: BY });
  await operations.start(intentOf("b"));
  expect(told()).toEqual(["denied thing.set call-a", "denied thing.set call-b"]);
  expect(entries[0]).toMatchObject({ sessionId: "session-1", turn: 2 });
});

test("a start that another one was faster with is no refusal [I-30]", async () => {
  const { operations, told } = setUp();
  await operations.start(intentOf("a"));
  expect(await operations.start(intentOf("a"))).toMatchObject({ reason: "used_up" });
  expect(told()).toEqual([]);
});

test("the store's answer is the same with a sink that throws [I-28]", async () => {
  const broken: AuditSink = {
    name: "broken",
    write() {
      throw new Error("disk full");
    },
  };
  const settlement = { fence: 1, outcome: success("1"), actor: "executor" };
  const answers = await Promise.all(
    [setUp(), setUp({ sinks: [broken] })].map(async ({ operations, told, problems }) => {
      await operations.start(intentOf("a"));
      const answer = await operations.settle("a", settlement);
      return { answer, stored: await operations.get("a"), told: told(), problems: problems.length };
    }),
  );
  expect(answers[0]).toMatchObject({ answer: { settled: true }, problems: 0 });
  expect(answers[1]).toEqual({ ...answers[0], problems: 1 });
});

test("an undo stays done when its target cannot be read again [I-28]", async () => {
  const cause = new Error("the store is away");
  let isAway = false;
  const { operations, told, problems } = setUp({
    before: (store) => ({
      ...store,
      get: (id) => (isAway ? Promise.reject(cause) : store.get(id)),
    }),
  });
  await operations.start(intentOf("a"));
  await operations.settle("a", { fence: 1, outcome: success("1"), actor: BY });
  await operations.start(intentOf("undo.a", { undoOf: "a" }));
  isAway = true;
  const settlement = { fence: 1, outcome: success("2"), tookBack: "a", actor: BY };
  expect(await operations.settle("undo.a", settlement)).toMatchObject({ settled: true });
  expect(told()).toHaveLength(2);
  expect(problems).toMatchObject([{ code: "undone_unread", subject: "a", cause }]);
});

test("the other calls go to the store as they are", async () => {
  const { operations, clock } = setUp();
  await operations.start(intentOf("a", { leaseMs: 1_000 }));
  expect(await operations.renew("a", 1, 2_000)).toBe(true);
  clock.advance(2_001);
  expect(await operations.listAbandoned(10)).toMatchObject([{ id: "a" }]);
  expect(await operations.takeOver("a", 1_000, "recovery")).toMatchObject({ fence: 2 });
  expect(await operations.listBySession("session-1", { messageId: "m-1" })).toHaveLength(1);
  expect(await operations.listBySession("session-1", { messageId: "m-2" })).toHaveLength(0);
});
