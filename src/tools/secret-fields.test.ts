import { expect, test } from "vitest";
import { z } from "zod";
import type { JsonObject } from "../util/json.ts";
import { defineTool } from "./define-tool.ts";
import { secretFieldsOf } from "./secret-fields.ts";

function paths(inputSchema: JsonObject): string[] {
  return secretFieldsOf({ inputSchema }).map((path) => path.join("."));
}

test("a zod schema marks its secrets [T22]", () => {
  const tool = defineTool({
    name: "t",
    description: "d",
    input: z.object({
      user: z.string(),
      password: z.string().meta({ secret: true }),
      cards: z.array(z.object({ number: z.string().meta({ secret: true }), name: z.string() })),
      keys: z.record(z.string(), z.string().meta({ secret: true })),
    }),
    execute: () => "",
  });
  expect(secretFieldsOf(tool)).toEqual([["password"], ["cards", "*", "number"], ["keys", "*"]]);
});

const secret = { type: "string", secret: true };

test.each<[string, JsonObject, string[]]>([
  ["writeOnly", { properties: { a: { writeOnly: true } } }, ["a"]],
  ["format password", { properties: { a: { format: "password" } } }, ["a"]],
  ["a whole object", { properties: { a: { secret: true, properties: { b: secret } } } }, ["a"]],
  [
    "inside alternatives",
    { anyOf: [{ properties: { a: secret } }, { properties: { b: secret } }] },
    ["a", "b"],
  ],
  ["inside a list of places", { properties: { l: { prefixItems: [{}, secret] } } }, ["l.1"]],
  [
    "behind a reference",
    { $defs: { "s/t": secret }, properties: { a: { $ref: "#/$defs/s~1t" } } },
    ["a"],
  ],
  ["by pattern", { patternProperties: { "^k": secret } }, ["*"]],
  ["a name with a dot", { properties: { "a.b": secret } }, ["a.b"]],
  ["nothing", { properties: { a: { type: "string" } } }, []],
])("%s is found [T22]", (_what, schema, expected) => {
  expect(paths(schema)).toEqual(expected);
});

test("a schema that contains itself ends, and the places it repeats are found [T22 T27]", () => {
  const found = paths({ properties: { token: secret, child: { $ref: "#" } } });
  expect(found.slice(0, 3)).toEqual(["token", "child.token", "child.child.token"]);
  expect(found.length).toBeLessThan(20);
  expect(paths({ $ref: "#" })).toEqual([]);
});

test("of a schema too intricate to follow, everything is secret [T22 T27]", () => {
  const knot = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`p${at}`, { $ref: "#" }]));
  expect(paths({ properties: { ...knot, token: secret } })).toEqual(["*"]);
});
