import { expect, test } from "vitest";
import { forEachStore } from "../../tests/support/for-each-store.ts";
import type { TestStore } from "../../tests/support/stores.ts";
import { BY, intentOf, restoring, UndoWorld } from "../../tests/support/undo-world.ts";
import { isName } from "../model/names.ts";
import { refuses } from "../store/conformance/samples.ts";
import { type RollbackOptions, type RollbackScope, rollback } from "./rollback.ts";
import { ROLLBACK_OUTCOMES, type RollbackReport } from "./rollback-report.ts";

const MESSAGE: RollbackScope = { sessionId: "session-1", messageId: "m-1" };

/** Only the lists that are not empty, as ids. */
function idsOf(report: RollbackReport): Record<string, string[]> {
  const lists = ROLLBACK_OUTCOMES.map(
    (outcome) => [outcome, report[outcome].map(({ operationId }) => operationId)] as const,
  );
  return Object.fromEntries(lists.filter(([, ids]) => ids.length > 0));
}

forEachStore("rollback", (open) => {
  async function setUp() {
    const { store }: TestStore = await open();
    const { operations, audit } = store.tenant("acme");
    const world = new UndoWorld(operations);
    const roll = (over: Partial<RollbackOptions> = {}) =>
      rollback({ operations, scope: MESSAGE, dispatch: world.dispatch, by: BY, ...over });
    const statusOf = async (id: string) => (await operations.get(id)).status;
    return { operations, audit, world, roll, statusOf };
  }

  test("takes a message back from its last entry to its first, and leaves the others alone [S2-101 I-34]", async () => {
    const { world, roll, statusOf } = await setUp();
    for (const id of ["a", "b", "c"]) await world.act(id);
    await world.act("other message", { messageId: "m-2" });
    await world.act("other session", { sessionId: "session-2" });
    expect(idsOf(await roll())).toEqual({ undone: ["c", "b", "a"] });
    expect(world.undone).toEqual(["c", "b", "a"]);
    expect(await statusOf("a")).toBe("rolled_back");
    expect(await statusOf("other message")).toBe("success");
    expect(await statusOf("other session")).toBe("success");
    expect(world.things.get("a")?.value).toBe(null);
  });

  test("a chain of edits to one thing is unwound to where it began [S2-101]", async () => {
    const { world, roll } = await setUp();
    world.set("file", "original");
    world.versions = "content";
    for (const id of ["a", "b", "c"]) await world.act(id, { key: "file" });
    expect(idsOf(await roll())).toEqual({ undone: ["c", "b", "a"] });
    expect(world.things.get("file")?.value).toBe("original");
  });

  test("dispatches tool and input of the record, whatever the description or the tool's name say [S2-102 S2-104]", async () => {
    const { world, roll } = await setUp();
    const undo = { ...restoring("elsewhere", 7), description: "calls thing.destroy on everything" };
    world.set("elsewhere", 0);
    await world.act("a", { tool: "thing.irreversible_by_declaration", undo });
    await roll();
    expect(world.requests.map(({ undo: { tool, input } }) => [tool, input])).toEqual([
      ["thing.restore", { key: "elsewhere", value: 7 }],
    ]);
    expect(world.things.get("elsewhere")?.value).toBe(7);
  });

  test("what cannot be undone is not dispatched; its guide is shown instead [S2-103 I-36]", async () => {
    const { world, roll, statusOf } = await setUp();
    const manualGuide = "Write to the customer.";
    const final = { ...restoring("mail", null), irreversible: true, manualGuide };
    await world.act("mail", { undo: final });
    await world.act("bare", { undo: "none" });
    await world.act("fine");
    const report = await roll();
    expect(idsOf(report)).toEqual({ irreversible: ["bare", "mail"], undone: ["fine"] });
    expect(report.irreversible[1]).toMatchObject({ tool: "thing.set", guide: manualGuide });
    expect(report.irreversible[0]?.guide).not.toBe("");
    expect(world.requests.length).toBe(1);
    expect(await statusOf("mail")).toBe("success");
  });

  test("a second rollback takes nothing back twice, not even the first one's compensations [I-35 I-37]", async () => {
    const { operations, world, roll, statusOf } = await setUp();
    await world.act("a");
    await operations.start(intentOf("broken"));
    await world.settle("broken", { status: "failed", error: "no", output: "" });
    expect(idsOf(await roll())).toEqual({ undone: ["a"], skipped: ["broken"] });
    for (const scope of [MESSAGE, { sessionId: "session-1" }]) {
      expect(idsOf(await roll({ scope }))).toEqual({ skipped: ["undo.a", "broken", "a"] });
    }
    const one = await roll({ scope: { sessionId: "session-1", operationId: "undo.a" } });
    expect(idsOf(one)).toEqual({ skipped: ["undo.a"] });
    expect(world.counts).toEqual({ a: 1 });
    expect((await operations.get("undo.a")).undo).toBe(undefined);
    expect(await statusOf("undo.a")).toBe("success");
  });

  test("one that fails, is denied or breaks the dispatcher does not stop the rest, and can be tried again [I-36]", async () => {
    const { world, roll } = await setUp();
    for (const id of ["a", "b", "c", "d", "e"]) await world.act(id);
    world.fates.set("e", "failed").set("d", "denied").set("b", "throws");
    const first = await roll();
    expect(idsOf(first)).toEqual({ undone: ["c", "a"], failed: ["e", "d", "b"] });
    expect(first.failed.map(({ reason }) => reason)).toEqual([
      expect.stringContaining("the target said no"),
      expect.stringContaining("not on a Sunday"),
      expect.stringContaining("the dispatcher broke"),
    ]);
    world.fates.clear();
    const second = await roll();
    expect(second.undone.map(({ undoOperationId }) => undoOperationId)).toEqual([
      "undo.e.2",
      "undo.d",
      "undo.b",
    ]);
    expect(world.counts).toEqual({ a: 1, b: 1, c: 1, d: 1, e: 1 });
  });

  test("every compensation goes through the dispatcher and leaves its own entries in the trail [I-37]", async () => {
    const { audit, world, roll } = await setUp();
    await world.act("a");
    const { seq: after } = await audit.head();
    await roll();
    const entries = await audit.read({ after, limit: 10 });
    expect(entries.map(({ type, subject, actor }) => [type, subject, actor])).toEqual([
      ["operation.started", "undo.a", BY],
      ["operation.succeeded", "undo.a", BY],
      ["operation.undone", "a", BY],
    ]);
  });

  test.each(["pending", "unknown"] as const)(
    "one whose compensation is %s holds back what is older, unless told to go on [T9 S2-101]",
    async (fate) => {
      const { world, roll } = await setUp();
      for (const id of ["a", "b", "c"]) await world.act(id);
      world.fates.set("b", fate);
      const outcome = fate === "pending" ? "pending" : "unfinished";
      const report = await roll();
      expect(report.undone.map(({ operationId }) => operationId)).toEqual(["c"]);
      expect(report[outcome][0]).toMatchObject({ operationId: "b", undoOperationId: "undo.b" });
      expect(report.unfinished.at(-1)).toMatchObject({
        operationId: "a",
        reason: expect.stringContaining("b (thing.set)"),
      });
      if (fate === "pending") expect(report.pending[0]?.decisionId).toBe("dec.undo.b");
      expect(world.counts).toEqual({ c: 1 });
      const around = await roll({ whenUnfinished: "go_on" });
      expect(around.undone.map(({ operationId }) => operationId)).toEqual(["a"]);
      expect(around[outcome][0]?.operationId).toBe("b");
      expect(world.counts).toEqual({ c: 1, a: 1 });
    },
  );

  test("what was changed since is a conflict of its own, and the change stays [T9]", async () => {
    const { world, roll, statusOf } = await setUp();
    for (const id of ["a", "b"]) await world.act(id);
    world.set("b", "edited by hand");
    expect(idsOf(await roll())).toEqual({ conflicted: ["b"], undone: ["a"] });
    expect(world.things.get("b")?.value).toBe("edited by hand");
    expect(await statusOf("b")).toBe("success");
    expect(idsOf(await roll())).toMatchObject({ conflicted: ["b"] });
  });

  test("undoes one call, and only of the session that is named [S2-101]", async () => {
    const { world, roll, statusOf } = await setUp();
    for (const id of ["a", "b"]) await world.act(id);
    const scope = { sessionId: "session-1", operationId: "a" };
    expect(idsOf(await roll({ scope }))).toEqual({ undone: ["a"] });
    expect(await statusOf("b")).toBe("success");
    for (const wrong of [{ sessionId: "session-2" }, { messageId: "m-2" }]) {
      await refuses("not_found", () => roll({ scope: { ...scope, ...wrong } }));
    }
  });

  test("a message id that got lost rolls back nothing, instead of the whole session [I-34]", async () => {
    const { world, roll } = await setUp();
    await world.act("a");
    for (const lost of [{ messageId: undefined }, { messageId: "" }, { operationId: undefined }]) {
      const scope = { sessionId: "session-1", ...lost } as RollbackScope;
      await refuses("invalid_input", () => roll({ scope }));
    }
    expect(world.undone).toEqual([]);
  });

  test("a rollback that is stopped says what it did not come to", async () => {
    const { world, roll } = await setUp();
    for (const id of ["a", "b", "c"]) await world.act(id);
    const stop = new AbortController();
    world.onPoint = (point, id) => {
      if (point === "after_settle" && id === "c") stop.abort();
    };
    const report = await roll({ signal: stop.signal, whenUnfinished: "go_on" });
    expect(idsOf(report)).toEqual({ undone: ["c"], unfinished: ["b", "a"] });
  });

  test("ids that look like a second try of each other do not stand in for each other [T9]", async () => {
    const { world, roll } = await setUp();
    for (const id of ["a", "a.2"]) await world.act(id);
    world.fates.set("a", "failed");
    await roll();
    world.fates.clear();
    const report = await roll({ scope: { sessionId: "session-1", operationId: "a" } });
    expect(report.undone[0]?.undoOperationId).toBe("undo.a.3");
    expect(world.counts).toEqual({ a: 1, "a.2": 1 });
  });

  test("an id of the greatest length can be undone, once [T9]", async () => {
    const { world, roll } = await setUp();
    const id = "x".repeat(512);
    await world.act(id);
    const { undone } = await roll();
    expect(undone).toMatchObject([{ operationId: id }]);
    expect(isName(undone[0]?.undoOperationId)).toBe(true);
    expect((await roll()).undone).toEqual([]);
    expect(world.counts[id]).toBe(1);
  });
});
