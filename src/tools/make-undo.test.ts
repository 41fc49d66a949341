import { expect, test } from "vitest";
import { defineTool, sampleCall } from "./define-tool.ts";
import type { Tool, ToolResult } from "./tool.ts";
import { makeUndo, type UndoRecipe, type UndoRecord } from "./tool-call.ts";

const call = sampleCall({ id: 7 });
const own: UndoRecord = {
  tool: "own.undo",
  input: { id: 7 },
  description: "puts 7 back",
  irreversible: false,
  manualGuide: "",
};

function tool(undo?: () => UndoRecipe | Promise<UndoRecipe>): Tool & { asked: () => number } {
  let asked = 0;
  const counted = () => {
    asked += 1;
    return undo?.() as UndoRecipe;
  };
  const sheet = { name: "t", description: "d", input: { type: "object" }, execute: () => "" };
  const made = undo === undefined ? defineTool(sheet) : defineTool({ ...sheet, undo: counted });
  return { ...made, asked: () => asked };
}

test("after a success the record is made of input and result [S2-96]", async () => {
  const made = defineTool({
    name: "t",
    description: "d",
    input: { type: "object" },
    execute: () => ({ version: 3 }),
    undo: ({ input, output }) => ({
      tool: "t.back",
      input: { ...input, to: output.version },
      description: "back",
    }),
  });
  expect(await makeUndo(made, call, await made.execute(call))).toEqual({
    undo: {
      tool: "t.back",
      input: { id: 7, to: 3 },
      description: "back",
      irreversible: false,
      manualGuide: "",
    },
  });
});

test("the tool's own record is used and generateUndo is not called [S2-97]", async () => {
  const reversible = tool(() => ({ tool: "generated.undo", input: null }));
  expect(await makeUndo(reversible, call, { text: "", undo: own })).toEqual({ undo: own });
  expect(reversible.asked()).toBe(0);
  expect((await makeUndo(reversible, call, { text: "" })).undo?.tool).toBe("generated.undo");
  expect(await makeUndo(tool(), call, { text: "", undo: own })).toEqual({ undo: own });
});

test("a failed call has no undo record unless its result contains one [S2-98]", async () => {
  const reversible = tool(() => ({ tool: "u", input: null }));
  const failed: ToolResult = { text: "no", isError: true };
  expect(await makeUndo(reversible, call, failed)).toEqual({});
  expect(await makeUndo(reversible, call, { ...failed, undo: own })).toEqual({ undo: own });
  expect(reversible.asked()).toBe(0);
});

test("a tool without undo has no undo record and reports no loss", async () => {
  expect(await makeUndo(tool(), call, { text: "" })).toEqual({});
});

const broken: readonly [string, () => UndoRecipe | Promise<UndoRecipe>][] = [
  [
    "it throws",
    () => {
      throw new Error("boom");
    },
  ],
  ["it rejects", () => Promise.reject(new Error("boom"))],
  ["it gives nothing", () => undefined as never],
  ["it gives no object", () => "t.back" as never],
  ["it names no tool", () => ({ tool: "", input: null })],
  ["it names no possible tool", () => ({ tool: "../x", input: null })],
  ["its input is not JSON", () => ({ tool: "u", input: new Date(0) as never })],
  ["its input is not there", () => ({ tool: "u", input: (() => {}) as never })],
  ["its flag is no flag", () => ({ tool: "u", input: null, irreversible: "no" }) as never],
];

test.each(broken)(
  "when %s, the loss is reported and nothing is thrown [S2-99]",
  async (_what, undo) => {
    const { lost, ...rest } = await makeUndo(tool(undo), call, { text: "done" });
    expect(rest).toEqual({});
    expect(lost).toMatch(
      /^"t" was executed, but no way to undo it could be recorded: .+ It counts as irreversible/,
    );
  },
);

test("an invalid record of the tool itself is reported too [S2-99]", async () => {
  const { undo, lost } = await makeUndo(tool(), call, { text: "", undo: { ...own, tool: "" } });
  expect(undo).toBeUndefined();
  expect(lost).toContain("it names no tool");
});

test("a record names tool, input, description, whether it cannot be undone, and a manual guide [S2-100]", async () => {
  const { undo } = await makeUndo(
    tool(() => ({ ...own, manualGuide: "call the desk" })),
    call,
    { text: "" },
  );
  expect(undo).toEqual({ ...own, manualGuide: "call the desk" });
});

test("an irreversible record keeps its guide and nothing that could be dispatched [S2-100]", async () => {
  const recipe: UndoRecipe = {
    irreversible: true,
    manualGuide: "write a letter",
    tool: "mail.unsend",
    input: { id: 1 },
  };
  expect(
    (
      await makeUndo(
        tool(() => recipe),
        call,
        { text: "" },
      )
    ).undo,
  ).toEqual({
    tool: "",
    input: null,
    description: "",
    irreversible: true,
    manualGuide: "write a letter",
  });
});

test("the static capability is never read, and there is no undo method to call [S2-17 S2-105]", async () => {
  const reversible = tool(() => own);
  const trap = {
    ...reversible,
    get capability(): never {
      throw new Error("was read");
    },
    undo() {
      throw new Error("was called");
    },
  } as Tool;
  expect(await makeUndo(trap, call, { text: "" })).toEqual({ undo: own });
});
