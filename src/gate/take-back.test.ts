import { expect, test } from "vitest";
import { BY, intentOf, restoring, success, UndoWorld } from "../../tests/support/undo-world.ts";
import { memoryStore } from "../store/memory/index.ts";
import { takeBack, UNDO_TRIES_MAX, type UndoAnswer, type UndoDispatch, undoIdOf } from "./undo.ts";

async function setUp() {
  const { operations } = memoryStore().tenant("acme");
  const world = new UndoWorld(operations);
  const operation = await world.act("a");
  const undo = restoring("a", null);
  const take = (dispatch: UndoDispatch, store: Parameters<typeof takeBack>[1]["operations"]) =>
    takeBack({ operation, undo, earlier: [], later: [] }, { operations: store, dispatch, by: BY });
  return {
    operations,
    world,
    take: (dispatch: UndoDispatch, store = operations) => take(dispatch, store),
  };
}

const broken = async (): Promise<never> => Promise.reject(new Error("store down"));

test("a throw after the effect was recorded is a success; one before it is not [T9]", async () => {
  const { world, take } = await setUp();
  const late = await take(async (request) => {
    await world.dispatch(request);
    throw new Error("answer lost");
  });
  expect(late).toMatchObject({ outcome: "undone", reason: expect.stringContaining("answer lost") });
  const never = (await setUp()).take(broken);
  expect(await never).toMatchObject({ outcome: "failed", undoOperationId: "undo.a" });
});

test("a throw in the middle leaves it open, and nothing is dispatched a second time [T9]", async () => {
  const { world, take } = await setUp();
  world.onPoint = (point) => {
    if (point === "after_effect") throw new Error("cut off");
  };
  for (let n = 0; n < 3; n += 1) {
    expect(await take(world.dispatch)).toMatchObject({
      outcome: "unfinished",
      undoOperationId: "undo.a",
    });
  }
  expect(world.counts).toEqual({ a: 1 });
});

test("where the store cannot be asked nothing is claimed, and nothing is dispatched blindly [T9]", async () => {
  const { operations, world, take } = await setUp();
  let isUp = false;
  const flaky = { ...operations, get: (id: string) => (isUp ? operations.get(id) : broken()) };
  expect(await take(world.dispatch, flaky)).toMatchObject({ outcome: "unfinished" });
  expect(world.requests).toEqual([]);
  isUp = true;
  const cutOff = await take(async () => {
    isUp = false;
    throw new Error("gone");
  }, flaky);
  expect(cutOff).toMatchObject({ outcome: "unfinished", undoOperationId: "undo.a" });
});

test("an answer that does not exist loses no operation [I-36]", async () => {
  for (const answer of [undefined, {}, { answer: "maybe", text: "" }]) {
    const { take } = await setUp();
    const finding = await take(async () => answer as unknown as UndoAnswer);
    expect(finding).toMatchObject({ outcome: "failed" });
  }
});

test("a conflict that another rollback made by taking it back is no conflict [T9]", async () => {
  const { operations, world, take } = await setUp();
  const finding = await take(async (request) => {
    // Between our look at the store and our turn.
    await world.dispatch(request);
    return world.dispatch(request);
  });
  expect(finding).toMatchObject({ outcome: "skipped", undoOperationId: "undo.a" });
  expect((await operations.get("a")).status).toBe("rolled_back");
});

test("an id that goes to another operation's compensation at the last moment is passed over [T9]", async () => {
  const { operations, world, take } = await setUp();
  const finding = await take(async (request) => {
    if (request.undoOperationId === "undo.a") await operations.start(intentOf("undo.a"));
    return world.dispatch(request);
  });
  expect(finding).toMatchObject({ outcome: "undone", undoOperationId: "undo.a.2" });
  expect(world.counts).toEqual({ a: 1 });
});

test.each([
  ["success", "skipped"],
  ["failed", "failed"],
  ["unknown", "unfinished"],
  ["started", "unfinished"],
] as const)("the id is used up by one that is %s: %s [T9 I-35]", async (status, outcome) => {
  const { operations, world, take } = await setUp();
  const finding = await take(async (request) => {
    await operations.start(intentOf("undo.a", { undoOf: "a" }));
    if (status === "success") await world.settle("undo.a", success("1"));
    if (status === "unknown") await world.settle("undo.a", { status, error: "lost" });
    if (status === "failed") await world.settle("undo.a", { status, error: "no", output: "" });
    return world.dispatch(request);
  });
  expect(finding).toMatchObject({ outcome, undoOperationId: "undo.a" });
  expect(world.undone).toEqual([]);
});

test("tries end somewhere, and then a person is told [T9]", async () => {
  const { operations, world, take } = await setUp();
  for (let n = 1; n <= UNDO_TRIES_MAX; n += 1) {
    const id = undoIdOf("a", n);
    await operations.start(intentOf(id, { undoOf: "a" }));
    await world.settle(id, { status: "failed", error: "no", output: "" });
  }
  expect(await take(world.dispatch)).toMatchObject({
    outcome: "failed",
    reason: expect.stringContaining("not tried any more"),
  });
  expect(world.requests).toEqual([]);
});
