import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { isSallyportError } from "../model/errors.ts";
import { defineTool, sampleCall } from "./define-tool.ts";

import type { Progress, Tool, ToolResult } from "./tool.ts";
import type { UndoRecord } from "./tool-call.ts";

const sheet = {
  name: "billing.refund",
  description: "Pays back.",
  input: z.object({ invoiceId: z.string(), cents: z.int().positive() }),
};
const input = { invoiceId: "in_1", cents: 500 };

/** What the sheet is refused with. */
function refusal(change: object): string {
  try {
    defineTool({ ...sheet, execute: () => "", ...change } as never);
  } catch (error) {
    expect(isSallyportError(error, "invalid_input")).toBe(true);
    return String(error);
  }
  return "accepted";
}

test("a tool has a name, a description, a schema and execute; nothing for display, nothing for permission [S2-01 S2-47]", () => {
  const tool = defineTool({ ...sheet, execute: () => "done" });
  expect(Object.keys(tool).toSorted()).toEqual([
    "description",
    "execute",
    "inputSchema",
    "name",
    "parseInput",
  ]);
  expect(tool.name).toBe("billing.refund");
  expect(tool.inputSchema).toMatchObject({
    type: "object",
    properties: { invoiceId: { type: "string" }, cents: { type: "integer", exclusiveMinimum: 0 } },
    required: ["invoiceId", "cents"],
  });
});

test("execute gets the checked input and everything around it, typed by the schema [S2-02]", async () => {
  let seen: object = {};
  const tool = defineTool({
    ...sheet,
    execute(call) {
      expectTypeOf(call.input).toEqualTypeOf<{ invoiceId: string; cents: number }>();
      seen = call;
      return `paid ${call.input.cents}`;
    },
  });
  const { context, callId } = sampleCall(input, { workingDirectory: "/srv", fence: 7 });
  const result = await tool.execute({ callId, input, context });
  expect(result).toEqual({ text: "paid 500" });
  const { progress: _, ...facts } = context;
  expect(seen).toMatchObject({ ...facts, callId, input });
});

test("input that does not fit never reaches execute, by whatever way it comes [S2-03]", async () => {
  let runs = 0;
  const tool = defineTool({
    ...sheet,
    execute: () => {
      runs += 1;
    },
    dryRun: () => {
      runs += 1;
      return "";
    },
  });
  for (const bad of [
    {},
    { ...input, cents: 0 },
    { ...input, cents: "5" },
    null,
    [],
    "x",
    { ...input, more: 1 },
  ]) {
    expect(tool.parseInput(bad).ok).toBe(false);
    const result = await tool.execute(sampleCall(bad));
    expect(result.isError).toBe(true);
    expect(result.text).toMatch(
      /^"billing.refund" was not called: its input does not fit the schema.\n- \$/,
    );
    await expect(tool.dryRun?.(sampleCall(bad))).rejects.toThrow("does not fit the schema");
  }
  expect(runs).toBe(0);
});

test("cancelling reaches a running tool [S2-04]", async () => {
  const stop = new AbortController();
  const tool = defineTool({
    ...sheet,
    execute: ({ signal }) =>
      new Promise<string>((resolve) => {
        signal.addEventListener("abort", () => resolve("stopped"));
      }),
  });
  const running = tool.execute(sampleCall(input, { signal: stop.signal }));
  stop.abort();
  expect(await running).toEqual({ text: "stopped" });
});

test("progress reports reach the caller while the tool works [S2-05]", async () => {
  const reports: Progress[] = [];
  const caller = {
    reports,
    progress(this: { reports: Progress[] }, report: Progress) {
      this.reports.push(report);
    },
  };
  const tool = defineTool({
    ...sheet,
    execute({ progress }) {
      progress({ message: "half", done: 0.5 });
      return "whole";
    },
  });
  const call = sampleCall(input);
  await tool.execute({
    ...call,
    context: Object.assign(caller, call.context, { progress: caller.progress }),
  });
  expect(reports).toEqual([{ message: "half", done: 0.5 }]);
});

test("a description may depend on the context and change between calls [S2-06]", () => {
  let version = 1;
  const tool = defineTool({
    ...sheet,
    description: ({ workingDirectory }) => `in ${workingDirectory}, version ${version}`,
    execute: () => "",
  });
  expect(tool.description({ workingDirectory: "/a" })).toBe("in /a, version 1");
  version = 2;
  expect(tool.description({ workingDirectory: "/b" })).toBe("in /b, version 2");
});

test("a result has text, an error flag, data by reference and undo information [S2-08]", async () => {
  const data = { refundId: "re_1", list: [1n] };
  const undo: UndoRecord = {
    tool: "t",
    input: null,
    description: "",
    irreversible: false,
    manualGuide: "",
  };
  const whole = defineTool({
    ...sheet,
    execute: () => ({ text: "no", isError: true, data, undo }),
  });
  expect(await whole.execute(sampleCall(input))).toEqual({ text: "no", isError: true, data, undo });
  const plain = await defineTool({ ...sheet, execute: () => data }).execute(sampleCall(input));
  expect(plain.data).toBe(data);
  expect(plain.isError).toBeUndefined();
});

test.each<[unknown, ToolResult]>([
  ["text", { text: "text" }],
  [undefined, { text: "Done.", data: undefined }],
  [null, { text: "null", data: null }],
  [{ id: 1 }, { text: '{"id":1}', data: { id: 1 } }],
  [
    { text: "mail body", id: 1 },
    { text: '{"text":"mail body","id":1}', data: { text: "mail body", id: 1 } },
  ],
  [{ text: "mine" }, { text: "mine" }],
  [7, { text: "7", data: 7 }],
])("whatever execute gives becomes a result: %j [S2-08]", async (answer, result) => {
  const tool = defineTool({ ...sheet, execute: () => answer });
  expect(await tool.execute(sampleCall(input))).toEqual(result);
});

test("an answer that cannot be written as text does not turn a success into an error [S2-08]", async () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  const result = await defineTool({ ...sheet, execute: () => circle }).execute(sampleCall(input));
  expect(result.data).toBe(circle);
  expect(result.text).toContain("Done.");
});

test("file, database and remote tools declare their abilities in the same way [S2-14]", () => {
  const safety = { effect: "write", reversible: true, confidenceMin: 60 } as const;
  const common = { description: "d", safety, execute: () => "", dryRun: () => "d" };
  const undo = () => ({ tool: "x.undo", input: {} });
  const tools: Tool[] = [
    defineTool({
      name: "fs.write",
      input: z.object({ path: z.string() }),
      ...common,
      permissionClass: "file",
      undo,
    }),
    defineTool({ name: "db.update", input: z.object({ sql: z.string() }), ...common, undo }),
    defineTool({ name: "crm.rename", input: { type: "object" }, ...common, undo }),
  ];
  for (const tool of tools) {
    expect(tool.capability).toEqual({ confidenceMin: 60, undoMethod: "tool" });
    expect(tool.metadata).toMatchObject({ effect: "write", readOnly: false });
    expect([typeof tool.dryRun, typeof tool.generateUndo]).toEqual(["function", "function"]);
  }
});

test("a dry run returns summary, preview and an uninterpreted map of impact [S2-19 S2-20]", async () => {
  const impact = { rows: 3, "free words": { nested: [true] } };
  const tool = defineTool({
    ...sheet,
    dryRun: ({ input }) => ({ summary: `would pay ${input.cents}`, preview: "- 0\n+ 500", impact }),
    execute: () => "",
  });
  expect(await tool.dryRun?.(sampleCall(input))).toEqual({
    summary: "would pay 500",
    preview: "- 0\n+ 500",
    impact,
  });
  const short = defineTool({ ...sheet, dryRun: () => "one line", execute: () => "" });
  expect(await short.dryRun?.(sampleCall(input))).toEqual({
    summary: "one line",
    preview: "one line",
    impact: {},
  });
});

test("undo makes a recipe from input and output, typed by execute; there is no method that undoes [S2-105]", async () => {
  const tool = defineTool({
    ...sheet,
    safety: { effect: "external", reversible: true },
    execute: async ({ input }) => ({ refundId: `re_${input.cents}` }),
    undo({ input, output }) {
      expectTypeOf(output).toEqualTypeOf<{ refundId: string }>();
      return {
        tool: "billing.cancel_refund",
        input: { refundId: output.refundId, of: input.invoiceId },
      };
    },
  });
  const call = sampleCall(input);
  const recipe = await tool.generateUndo?.(call, await tool.execute(call));
  expect(recipe).toEqual({
    tool: "billing.cancel_refund",
    input: { refundId: "re_500", of: "in_1" },
  });
  expect(tool).not.toHaveProperty("undo");
});

test("probe, stateVersion, resources, idempotency and version are passed through", async () => {
  const tool = defineTool({
    ...sheet,
    execute: () => ({ id: 1 }),
    probe: ({ idempotencyKey }) => ({ happened: true, result: { id: Number(idempotencyKey) } }),
    stateVersion: ({ input }) => `etag-${input.cents}`,
    resources: ({ input, workingDirectory }) => [
      { kind: "file", path: `${workingDirectory}/${input.invoiceId}`, access: "write" },
    ],
    idempotency: "keyed",
    version: "7",
  });
  const call = sampleCall(input, { idempotencyKey: "3" });
  expect(await tool.probe?.(call)).toEqual({
    happened: true,
    result: { text: '{"id":3}', data: { id: 3 } },
  });
  expect(await tool.stateVersion?.(call)).toBe("etag-500");
  expect(tool.resources?.(input, { workingDirectory: "/w" })).toEqual([
    { kind: "file", path: "/w/in_1", access: "write" },
  ]);
  expect([tool.idempotency, tool.version]).toEqual(["keyed", "7"]);
});

test("reading what a tool declares runs nothing and changes nothing [S2-106 S2-107]", () => {
  let runs = 0;
  const count = () => {
    runs += 1;
    return "";
  };
  const tool = defineTool({ ...sheet, safety: { effect: "read" }, execute: count, dryRun: count });
  const [first, second] = [JSON.stringify(tool), JSON.stringify(tool)];
  expect([first === second, runs, Object.isFrozen(tool)]).toEqual([true, 0, true]);
});

test.each<[object, string]>([
  [{ name: "" }, "A tool needs a name."],
  [{ name: "straße" }, "ASCII"],
  [{ name: "a..b" }, "ASCII"],
  [{ name: "-a" }, "ASCII"],
  [{ name: "x".repeat(65) }, "at most 64"],
  [{ name: Array.from({ length: 5 }, () => "x".repeat(40)).join(".") }, "at most 128"],
  [{ description: " " }, "needs a description"],
  [{ execute: undefined }, "needs execute"],
  [{ dryRun: true }, "dryRun must be a function"],
  [{ safety: {} }, "safety.effect is required"],
  [{ safety: { effect: "write", reversible: true } }, "needs an undo function"],
  [{ safety: { effect: "write", reversible: false }, undo: () => ({}) }, "cannot be false"],
  [{ safety: { effect: "read" }, undo: () => ({}) }, "nothing to undo"],
  [{ safety: { effect: "read", destructive: true } }, "destroys nothing"],
  [{ safety: { effect: "write", undoMethod: "tool" } }, "needs an undo function"],
  [{ safety: { effect: "write", confidenceMin: Number.NaN } }, "from 0 to 100"],
  [{ safety: { effect: "write", confidenceMin: 101 } }, "from 0 to 100"],
  [{ safety: { effect: "write", checkpoint: "yes" } }, "checkpoint must be true or false"],
  [{ permissionClass: "admin" }, "permissionClass must be"],
  [{ idempotency: "maybe" }, "idempotency must be"],
  [{ version: 3 }, "version must be a text"],
])("an inconsistent sheet is rejected: %j", (change, problem) => {
  expect(refusal(change)).toContain(problem);
});

test("an undo may name an input whose type is an interface", async () => {
  interface Cancel {
    readonly refundId: string;
  }
  const cancel: Cancel = { refundId: "r-1" };
  const tool = defineTool({
    name: "refund",
    description: "Pays back.",
    input: z.object({ invoice: z.string() }),
    execute: () => "done",
    undo: () => ({ tool: "cancel", input: cancel }),
  });
  const undo = await tool.generateUndo?.(sampleCall({ invoice: "2041" }), { text: "done" });
  expect(undo).toMatchObject({ tool: "cancel", input: { refundId: "r-1" } });
});
