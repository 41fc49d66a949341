import { expect, test } from "vitest";
import { defineTool, sampleCall } from "./define-tool.ts";
import { createRegistry } from "./registry.ts";
import type { Tool } from "./tool.ts";
import {
  capabilityOf,
  highestClass,
  isDryRunnable,
  isReversible,
  metadataOf,
  NO_CAPABILITY,
  NO_METADATA,
  saferFirst,
  safetyClassOf,
  safetyLevelOf,
  safetyWarning,
} from "./tool.ts";

/** The smallest thing that is a tool: an object that knows nothing of all this. */
function plainTool(name: string, more: Partial<Tool> = {}): Tool {
  return {
    name,
    description: () => `does ${name}`,
    inputSchema: { type: "object" },
    parseInput: (value) => ({ ok: true, value }),
    execute: async () => ({ text: "done" }),
    ...more,
  };
}

const dryRun = async () => ({ summary: "", preview: "", impact: {} });
const generateUndo = () => ({
  tool: "u",
  input: null,
  description: "",
  irreversible: false,
  manualGuide: "",
});
const none = plainTool("none");
const undoable = plainTool("undoable", { generateUndo });
const triable = plainTool("triable", { dryRun });
const both = plainTool("both", { dryRun, generateUndo });

test("level 2 is a dry run, 1 is reversible, 0 is neither, and both is 2 [S2-09]", () => {
  expect([triable, undoable, none, both].map(safetyLevelOf)).toEqual([2, 1, 0, 2]);
});

test("a tool that declares nothing gets the zero capability and the safe defaults [S2-10 S2-35]", () => {
  expect(capabilityOf(none)).toBe(NO_CAPABILITY);
  expect(NO_CAPABILITY).toEqual({
    confidenceMin: 0,
    checkpoint: false,
    reverseThinking: false,
    undoMethod: "",
    undoTool: "",
    affects: [],
  });
  expect(metadataOf(none)).toBe(NO_METADATA);
  expect(metadataOf(none)).toMatchObject({
    concurrencySafe: false,
    readOnly: false,
    destructive: false,
  });
  expect([isDryRunnable(none), isReversible(none), safetyLevelOf(none)]).toEqual([false, false, 0]);
});

test("those with a dry run come first, then the reversible ones; otherwise the order stays [S2-11]", () => {
  const second = plainTool("second-none");
  expect(saferFirst([none, undoable, second, both, triable])).toEqual([
    both,
    triable,
    undoable,
    none,
    second,
  ]);
});

test("before a level-0 tool a warning is given, and before no other [S2-12]", () => {
  const warning = safetyWarning(none);
  expect(warning).toMatchObject({ severity: "warning", policy: "safety-level" });
  expect(warning?.message).toContain('"none" has neither a dry run nor an undo');
  expect([undoable, triable, both].map(safetyWarning)).toEqual([undefined, undefined, undefined]);
});

test("a tool's own declarations only change the wording of the warning [S2-12 S2-38]", () => {
  const declared = (metadata: Partial<typeof NO_METADATA>) =>
    safetyWarning(plainTool("t", { metadata }))?.message;
  expect(declared({ readOnly: true })).toContain("only reads");
  expect(declared({ destructive: true })).toContain("destroys data");
});

test("level 1 and level 2 tools with undo take part in rollback; level 2 tools can be tried first [S2-13]", async () => {
  expect([none, undoable, triable, both].filter(isReversible)).toEqual([undoable, both]);
  expect([none, undoable, triable, both].filter(isDryRunnable)).toEqual([triable, both]);
  expect(await both.dryRun?.(sampleCall({}))).toEqual({ summary: "", preview: "", impact: {} });
});

test("an object that knows nothing of capabilities works as a tool, unchanged [S2-15]", async () => {
  const registry = createRegistry();
  registry.register(none);
  expect(registry.get("none")).toBe(none);
  expect(await registry.get("none")?.execute(sampleCall({}))).toEqual({ text: "done" });
});

test("a declared capability without an implementation makes a tool neither reversible nor previewable [S2-16 S2-17]", () => {
  const liar = plainTool("liar", {
    capability: { undoMethod: "tool", undoTool: "x", dryRun: true, reversible: true } as never,
    metadata: { readOnly: true },
  });
  expect([isDryRunnable(liar), isReversible(liar), safetyLevelOf(liar)]).toEqual([false, false, 0]);
  const broken = plainTool("broken", { dryRun: true, generateUndo: {} } as never);
  expect([isDryRunnable(broken), isReversible(broken), safetyLevelOf(broken)]).toEqual([
    false,
    false,
    0,
  ]);
});

test("the display fields are kept for display and steer nothing [S2-17 S2-18]", () => {
  const shown = {
    undoMethod: "manual",
    undoTool: "desk.call",
    affects: ["invoice", "mail"],
  } as const;
  const tool = plainTool("t", { capability: shown });
  expect(capabilityOf(tool)).toMatchObject(shown);
  expect([safetyLevelOf(tool), safetyClassOf(tool), isReversible(tool)]).toEqual([
    0,
    "irreversible",
    false,
  ]);
});

test("read-only and destructive never change the class that decides [S2-37 S2-38]", () => {
  for (const readOnly of [true, false]) {
    for (const destructive of [true, false]) {
      const tool = plainTool("t", {
        metadata: { readOnly, destructive, effect: readOnly ? "read" : "write" },
      });
      expect(safetyClassOf(tool)).toBe("irreversible");
      expect(metadataOf(tool).permissionClass).toBe("");
    }
  }
  const sheet = { name: "t", description: "d", input: { type: "object" }, execute: () => "" };
  expect(metadataOf(defineTool({ ...sheet, safety: { effect: "read" } }))).toMatchObject({
    readOnly: true,
    permissionClass: "",
  });
});

test("checkpoint and reverse thinking are two flags that know nothing of each other [S2-53 S2-54]", () => {
  const flags = (checkpoint: boolean, reverseThinking: boolean) => {
    const safety = { effect: "write", checkpoint, reverseThinking } as const;
    const tool = defineTool({
      name: "t",
      description: "d",
      input: { type: "object" },
      safety,
      execute: () => "",
    });
    const declared = capabilityOf(tool);
    return [declared.checkpoint, declared.reverseThinking];
  };
  for (const a of [true, false]) for (const b of [true, false]) expect(flags(a, b)).toEqual([a, b]);
});

test("the highest class of a chain decides, and of nothing the highest there is", () => {
  expect(safetyClassOf(plainTool("t", { metadata: { permissionClass: "readonly" } }))).toBe("read");
  expect(safetyClassOf(undoable)).toBe("reversible");
  expect(highestClass(["read", "irreversible", "reversible"])).toBe("irreversible");
  expect(highestClass(["read", "reversible"])).toBe("reversible");
  expect(highestClass([])).toBe("irreversible");
});
