import { expect, test } from "vitest";
import { z } from "zod";
import { isSallyportError } from "../../model/errors.ts";
import type { JsonObject, JsonValue } from "../../util/json.ts";
import { compileJsonSchema } from "./compile-json-schema.ts";

/** The issues of the check, one line each. */
function problems(schema: JsonValue, value: JsonValue): string[] {
  return compileJsonSchema(schema)(value).map(({ path, message }) => `${path} ${message}`);
}

const CONDITION: JsonObject = JSON.parse(
  '{ "if": { "type": "string" }, "then": { "minLength": 2 }, "else": { "minimum": 2 } }',
);

const CASES: readonly [schema: JsonObject, fits: JsonValue[], fitsNot: JsonValue[]][] = [
  [{ type: "string" }, ["", "a"], [1, null, [], {}, true]],
  [{ type: "integer" }, [0, -3, 1e3], [1.5, "1", null]],
  [{ type: "number" }, [0, 1.5], ["1"]],
  [{ type: ["object", "null"] }, [{}, null], [[], "x"]],
  [{ type: "array" }, [[]], [{}]],
  [{ type: "boolean" }, [true, false], [0, "true", null]],
  [{ enum: ["a", 1, { b: [2] }] }, ["a", 1, { b: [2] }], ["b", "1", { b: [3] }]],
  [{ const: { a: 1, b: 2 } }, [{ b: 2, a: 1 }], [{ a: 1 }]],
  [{ minLength: 2, maxLength: 3 }, ["ab", "😀😀😀", 7], ["a", "😀", "abcd"]],
  [{ pattern: "^a.c$" }, ["abc", 1], ["ab", "xabc"]],
  [{ minimum: 1, maximum: 3 }, [1, 3, "x"], [0.9, 3.1]],
  [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [2], [1, 3]],
  [{ multipleOf: 0.01 }, [0.07, 19.99, 0, 1e21 % 7], [0.005]],
  [{ multipleOf: 1e-7 }, [3e-7, 1], [1.5e-7]],
  [{ properties: { a: { type: "string" } } }, [{}, { a: "x" }, { b: 1 }, 4], [{ a: 1 }]],
  [{ required: ["toString", "a"] }, [{ toString: 1, a: 1 }], [{ a: 1 }, {}]],
  [{ properties: { a: true }, additionalProperties: false }, [{ a: 1 }], [{ constructor: 1 }]],
  [
    { patternProperties: { "^n": { type: "number" } }, additionalProperties: { type: "string" } },
    [{ n1: 1, x: "y" }],
    [{ n1: "1" }, { x: 1 }],
  ],
  [{ propertyNames: { maxLength: 2 } }, [{ ab: 1 }], [{ abc: 1 }]],
  [{ dependentRequired: { a: ["b"] } }, [{ b: 1 }, { a: 1, b: 1 }], [{ a: 1 }]],
  [{ dependentSchemas: { a: { required: ["b"] } } }, [{}, { a: 1, b: 1 }], [{ a: 1 }]],
  [{ minProperties: 1, maxProperties: 2 }, [{ a: 1 }], [{}, { a: 1, b: 1, c: 1 }]],
  [{ items: { type: "number" } }, [[], [1, 2]], [[1, "2"]]],
  [{ prefixItems: [{ type: "string" }], items: false }, [[], ["a"]], [[1], ["a", 1]]],
  [
    { contains: { type: "number" }, minContains: 2, maxContains: 3 },
    [[1, 2, "a"]],
    [[1], [1, 2, 3, 4]],
  ],
  [{ minItems: 1, maxItems: 2 }, [[1]], [[], [1, 2, 3]]],
  [
    { uniqueItems: true },
    [[1, "1", [1], { a: 1 }]],
    [
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    ],
  ],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1], [0, 3]],
  [{ anyOf: [{ type: "string" }, { minimum: 5 }] }, ["a", 5], [4]],
  [{ oneOf: [{ minimum: 1 }, { minimum: 5 }] }, [1], [0, 5]],
  [{ not: { type: "string" } }, [1], ["a"]],
  [CONDITION, ["ab", 2], ["a", 1]],
  [{ $defs: { "a/b~c": { type: "null" } }, $ref: "#/$defs/a~1b~0c" }, [null], [1]],
  [
    {
      $defs: {
        tree: { properties: { kids: { items: { $ref: "#/$defs/tree" } } }, required: ["id"] },
      },
      $ref: "#/$defs/tree",
    },
    [{ id: 1, kids: [{ id: 2, kids: [] }] }],
    [{ id: 1, kids: [{ id: 2, kids: [{}] }] }],
  ],
];

test.each(CASES)("a schema is enforced: %j [S2-03]", (schema, fits, fitsNot) => {
  for (const value of fits) expect(problems(schema, value), JSON.stringify(value)).toEqual([]);
  for (const value of fitsNot)
    expect(problems(schema, value), JSON.stringify(value)).not.toEqual([]);
});

test("issues name the place and what to do, and never repeat the value [S2-03]", () => {
  const schema = {
    type: "object",
    properties: {
      card: { type: "string", pattern: "^\\d+$" },
      items: { items: { type: "object", required: ["price"] } },
    },
    required: ["id"],
    additionalProperties: false,
  };
  expect(problems(schema, { card: "hunter2", items: [{ price: 1 }, {}], extra: 1 })).toEqual([
    "$.card must match the pattern ^\\d+$",
    "$.items[1].price is missing",
    "$.id is missing",
    "$.extra is not a known name here; leave it out",
  ]);
});

test("of several forms the issues of the nearest one are reported [S2-03]", () => {
  const schema = {
    anyOf: [
      {
        properties: { kind: { const: "a" }, x: { type: "number" }, y: { type: "number" } },
        required: ["kind", "x", "y"],
      },
      { properties: { kind: { const: "b" }, x: { type: "number" } }, required: ["kind", "x"] },
    ],
  };
  expect(problems(schema, { kind: "b", x: "1" })).toEqual([
    "$ fits none of the 2 allowed forms",
    "$.x must be a number, not a string",
  ]);
});

test("at most 20 issues are reported", () => {
  expect(
    problems(
      { items: { type: "string" } },
      Array.from({ length: 500 }, () => 1),
    ),
  ).toHaveLength(20);
});

test.each<[JsonObject, string]>([
  [{ type: "strnig" }, "$.type must be one or several of"],
  [{ maxLenght: 3 }, "$.maxLenght is not a keyword"],
  [{ unevaluatedProperties: false }, "$.unevaluatedProperties is not a keyword"],
  [{ properties: { a: { $dynamicRef: "#x" } } }, "$.properties.a.$dynamicRef is not a keyword"],
  [{ properties: { a: { $id: "https://evil.example/" } } }, "accepted at the top only"],
  [{ $ref: "https://evil.example/schema.json" }, "may only point into the same schema"],
  [{ $ref: "file:///etc/passwd" }, "may only point into the same schema"],
  [{ $ref: "other.json#/a" }, "may only point into the same schema"],
  [{ $ref: "#/$defs/missing" }, "points to a place that does not exist"],
  [{ $ref: "#/__proto__" }, "points to a place that does not exist"],
  [{ $ref: "#/%E0%A4%A" }, "is not a JSON pointer"],
  [{ items: [{ type: "string" }] }, "prefixItems"],
  [{ pattern: "(?<=a)b" }, "lookbehind"],
  [{ pattern: "(a)\\1" }, "back reference"],
  [{ minLength: -1 }, "whole number"],
  [{ maximum: "3" }, "must be a number"],
  [{ multipleOf: 0 }, "above 0"],
  [{ required: true }, "list of texts"],
  [{ anyOf: [] }, "at least one entry"],
  [{ properties: [] }, "must be an object"],
  [{ additionalProperties: 3 }, "must be an object, true or false"],
])("refuses a keyword that it could not enforce: %j [T18 T27]", (schema, problem) => {
  let thrown: unknown;
  try {
    compileJsonSchema(schema);
  } catch (error) {
    thrown = error;
  }
  expect(isSallyportError(thrown, "invalid_input")).toBe(true);
  expect(String(thrown)).toContain(problem);
});

test("keywords that restrict nothing are accepted", () => {
  const schema = {
    $schema: "x",
    title: "t",
    format: "email",
    examples: [1],
    "x-order": 1,
    secret: true,
    nullable: true,
  };
  expect(problems(schema, "anything")).toEqual([]);
});

test("a schema that is too large is refused [T27]", () => {
  const many = Object.fromEntries(
    Array.from({ length: 2_100 }, (_, at) => [`p${at}`, { type: "string" }]),
  );
  expect(() => compileJsonSchema({ properties: many })).toThrow("more than 2000 schemas");
  expect(() => compileJsonSchema({ description: "x".repeat(300_000) })).toThrow("larger than");
});

test("agrees with zod about zod's own schemas [S2-03]", () => {
  const schema = z.strictObject({
    id: z.uuid(),
    mail: z.email(),
    at: z.iso.datetime(),
    cents: z.int().positive().max(1_000),
    kind: z.enum(["a", "b"]),
    tags: z.array(z.string().min(1).max(5)).max(2),
    pick: z.union([z.literal("x"), z.number().multipleOf(0.5)]).optional(),
    map: z.record(z.string(), z.boolean()).optional(),
    pair: z.tuple([z.string(), z.number()]).optional(),
  });
  const check = compileJsonSchema(z.toJSONSchema(schema) as JsonObject);
  const good = {
    id: "018f4e3e-7c1a-7b3a-9c1a-0123456789ab",
    mail: "a.b@example.org",
    at: "2026-11-15T06:00:00Z",
    cents: 5,
    kind: "a",
    tags: ["x"],
  };
  const changes: JsonObject[] = [
    {},
    { id: "x" },
    { mail: "a..b@example.org" },
    { mail: "no" },
    { at: "2026-13-15T06:00:00Z" },
    { cents: 0 },
    { cents: 1.5 },
    { cents: 1_001 },
    { kind: "c" },
    { tags: [""] },
    { tags: ["1", "2", "3"] },
    { tags: "x" },
    { pick: "x" },
    { pick: 1.5 },
    { pick: 1.3 },
    { pick: null },
    { map: { a: true } },
    { map: { a: 1 } },
    { pair: ["a", 1] },
    { pair: ["a"] },
    { pair: ["a", 1, 2] },
    { extra: 1 },
  ];
  for (const change of changes) {
    const input = { ...good, ...change } as JsonObject;
    expect({ change, fits: check(input).length === 0 }).toEqual({
      change,
      fits: schema.safeParse(input).success,
    });
  }
});
