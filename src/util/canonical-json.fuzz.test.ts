import { randomInt } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { expect, test } from "vitest";
import { record } from "../../tests/support/record.ts";
import { scaled } from "../../tests/support/scale.ts";
import { canonicalJson, canonicalParts } from "./canonical-json.ts";
import { sha256Hex } from "./hash.ts";
import type { JsonObject } from "./json.ts";
import { JsonError } from "./json-error.ts";
import { parseStrictJson } from "./strict-json.ts";

const RUNS = scaled({ test: 8_000, proof: 50_000, full: 1_000_000 });
const HOUR = 3_600_000;
const MOST_HASHES = 400_000;

/** A key with an escape, which JSON.parse of Node 24 and 26 may take for another one (nodejs/node issue 63785). */
const MISREAD = /"(?:[^"\\]|\\.)*\\.(?:[^"\\]|\\.)*":/;

test(
  "agrees with a second implementation, can be read back, and is its own canonical form [G17 T24 I21]",
  () => {
    const counts = {
      inputs: 0,
      accepted: 0,
      refused: 0,
      hashes: 0,
      disagreements: 0,
      collisions: 0,
    };
    // As long as the memory for them lasts: what each hash was made of.
    const meaning = new Map<string, string>();
    // fast-check prints the seed and the shortest counterexample when this fails.
    const property = fc.property(values(), (value) => {
      if (isUnsafe(value)) {
        counts.refused += 1;
        if (!(failure(value) instanceof JsonError)) throw new Error("accepted an unsafe value");
        return;
      }
      counts.accepted += 1;
      const text = canonicalJson(value);
      if (text !== canonicalize(value)) throw new Error(`wrote ${text}`);
      // What can be read back cannot collide: equal texts would have to come from equal values.
      const meant = simplify(value);
      if (!MISREAD.test(text) && !isDeepStrictEqual(JSON.parse(text), meant)) {
        throw new Error("JSON.parse disagrees");
      }
      if (!isDeepStrictEqual(parseStrictJson(text), meant)) throw new Error("our parser disagrees");
      if (canonicalJson(parseStrictJson(text)) !== text) throw new Error("not idempotent");
      if (meaning.size >= MOST_HASHES) return;
      const hash = sha256Hex(text);
      const before = meaning.get(hash);
      if (before !== undefined && before !== canonicalize(meant)) {
        counts.collisions += 1;
        throw new Error("two meanings with one hash");
      }
      meaning.set(hash, text);
    });
    const seed = Number(process.env["FC_SEED"] ?? randomInt(2 ** 31));
    const result = fc.check(property, { numRuns: RUNS, seed });
    counts.inputs = result.numRuns;
    counts.hashes = meaning.size;
    counts.disagreements = result.failed ? 1 : 0;
    record({
      goal: "G17",
      what: "canonicaliser and hash, two implementations",
      figures: counts,
      seed,
    });
    expect(result.failed, fc.defaultReportMessage(result)).toBe(false);
    expect(counts.inputs, "void: too few inputs").toBe(RUNS);
    expect(counts.accepted, "void: too few were accepted").toBeGreaterThan(RUNS / 3);
    expect(counts.refused, "void: too few were refused").toBeGreaterThan(RUNS / 50);
  },
  HOUR,
);

test(
  "no two numbers share a hash, over zeros, exponents and neighbouring floats [T24]",
  () => {
    const byHash = new Map<string, number>();
    for (const number of numbersToCollide()) {
      const hash = sha256Hex(canonicalJson({ n: number }));
      const before = byHash.get(hash);
      if (before !== undefined && before !== number) throw new Error(`${before} and ${number}`);
      byHash.set(hash, number);
    }
    expect(byHash.size).toBeGreaterThan(10_000);
  },
  HOUR,
);

test("spellings of one number share a hash, and only they [T24]", () => {
  const spellings = [
    ["0", "-0", "0.0", "-0e9", "0e-400"],
    ["1", "1.0", "1e0", "10e-1", "0.1e1"],
    ["-1", "-1.0", "-1E+0"],
    ["100", "1e2", "1E+2", "100.00"],
    ["0.1", "1e-1", "0.10", "0.1000000000000000055511151231257827"],
    ["0.1000000000000001"],
    ["1e-7", "0.0000001"],
    ["1e-6", "0.000001"],
    ["5e-324", "4.9406564584124654e-324"],
    ["9007199254740991", "9007199254740991.0"],
    ["9007199254740990"],
  ];
  const hashes = spellings.map((group) => {
    const own = new Set(group.map((text) => sha256Hex(canonicalJson(parseStrictJson(text)))));
    expect(own.size, group.join(" ")).toBe(1);
    return [...own][0];
  });
  expect(new Set(hashes).size).toBe(spellings.length);
});

test("no two strings share a hash, over every UTF-16 unit alone, in pairs and as a key [T24]", () => {
  const hashes = new Set<string>();
  let hashed = 0;
  const add = (value: unknown) => {
    hashes.add(sha256Hex(canonicalJson(value)));
    hashed += 1;
  };
  for (let unit = 0; unit <= 0xffff; unit += 1) {
    const text = String.fromCharCode(unit);
    if (unit >= 0xd800 && unit <= 0xdfff) {
      // The halves would all be hashed as U+FFFD; U+FFFD itself and whole pairs are fine.
      for (const value of [text, [`a${text}`], { [text]: 1 }]) {
        expect(failure(value)).toMatchObject({ reason: "lone_surrogate" });
      }
      expect(() => sha256Hex(text)).toThrow(TypeError);
    } else {
      add(text);
      add({ [text]: 1 });
    }
  }
  for (let high = 0xd800; high <= 0xdbff; high += 31) {
    for (let low = 0xdc00; low <= 0xdfff; low += 37) add(String.fromCharCode(high, low));
  }
  expect(hashes.size).toBe(hashed);
});

test("values that look alike have different texts [T24]", () => {
  const alike = [
    [null, "null", "", [], {}, [null], [[]], { "": null }, false, "false"],
    [0, "0", [0], { "0": 0 }, ["0"], { "0": "0" }],
    ["a,b", ["a,b"], ["a", "b"], 'a","b', ['a","b'], { a: "b" }, 'a":"b'],
    ["é", "e\u0301", "\\u00e9", "É"],
    ["\n", "\\n", "n", "\r\n", "\u2028"],
    [{ a: 1, b: 2 }, { a: 2, b: 1 }, [{ a: 1 }, { b: 2 }], { a: { b: 2 } }, { "a:1,b": 2 }],
  ].flat();
  const texts = alike.map((value) => canonicalJson(value));
  expect(new Set(texts).size).toBe(new Set(alike).size);
});

function failure(value: unknown): unknown {
  try {
    return canonicalJson(value);
  } catch (error) {
    return error;
  }
}

function values(): fc.Arbitrary<unknown> {
  // Any sequence of UTF-16 units, so that pairs come whole, broken and swapped.
  const units = fc.oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0, max: 0xffff }),
    fc.constantFrom(0xd83d, 0xde00, 0xfffd, 0xfffe, 0x2028, 0x22, 0x5c),
  );
  const texts = fc.oneof(
    { arbitrary: fc.string({ unit: "binary", maxLength: 6 }), weight: 8 },
    { arbitrary: fc.stringMatching(/^[\x20-\x7e]{0,20}$/), weight: 6 },
    { arbitrary: fc.string({ minLength: 60, maxLength: 70 }), weight: 1 },
    {
      arbitrary: fc.array(units, { maxLength: 3 }).map((codes) => String.fromCharCode(...codes)),
      weight: 1,
    },
  );
  const scalars = fc.oneof(
    { arbitrary: fc.constantFrom<unknown>(null, true, false, 0, -0), weight: 2 },
    { arbitrary: fc.integer(), weight: 2 },
    { arbitrary: fc.double({ min: -(2 ** 53) + 1, max: 2 ** 53 - 1, noNaN: true }), weight: 4 },
    { arbitrary: fc.double(), weight: 1 },
    { arbitrary: fc.maxSafeInteger(), weight: 1 },
    { arbitrary: texts, weight: 4 },
  );
  // More keys than are sorted by hand.
  const wide = fc.dictionary(texts, scalars, { minKeys: 17, maxKeys: 24, noNullPrototype: false });
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      { arbitrary: scalars, weight: 10 },
      { arbitrary: fc.array(tie("value"), { maxLength: 4 }), weight: 10 },
      {
        arbitrary: fc.dictionary(
          texts,
          fc.oneof({ arbitrary: tie("value"), weight: 9 }, fc.constant(undefined)),
          { maxKeys: 20, noNullPrototype: false },
        ),
        weight: 10,
      },
      { arbitrary: wide, weight: 1 },
    ),
  }));
  return value;
}

/** The second opinion on what must be refused. */
function isUnsafe(value: unknown): boolean {
  if (typeof value === "number") return !(Math.abs(value) < 2 ** 53);
  if (typeof value === "string") return !value.isWellFormed();
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, part]) =>
      key === "__proto__" || (part !== undefined && !key.isWellFormed()) || isUnsafe(part),
  );
}

/** The value as JSON represents it: no -0, no undefined properties, ordinary prototypes. */
function simplify(value: unknown): unknown {
  if (value === 0) return 0;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(simplify);
  const kept = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(kept.map(([key, part]) => [key, simplify(part)]));
}

/** Every power of two and of ten that fits, with both neighbours; every seventeenth digit; both signs. */
function* numbersToCollide(): Generator<number> {
  const float = new Float64Array(1);
  const bits = new BigInt64Array(float.buffer);
  const bases: number[] = [0, 5e-324, Number.MAX_SAFE_INTEGER, 0.1, 0.2, 0.3, 1 / 3];
  for (let power = -1074; power <= 52; power += 1) bases.push(2 ** power, 3 * 2 ** (power - 2));
  for (let power = -323; power <= 15; power += 1) {
    for (let digit = 1; digit <= 9; digit += 1) bases.push(Number(`${digit}e${power}`));
  }
  for (const base of bases) {
    float[0] = base;
    const centre = bits[0]!;
    for (let step = -2n; step <= 2n; step += 1n) {
      if (centre + step < 0n) continue;
      bits[0] = centre + step;
      if (float[0]! <= Number.MAX_SAFE_INTEGER) yield* [float[0]!, -float[0]!];
    }
  }
}

test("a text with gaps, filled, is the text of the whole", () => {
  const key = fc.oneof(fc.constantFrom("a", "fence", "z", "é"), fc.string({ unit: "grapheme" }));
  const some = fc.dictionary(
    key.filter((name) => name !== "__proto__"),
    fc.oneof(fc.integer(), fc.string({ unit: "grapheme" }), fc.constant(undefined)),
  );
  const late = fc.dictionary(
    key.filter((name) => name !== "__proto__"),
    fc.integer(),
  );
  fc.assert(
    fc.property(some, late, (object, values) => {
      const { parts, gaps } = canonicalParts(object as JsonObject, Object.keys(values));
      const filled = parts.map((part, at) => {
        const gap = gaps[at];
        return gap === undefined ? part : part + canonicalJson(values[gap]);
      });
      expect(filled.join("")).toBe(canonicalJson({ ...object, ...values }));
    }),
  );
});
