import { expect, test } from "vitest";
import { LEASE_MS, oneWorker } from "../../tests/support/one-worker.ts";
import { defineTool } from "../tools/define-tool.ts";

const forever = () => new Promise<never>(() => {});

/** A tool whose target answers looks with the versions given, in turn, and with nothing after that. */
function setup(versions: readonly string[]) {
  const left = [...versions];
  const effects: string[] = [];
  const tool = defineTool({
    name: "shelf.put",
    description: "Puts something on a shelf.",
    input: { type: "object", properties: {}, additionalProperties: false },
    safety: { effect: "write", reversible: true },
    stateVersion: () => left.shift() ?? forever(),
    execute({ idempotencyKey }) {
      effects.push(idempotencyKey);
      return "put";
    },
    undo: () => ({ tool: "shelf.put", input: {} }),
  });
  return { ...oneWorker(tool), effects };
}

test("the versions before and after a call are kept for its undo", async () => {
  const { executor, order } = setup(["v1", "v2"]);
  const executed = await executor.run(order);
  expect(executed).toMatchObject({
    status: "done",
    operation: { stateVersion: "v2", undo: { versionBefore: "v1" } },
  });
});

test("what is to be as it was shown is not touched when a look at it does not end, and the lease is not outlasted [T4 T8]", async () => {
  const { executor, order, timers, clock, operations, effects } = setup([]);
  const start = clock.now();
  const running = executor.run({ ...order, expectedVersions: ["v1"] });
  await timers.advance(LEASE_MS / 4);
  expect(await running).toMatchObject({ status: "failed" });
  expect(clock.now() - start).toBeLessThan(LEASE_MS);
  expect((await operations.get("op-1")).error).toContain("could not be looked at");
  expect(effects).toEqual([]);
});

test("looks that do not end keep no call from being settled in time [T8]", async () => {
  const { executor, order, timers, operations, effects } = setup([]);
  const running = executor.run(order);
  await timers.advance(LEASE_MS / 4);
  expect(effects).toHaveLength(1);
  await timers.advance(LEASE_MS / 4);
  expect(await running).toMatchObject({ status: "done" });
  const { stateVersion, undo, fence } = await operations.get("op-1");
  expect({ stateVersion, fence, before: undo?.versionBefore }).toEqual({
    stateVersion: "",
    fence: 1,
    before: undefined,
  });
});

test("an undo is settled although nobody can tell what else it has brought back [T9]", async () => {
  const { executor, order, timers, operations } = setup(["v1", "v2", "v3"]);
  await executor.run(order);
  const undo = { ...order, operationId: "undo-1", undoOf: "op-1" };
  const running = executor.run({ ...undo, broughtBack: forever });
  await timers.advance(LEASE_MS / 4);
  expect(await running).toMatchObject({ status: "done" });
  expect((await operations.get("op-1")).status).toBe("rolled_back");
});
