import { expect, test } from "vitest";
import type { JsonArray, JsonObject, JsonValue } from "../util/json.ts";
import { defineTool } from "./define-tool.ts";
import { definitionDifference, definitionHash, definitionOf } from "./registry.ts";
import type { Tool } from "./tool.ts";
import { NO_CAPABILITY, NO_METADATA } from "./tool.ts";

const base: Tool = {
  ...defineTool({
    name: "billing.refund",
    description: "Pays an invoice back.",
    input: {
      type: "object",
      properties: {
        invoiceId: { type: "string", minLength: 3, maxLength: 40, description: "The invoice." },
        cents: { type: "integer", minimum: 1, maximum: 100_000 },
        kind: { enum: ["full", "part"] },
        lines: {
          type: "array",
          items: { type: "object", properties: { note: { type: "string" } } },
          maxItems: 5,
        },
      },
      required: ["invoiceId", "cents"],
      additionalProperties: false,
    },
    execute: () => "",
    idempotency: "keyed",
    version: "7",
  }),
  metadata: {
    effect: "external",
    concurrencySafe: false,
    readOnly: false,
    destructive: true,
    aliases: ["billing.payback"],
    searchHint: "money",
    permissionClass: "generic",
    auditOperation: "write",
  },
  capability: {
    confidenceMin: 80,
    checkpoint: true,
    reverseThinking: false,
    undoMethod: "tool",
    undoTool: "billing.cancel",
    affects: ["invoice"],
  },
};

/** Every value that differs from the given one in one place: each leaf changed in several ways, added to, taken away. */
function mutants(value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return [...listMutants(value), null, {}, "x"];
  if (typeof value === "object" && value !== null) return [...objectMutants(value), null, [], "x"];
  if (typeof value === "string") {
    const spellings = [
      `${value}.`,
      ` ${value}`,
      `${value}\u200b`,
      `${value}\n`,
      value.toUpperCase(),
      value.slice(1),
      value + value,
      `${value}\u0301`,
    ];
    const alike = [
      value.replace("a", "\u0430"),
      value.replace("e", "\u0435"),
      value.replace("i", "\u0456"),
    ];
    return ["", ...spellings, ...alike, [value], 0, null, false];
  }
  if (typeof value === "number")
    return [value + 1, -value, value * 1e6, value + 0.5, String(value), null, 0, true];
  return [value === null ? false : !value, String(value), 0, [], {}];
}

function listMutants(list: JsonArray): JsonValue[] {
  const changed = list.flatMap((entry, at) =>
    mutants(entry).map((mutant) => list.with(at, mutant)),
  );
  const fewer = list.map((_, at) => list.toSpliced(at, 1));
  return [...changed, ...fewer, [...list, "more"], list.toReversed()];
}

function objectMutants(object: JsonObject): JsonObject[] {
  const changed = Object.entries(object).flatMap(([name, inner]) => {
    const { [name]: _, ...rest } = object;
    const replaced = mutants(inner).map((mutant) => ({ ...object, [name]: mutant }));
    return [...replaced, rest, { ...rest, [`${name}_`]: inner }];
  });
  return [...changed, { ...object, added: true }];
}

/** Mutants that really differ, where what is left out counts as its default. */
function others(value: object, defaults: object = {}): never[] {
  const meaning = (one: unknown) =>
    canonical({ ...defaults, ...(one as object) } as unknown as JsonObject);
  const isObject = (one: JsonValue) =>
    typeof one === "object" && one !== null && !Array.isArray(one);
  const all = mutants(value as JsonValue);
  return all.filter((one) => isObject(one) && meaning(one) !== meaning(value)) as never[];
}

const otherTexts = (text: string) => mutants(text).filter((one) => one !== text) as never[];

/** The tool with one thing changed, and what was changed. */
function* mutatedTools(): Generator<[what: string, tool: Tool]> {
  for (const inputSchema of others(base.inputSchema))
    yield ["inputSchema", { ...base, inputSchema }];
  for (const metadata of others(base.metadata!, NO_METADATA))
    yield ["metadata", { ...base, metadata }];
  for (const capability of others(base.capability!, NO_CAPABILITY))
    yield ["capability", { ...base, capability }];
  for (const name of otherTexts(base.name)) yield ["name", { ...base, name }];
  for (const text of otherTexts("Pays an invoice back."))
    yield ["description", { ...base, description: () => text }];
  for (const version of otherTexts("7")) yield ["version", { ...base, version }];
  yield ["idempotency", { ...base, idempotency: "none" }];
  for (const contract of ["dryRun", "generateUndo", "probe", "stateVersion", "resources"]) {
    yield [contract, { ...base, [contract]: () => {} } as Tool];
  }
}

test("what a tool is defined as is made once, cannot be changed by a reader, and follows its description", () => {
  let text = "Pays an invoice back.";
  const tool = defineTool({
    name: "refund",
    description: "Refunds.",
    input: { type: "object", properties: {} },
    execute: () => "done",
  });
  const frozen = Object.freeze({ ...tool, description: () => text });
  const first = definitionOf(frozen);
  expect(definitionOf(frozen)).toBe(first);
  expect(() => Object.assign(first["inputSchema"] as object, { type: "string" })).toThrow(
    TypeError,
  );
  const hash = definitionHash(frozen);
  text = "Pays anything to anybody.";
  expect(definitionOf(frozen)["description"]).toBe(text);
  expect(definitionHash(frozen)).not.toBe(hash);
});

test("every change of every field changes the hash, over more than 500 mutations [T5 T10]", () => {
  const original = definitionHash(base);
  const before = definitionOf(base);
  const definitions = new Map<string, string>();
  let tried = 0;
  for (const [what, tool] of mutatedTools()) {
    tried += 1;
    const after = definitionOf(tool);
    const hash = definitionHash(tool);
    const isNoticed = hash !== original && definitionDifference(before, after).length > 0;
    expect({ what, tool: JSON.stringify(tool), isNoticed }).toMatchObject({ isNoticed: true });
    // Two ways to the same change have the same hash, two different changes never.
    expect(definitions.get(hash) ?? canonical(after)).toBe(canonical(after));
    definitions.set(hash, canonical(after));
  }
  expect(tried).toBeGreaterThan(500);
});

function canonical(value: JsonValue): string {
  return JSON.stringify(sorted(value));
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}

function reversed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, inner]) => [name, reversed(inner)]),
  );
}

test("the order of keys makes no difference, nor does asking twice [T10]", () => {
  const turned = {
    ...base,
    inputSchema: reversed(base.inputSchema) as JsonObject,
    metadata: reversed(base.metadata as unknown as JsonValue) as never,
    capability: reversed(base.capability as unknown as JsonValue) as never,
  };
  expect(JSON.stringify(turned.inputSchema)).not.toBe(JSON.stringify(base.inputSchema));
  expect(definitionHash(turned)).toBe(definitionHash(base));
  expect(definitionDifference(definitionOf(base), definitionOf(turned))).toEqual([]);
  expect(definitionHash(base)).toMatch(/^[0-9a-f]{64}$/);
});

test("the server is part of the approved definition [T10]", () => {
  const at = (server: string) => definitionHash(base, { server });
  expect(
    new Set([definitionHash(base), at("https://a.example"), at("https://b.example")]).size,
  ).toBe(3);
});

test("declaring nothing and declaring the defaults are the same definition [T5]", () => {
  const { metadata: _, capability: __, ...bare } = base;
  expect(definitionHash({ ...bare, metadata: {}, capability: {} })).toBe(definitionHash(bare));
});

test("the hash of a definition is fixed: a stored pin must match in the next version too [T5]", () => {
  expect(definitionHash(base)).toBe(
    "c0872bd89e01a1634a34ec9485b818358060a52ece1dd42cbdb2e17e062bab68",
  );
});

test("a definition that cannot be serialised cannot be pinned [T10]", () => {
  const broken: Tool = {
    ...base,
    description: () => {
      throw new Error("boom");
    },
  };
  expect(() => definitionHash(broken)).toThrow("Its description cannot be created: boom");
  expect(() => definitionHash({ ...base, inputSchema: { type: new Date(0) } as never })).toThrow(
    "cannot be serialised",
  );
});

test("the difference names every place and shows invisible characters [T10]", () => {
  const after: Tool = {
    ...base,
    description: () => "Pays an invoice bаck.\u202e",
    inputSchema: { ...base.inputSchema, required: ["invoiceId"], title: "Größe" },
    metadata: { ...base.metadata, readOnly: true },
  };
  expect(definitionDifference(definitionOf(base), definitionOf(after))).toEqual([
    {
      path: "description",
      before: '"Pays an invoice back."',
      after: '"Pays an invoice b\\u{430}ck.\\u{202e}"',
    },
    { path: "inputSchema.required.1", before: '"cents"', after: "" },
    { path: "inputSchema.title", before: "", after: '"Größe"' },
    { path: "metadata.readOnly", before: "false", after: "true" },
  ]);
});
