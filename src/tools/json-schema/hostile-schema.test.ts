import { expect, test } from "vitest";
import { busyMs } from "../../../tests/support/busy-time.ts";
import { record } from "../../../tests/support/record.ts";
import { scaled } from "../../../tests/support/scale.ts";
import type { JsonObject, JsonValue } from "../../util/json.ts";
import { compileJsonSchema } from "./compile-json-schema.ts";

// T27: for any schema and input the answer is a value and takes less than 100 ms of CPU time.

const LIMIT_MS = 100;
const rounds = scaled({ test: 60, proof: 150, full: 1_000 });

/** CPU time, since the machine is shared; repeated when over the limit, since the first run includes the JIT. */
function costMs(schema: JsonObject, value: JsonValue): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3 && best > LIMIT_MS; round += 1) {
    best = Math.min(
      best,
      busyMs(() => attempt(schema, value)),
    );
  }
  return best;
}

/** Refusing the schema is a valid answer too. */
function attempt(schema: JsonObject, value: JsonValue): void {
  try {
    compileJsonSchema(schema)(value);
  } catch (error) {
    expect(String(error)).toContain("The JSON Schema cannot be used");
  }
}

/** Patterns with catastrophic backtracking, each with a text that triggers it. */
const BAD_PATTERNS: readonly ((letter: string) => [pattern: string, text: string])[] = [
  (x) => [`^(${x}+)+$`, `${x.repeat(40)}!`],
  (x) => [`^(${x}*)*$`, `${x.repeat(40)}!`],
  (x) => [`^(${x}|${x}${x})+$`, `${x.repeat(60)}!`],
  (x) => [`^(${x}|${x}?)+$`, `${x.repeat(60)}!`],
  (x) => [`(${x}+){10}!`, x.repeat(5_000)],
  (x) => [`^(.*${x}){11}$`, `${x.repeat(40)}!`],
  (x) => [`${x}*${x}*${x}*${x}*!`, x.repeat(20_000)],
  (x) => [`^([${x}-${x}]+\\s?)*$`, `${x.repeat(40)}!`],
  (x) => [`^(?=(${x}+)+$).*`, `${x.repeat(40)}!`],
  (x) => [`^(?:(?!${x}{9}b).)*$`, x.repeat(20_000)],
  (x) => [`(?:(?=.*${x}).)*z`, x.repeat(20_000)],
  (x) => [`^(${x}{1,100}){1,100}$`, `${x.repeat(5_000)}!`],
  (x) => [`(${x}?){5000}${x}{5000}`, x.repeat(5_000)],
  (x) => [`${x}+`.repeat(500), x.repeat(5_000)],
  (x) => [`(?:${x}|\\w|[^b]|.)*!`, x.repeat(200_000)],
];

/** Enough for a thousand different patterns. */
const LETTERS = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789éжß中øπñ"];

test(`${rounds} bad patterns never stall [T27]`, () => {
  const slow: string[] = [];
  let longest = 0;
  const distinct = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const letter = LETTERS[Math.floor(round / BAD_PATTERNS.length) % LETTERS.length]!;
    const [pattern, text] = BAD_PATTERNS[round % BAD_PATTERNS.length]!(letter);
    distinct.add(pattern);
    const inText = costMs({ type: "string", pattern }, text);
    const inName = costMs({ patternProperties: { [pattern]: {} } }, { [text]: 1 });
    longest = Math.max(longest, inText, inName);
    for (const ms of [inText, inName]) if (ms > LIMIT_MS) slow.push(`${pattern}: ${ms} ms`);
  }
  const figures = {
    patterns: distinct.size,
    uses: rounds * 2,
    stalls: slow.length,
    "longest ms": longest,
  };
  record({ goal: "T27", what: "bad patterns in schemas", figures });
  expect(slow).toEqual([]);
  expect(distinct.size, "void: too few patterns").toBe(rounds);
}, 3_600_000);

const numbers = Array.from({ length: 90_000 }, (_, at) => at);
const objects = Array.from({ length: 8_000 }, (_, at) => ({ a: at, b: [at] }));

test.each<[string, JsonObject, JsonValue]>([
  ["branches that double", doubling("anyOf"), "x"],
  ["branches that double, all tried", doubling("oneOf"), "x"],
  [
    "a circle of references",
    { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
    1,
  ],
  ["a reference to the whole", { not: { $ref: "#" } }, 1],
  [
    "many comparisons",
    { allOf: Array.from({ length: 500 }, () => ({ uniqueItems: true })) },
    objects,
  ],
  ["many enumerations", { allOf: Array.from({ length: 500 }, () => ({ enum: [1] })) }, objects],
  [
    "many lengths",
    { allOf: Array.from({ length: 900 }, () => ({ maxLength: 3 })) },
    "x".repeat(1_000_000),
  ],
  [
    "many searches",
    { allOf: Array.from({ length: 900 }, () => ({ contains: { type: "string" } })) },
    numbers,
  ],
  ["exact decimals", { items: { multipleOf: 1e-300 } }, numbers],
])("%s never stall [T27]", (_name, schema, value) => {
  expect(costMs(schema, value)).toBeLessThan(LIMIT_MS);
});

test("a value that exceeds the budget is invalid, also under `not` [T27]", () => {
  const endless = compileJsonSchema({ not: { $ref: "#" } });
  expect(endless(1)).toEqual([
    { path: "$", message: "the schema refers to itself without end at this place" },
  ]);
  const long = compileJsonSchema({ not: { pattern: "a" } });
  expect(long("b".repeat(300_000))[0]?.message).toContain("takes too long to check");
});

test("an honest large input is checked", () => {
  const row = {
    type: "object",
    properties: { a: { type: "integer", minimum: 0 }, b: { type: "array" } },
    required: ["a"],
  };
  expect(compileJsonSchema({ items: row, uniqueItems: true })(objects)).toEqual([]);
  expect(compileJsonSchema({ items: { type: "integer", minimum: 0 } })(numbers)).toEqual([]);
});

function doubling(keyword: string): JsonObject {
  const $defs: JsonObject = { d30: { type: "number" } };
  for (let level = 0; level < 30; level += 1) {
    const next = { $ref: `#/$defs/d${level + 1}` };
    $defs[`d${level}`] = { [keyword]: [next, next] };
  }
  return { $defs, $ref: "#/$defs/d0" };
}
