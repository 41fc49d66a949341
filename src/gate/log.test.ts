import { expect, test } from "vitest";
import { forEachStore } from "../../tests/support/for-each-store.ts";
import { BY, intentOf, restoring, success, UndoWorld } from "../../tests/support/undo-world.ts";
import { refuses } from "../store/conformance/samples.ts";
import { systemTimers } from "../util/timers.ts";
import { type OperationEvent, onOperation, readLog } from "./operation-log.ts";
import { rollback } from "./rollback.ts";

forEachStore("operation log", (open) => {
  async function setUp() {
    const { store, clock } = await open();
    const { operations, audit } = store.tenant("acme");
    const world = new UndoWorld(operations);
    const stop = new AbortController();
    const roll = () =>
      rollback({ operations, scope: { sessionId: "session-1" }, dispatch: world.dispatch, by: BY });
    const follow = { signal: stop.signal, onCommit: store.onCommit, pollMs: 5 };
    return { operations, audit, world, roll, stop, follow, clock };
  }

  test("files, databases and remote calls stand in one log, each with all its fields [I-32]", async () => {
    const { operations, world, clock } = await setUp();
    for (const [index, tool] of ["fs.write", "sql.update", "crm.patch"].entries()) {
      await operations.start(intentOf(tool, { tool, turn: index, input: `{"n":${index}}` }));
      const stored = { truncated: index === 1, storedPath: index === 1 ? "results/1" : "" };
      const undo = index === 2 ? undefined : restoring(tool, null);
      await world.settle(tool, { ...success("1"), output: `did ${index}`, undo, ...stored });
      clock.advance(1_000);
    }
    const log = await readLog(operations, { sessionId: "session-1" });
    expect(log.map(({ tool }) => tool)).toEqual(["fs.write", "sql.update", "crm.patch"]);
    expect(log[1]).toEqual({
      id: "sql.update",
      messageId: "m-1",
      callId: "call-sql.update",
      tool: "sql.update",
      input: '{"n":1}',
      output: "did 1",
      undo: restoring("sql.update", null),
      undoOf: "",
      turn: 1,
      status: "success",
      truncated: true,
      storedPath: "results/1",
      error: "",
      at: "2026-11-15T06:00:01.000Z",
    });
    expect(log[2]).toMatchObject({ undo: undefined, truncated: false, storedPath: "" });
  });

  test("read by message id it is a snapshot: success, failed, and later rolled back [I-32 I-33]", async () => {
    const { operations, world, roll } = await setUp();
    await world.act("a");
    await operations.start(intentOf("b"));
    await world.settle("b", { status: "failed", error: "disk full", output: "" });
    await world.act("c", { messageId: "m-2" });
    const scope = { sessionId: "session-1", messageId: "m-1" };
    const before = await readLog(operations, scope);
    const shape = (log: typeof before) => log.map(({ id, status }) => `${id} ${status}`);
    expect(shape(before)).toEqual(["a success", "b failed"]);
    await roll();
    expect(shape(before)).toEqual(["a success", "b failed"]);
    expect(shape(await readLog(operations, scope))).toEqual([
      "a rolled_back",
      "b failed",
      "undo.a success",
    ]);
    expect(() => Object.assign(before[0] ?? {}, { status: "failed" })).toThrow(TypeError);
    await refuses("invalid_input", () => readLog(operations, { ...scope, messageId: "" }));
  });

  test("recording and rolling back each raise one event, in order, and none is missed by going on later [I-33]", async () => {
    const { operations, audit, world, roll, stop, follow } = await setUp();
    const seen: OperationEvent[] = [];
    const until = (last: string, from: number) =>
      onOperation(
        audit,
        (event) => {
          seen.push(event);
          if (`${event.event} ${event.operationId}` === last) throw new Error("enough");
        },
        { ...follow, after: from },
      );
    const first = until("recorded b", 0);
    await world.act("a");
    await operations.start(intentOf("b"));
    await world.settle("b", { status: "failed", error: "no", output: "" });
    await expect(first).rejects.toThrow("enough");
    await roll();
    await expect(until("rolled_back a", seen.at(-1)?.seq ?? 0)).rejects.toThrow("enough");
    stop.abort();
    expect(seen.map((one) => `${one.event} ${one.operationId} ${one.status}`)).toEqual([
      "recorded a success",
      "recorded b failed",
      "recorded undo.a success",
      "rolled_back a rolled_back",
    ]);
    expect(seen.at(-1)).toMatchObject({ sessionId: "session-1", actor: BY });
  });

  test("an observer that takes its time gets one event after the other, until the signal [I-33]", async () => {
    const { audit, world, stop, follow } = await setUp();
    for (const id of ["a", "b", "c"]) await world.act(id);
    const running: string[] = [];
    await onOperation(
      audit,
      async ({ operationId }) => {
        running.push(`+${operationId}`);
        await new Promise<void>((resolve) => systemTimers.soon(resolve));
        running.push(`-${operationId}`);
        if (operationId === "b") stop.abort();
      },
      { ...follow, after: 0 },
    );
    expect(running).toEqual(["+a", "-a", "+b", "-b"]);
  });
});
