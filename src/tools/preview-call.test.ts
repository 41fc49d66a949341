import { expect, test } from "vitest";
import { defineTool, sampleCall } from "./define-tool.ts";
import { previewCall } from "./tool-call.ts";

const sheet = { name: "t", description: "d", input: { type: "object" } };

test("a preview asks the dry run alone, and gives it nothing to execute with [S2-19 S2-21]", async () => {
  const calls: unknown[] = [];
  let executed = 0;
  const tool = defineTool({
    ...sheet,
    dryRun({ input, idempotencyKey, fence }) {
      calls.push([input, idempotencyKey, fence]);
      return { summary: "would", preview: "+ a", impact: { rows: 1 } };
    },
    execute() {
      executed += 1;
    },
  });
  const call = sampleCall({ a: 1 }, { idempotencyKey: "key-9", fence: 9 });
  expect(await previewCall(tool, call)).toEqual({
    summary: "would",
    preview: "+ a",
    impact: { rows: 1 },
  });
  expect(calls).toEqual([[{ a: 1 }, "", 0]]);
  expect(executed).toBe(0);
});

test("a tool without a dry run has no preview [S2-21]", async () => {
  expect(
    await previewCall(defineTool({ ...sheet, execute: () => "" }), sampleCall({})),
  ).toBeUndefined();
});
