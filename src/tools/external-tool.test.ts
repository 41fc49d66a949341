import { expect, test } from "vitest";
import { defineTool, sampleCall } from "./define-tool.ts";
import { createRegistry } from "./registry.ts";
import type { Tool } from "./tool.ts";
import {
  type Capability,
  EFFECTS,
  PERMISSION_CLASSES,
  safetyClassOf,
  type ToolMetadata,
} from "./tool.ts";

const plain = defineTool({
  name: "evil.delete_all",
  description: "d",
  input: { type: "object" },
  execute: () => "done",
});

/** The tool as the registry keeps it, or "refused". */
function keptAs(tool: Tool, operator = {}): Tool | "refused" {
  const registry = createRegistry();
  try {
    registry.register(tool, { server: "evil", operator });
  } catch {
    return "refused";
  }
  return registry.get("evil.delete_all")!;
}

/** Every combination of the given values, one for each field. */
function combinations<Fields extends Record<string, readonly unknown[]>>(
  fields: Fields,
): Record<string, unknown>[] {
  return Object.entries(fields).reduce<Record<string, unknown>[]>(
    (all, [name, values]) =>
      all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  );
}

test("no combination of a server's declarations lowers the class [T12]", () => {
  const claims = combinations({
    effect: [...EFFECTS, "none"],
    readOnly: [true, false, "true", undefined],
    destructive: [true, false, 0],
    concurrencySafe: [true, false],
    permissionClass: [...PERMISSION_CLASSES, "root", null],
    auditOperation: ["read", ""],
  });
  let kept = 0;
  for (const metadata of claims) {
    const tool = keptAs({
      ...plain,
      metadata: metadata as Partial<ToolMetadata>,
      idempotency: "keyed",
    });
    if (tool === "refused") continue;
    kept += 1;
    expect(tool.metadata).toMatchObject({
      effect: "",
      readOnly: false,
      concurrencySafe: false,
      permissionClass: "generic",
      auditOperation: "",
      destructive: metadata["destructive"],
    });
    expect([safetyClassOf(tool), tool.idempotency]).toEqual(["irreversible", "none"]);
  }
  expect([claims.length, kept > 100]).toEqual([1920, true]);
});

test("a server's declarations count where they are stricter [T12]", () => {
  const capability: Partial<Capability> = {
    confidenceMin: 70,
    checkpoint: true,
    reverseThinking: true,
  };
  const tool = keptAs(
    { ...plain, capability, metadata: { destructive: true, searchHint: "wipe" } },
    { confidenceMin: 50 },
  );
  expect(tool).toMatchObject({ capability, metadata: { destructive: true, searchHint: "wipe" } });
  const raised = keptAs(plain, {
    confidenceMin: 50,
    checkpoint: true,
    reverseThinking: true,
    destructive: true,
  });
  expect(raised).toMatchObject({
    capability: { confidenceMin: 50, checkpoint: true, reverseThinking: true },
    metadata: { destructive: true },
  });
});

test("only the operator's declarations lower the class [T12]", () => {
  const word = {
    effect: "read",
    readOnly: true,
    concurrencySafe: true,
    permissionClass: "readonly",
    auditOperation: "read",
    idempotency: "keyed",
  } as const;
  const { idempotency, ...metadata } = word;
  const tool = keptAs(plain, word) as Tool;
  expect(tool).toMatchObject({ metadata, idempotency });
  expect(safetyClassOf(tool)).toBe("read");
});

test("a server that changes its declarations later changes nothing [T12]", () => {
  const metadata = { readOnly: false, permissionClass: "generic" as string, aliases: [] };
  const capability = { confidenceMin: 90 };
  const tool = keptAs({ ...plain, metadata, capability } as never) as Tool;
  Object.assign(metadata, { readOnly: true, permissionClass: "readonly" });
  capability.confidenceMin = 0;
  expect(tool.metadata).toMatchObject({ readOnly: false, permissionClass: "generic" });
  expect(tool.capability?.confidenceMin).toBe(90);
});

test("functions of the adapter keep working, including methods [S2-16 S2-56]", async () => {
  class Adapter {
    readonly name = "evil.delete_all";
    readonly inputSchema = { type: "object" };
    readonly #answer = "from the server";
    description = () => "d";
    parseInput = plain.parseInput;
    async execute() {
      return { text: this.#answer };
    }
    async dryRun() {
      return { summary: this.#answer, preview: "", impact: {} };
    }
  }
  const tool = keptAs(new Adapter()) as Tool;
  expect(await tool.execute(sampleCall({}))).toEqual({ text: "from the server" });
  expect((await tool.dryRun?.(sampleCall({})))?.summary).toBe("from the server");
  expect([tool.generateUndo, tool.probe]).toEqual([undefined, undefined]);
});
