import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { StandardSchema, ToolInput } from "./define-tool.ts";
import { defineTool } from "./define-tool.ts";
import type { Tool } from "./tool.ts";

function toolWith(input: ToolInput, inputSchema?: JsonObject): Tool {
  const beside = inputSchema === undefined ? {} : { inputSchema };
  return defineTool({ name: "t", description: "d", input, ...beside, execute: () => "" });
}

function parse(input: ToolInput, value: JsonValue) {
  return toolWith(input).parseInput(value);
}

test("a plain JSON Schema is shown to the model and enforced unchanged [S2-03]", () => {
  const schema = {
    type: "object",
    properties: { z: { type: "string" }, a: { type: "number" } },
    required: ["a"],
  };
  const tool = toolWith(schema);
  expect(JSON.stringify(tool.inputSchema)).toBe(JSON.stringify(schema));
  expect(tool.parseInput({ a: 1 })).toEqual({ ok: true, value: { a: 1 } });
  expect(tool.parseInput({ z: 1 })).toEqual({
    ok: false,
    issues: [
      { path: "$.z", message: "must be a string, not a number" },
      { path: "$.a", message: "is missing" },
    ],
  });
  defineTool({
    name: "t",
    description: "d",
    input: schema,
    execute: ({ input }) => expectTypeOf(input).toEqualTypeOf<JsonObject>(),
  });
});

test("a schema that is changed afterwards changes nothing [T5]", () => {
  const schema = { type: "object", properties: { cents: { type: "integer", maximum: 100 } } };
  const tool = toolWith(schema);
  schema.properties.cents.maximum = 1e9;
  expect(tool.inputSchema).toMatchObject({ properties: { cents: { maximum: 100 } } });
  expect(tool.parseInput({ cents: 101 }).ok).toBe(false);
  expect(() => Object.assign(tool.inputSchema, { type: "string" })).toThrow(TypeError);
});

test("defaults and rewrites of a schema are shown and run, and stay the same when parsed again [S2-03]", () => {
  const schema = z.object({
    name: z.string().trim(),
    limit: z.int().default(10),
    tags: z.array(z.string()).optional(),
  });
  const first = parse(schema, { name: "  x " });
  expect(first).toMatchObject({ ok: true, value: { name: "x", limit: 10 } });
  if (first.ok) expect(canonicalJson(first.value)).toBe('{"limit":10,"name":"x"}');
  if (first.ok) expect(parse(schema, first.value)).toEqual(first);
});

test("input that the schema would drop is reported [S2-03]", () => {
  const schema = z.object({
    path: z.string(),
    options: z.object({ deep: z.boolean() }).optional(),
  });
  expect(parse(schema, { path: "x", dryRun: true })).toEqual({
    ok: false,
    issues: [{ path: "$.dryRun", message: "is not a known name here; leave it out" }],
  });
  expect(parse(schema, { path: "x", options: { deep: true, force: true } })).toMatchObject({
    issues: [{ path: "$.options.force" }],
  });
});

const failing: StandardSchema = {
  "~standard": {
    version: 1,
    vendor: "other",
    validate: () => {
      throw new Error("boom");
    },
    jsonSchema: { input: () => ({ type: "object" }) },
  },
};

test.each<[string, ToolInput, string]>([
  [
    "rewrites its own result",
    z.object({ a: z.number().transform((n) => n + 1) }),
    "rewrites its own result",
  ],
  ["gives what is not JSON", z.object({ a: z.number().transform((n) => new Date(n)) }), "failed"],
  [
    "answers later",
    z.object({ a: z.number().refine(async () => true) }),
    "does not answer synchronously",
  ],
  [
    "throws",
    z.object({
      a: z.number().refine(() => {
        throw new Error("boom");
      }),
    }),
    "does not answer synchronously",
  ],
  ["fails", failing, "failed: boom"],
])("a schema that %s lets nothing through [S2-03]", (_what, schema, problem) => {
  const parsed = parse(schema, { a: 1 });
  expect(parsed.ok).toBe(false);
  expect(JSON.stringify(parsed)).toContain(problem);
});

test("problems of a zod schema name the place [S2-03]", () => {
  const schema = z.object({ items: z.array(z.object({ price: z.number() })) });
  const parsed = parse(schema, { items: [{ price: 1 }, { price: "2" }] });
  expect(parsed).toMatchObject({ ok: false, issues: [{ path: "$.items[1].price" }] });
});

const foreign: StandardSchema<{ a: string }> = {
  "~standard": {
    version: 1,
    vendor: "other",
    validate: (value) =>
      typeof (value as JsonObject)?.["a"] === "string"
        ? { value: value as { a: string } }
        : { issues: [{ message: "a is wrong", path: [{ key: "a" }] }] },
  },
};

test("any Standard Schema works, with its JSON Schema beside it", () => {
  const schema = { type: "object", properties: { a: { type: "string" } } };
  const tool = toolWith(foreign, schema);
  expect(tool.inputSchema).toEqual(schema);
  expect(tool.parseInput({ a: "x" })).toEqual({ ok: true, value: { a: "x" } });
  expect(tool.parseInput({ a: 1 })).toEqual({
    ok: false,
    issues: [{ path: "$.a", message: "a is wrong" }],
  });
  defineTool({
    name: "t",
    description: "d",
    input: foreign,
    inputSchema: schema,
    execute: ({ input }) => expectTypeOf(input).toEqualTypeOf<{ a: string }>(),
  });
});

test.each<[string, () => unknown, string]>([
  ["no JSON Schema", () => toolWith(foreign), "pass it as inputSchema"],
  [
    "two JSON Schemas",
    () => toolWith({ type: "object" }, { type: "object" }),
    "Give a JSON Schema once",
  ],
  ["not an object", () => toolWith(z.string()), '"type": "object"'],
  ["no type", () => toolWith({ properties: {} }), '"type": "object"'],
  ["not JSON", () => toolWith({ type: "object", default: new Date(0) } as never), "not plain JSON"],
  ["no counterpart in JSON", () => toolWith(z.object({ a: z.bigint() })), "has no JSON Schema"],
  [
    "a remote reference",
    () => toolWith({ type: "object", $ref: "http://evil.example" }),
    "same schema",
  ],
])("an input with %s is refused immediately [T18]", (_what, make, problem) => {
  expect(make).toThrow(problem);
});
