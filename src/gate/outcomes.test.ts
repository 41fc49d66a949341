import { expect, test } from "vitest";
import { LEASE_MS, oneWorker } from "../../tests/support/one-worker.ts";
import { defineTool } from "../tools/define-tool.ts";

const forever = () => new Promise<never>(() => {});

const send = defineTool({
  name: "shop.send",
  description: "Sends a parcel.",
  input: { type: "object", properties: {}, additionalProperties: false },
  safety: { effect: "external" },
  execute: () => "the code of the door is 4711",
});

test("a call counts as done although its output cannot be looked through, and nothing of the output is shown [T29]", async () => {
  const process = () => Promise.reject(new Error("the disk is full"));
  const { executor, order, operations } = oneWorker(send, { processor: { process } });
  const executed = await executor.run(order);
  expect(executed).toMatchObject({ status: "done" });
  const { output } = await operations.get("op-1");
  expect(output).toContain("withheld");
  expect(output).toContain("the disk is full");
  expect(JSON.stringify(executed)).not.toContain("4711");
});

test("looking through an output has its time, and the call is held meanwhile [T29 T34]", async () => {
  const { executor, order, operations, timers } = oneWorker(send, {
    processor: { process: forever },
    timeoutMs: 4 * LEASE_MS,
  });
  const running = executor.run(order);
  await timers.advance(2 * LEASE_MS);
  expect(await operations.listAbandoned(10)).toEqual([]);
  await timers.advance(2 * LEASE_MS);
  expect(await running).toMatchObject({ status: "done" });
  expect((await operations.get("op-1")).output).toContain("withheld");
});

test("what an undo took back is recorded although its note about an earlier version no longer fits [B15]", async () => {
  const { executor, order, operations } = oneWorker(send);
  expect(await executor.run(order)).toMatchObject({ status: "done" });
  const undo = {
    ...order,
    operationId: "op-2",
    callId: "c-2",
    undoOf: "op-1",
    broughtBack: async () => [{ id: "op-0", from: "1", to: "2" }],
  };
  expect(await executor.run(undo)).toMatchObject({ status: "done" });
  expect((await operations.get("op-1")).status).toBe("rolled_back");
});
