import { expect, test } from "vitest";
import { seededRandom } from "../../util/random.ts";
import { compilePattern, PatternError } from "./pattern.ts";

const free = () => {};

function matches(source: string, text: string): boolean {
  return compilePattern(source).test(text, free);
}

test.each([
  ["^a+$", "aaa", true],
  ["^a+$", "aab", false],
  ["b", "abc", true],
  ["", "", true],
  ["^$", "", true],
  ["^(?:cat|dog)s?$", "dogs", true],
  ["^(?:cat|dog)s?$", "dogss", false],
  ["^[a-c]{2,3}$", "abca", false],
  ["^[a-c]{2,}$", "abca", true],
  ["^\\d{4}-\\d\\d$", "2026-11", true],
  ["^\\p{Lu}\\p{Ll}+$", "Älf", true],
  ["^.$", "😀", true],
  ["^\\ud83d\\ude00$", "😀", true],
  ["^\\u{1f600}$", "😀", true],
  ["^[^\\]]+$", "a]b", false],
  ["\\bcat\\b", "a cat!", true],
  ["\\bcat\\b", "concat", false],
  ["\\Bcat", "concat", true],
  ["^(?!.*\\.\\.)[a-z.]+$", "a.b.c", true],
  ["^(?!.*\\.\\.)[a-z.]+$", "a..c", false],
  ["^(?=.*\\d)[a-z\\d]+$", "ab1", true],
  ["^(?=.*\\d)[a-z\\d]+$", "abc", false],
  ["^(?<year>\\d+)$", "2026", true],
  ["^(a*)*$", "aaaa", true],
  ["^(a*?)+?b$", "aab", true],
  ["^.$", "\n", false],
  ["^a\\/b$", "a/b", true],
])("%s on %j is %s", (source, text, expected) => {
  expect(matches(source, text)).toBe(expected);
});

test.each([
  ["(a)\\1", "a back reference"],
  ["(?<x>a)\\k<x>", "a back reference"],
  ["(?<=a)b", "a lookbehind"],
  ["(?<!a)b", "a lookbehind"],
  ["(", "not a regular expression"],
  ["\\-", "not a regular expression"],
  ["(?:a{1000}){1000}", "too large"],
  ["(?:(?:(?:){60000}){60000}){60000}", "too large"],
])("refuses %s: %s [T27]", (source, problem) => {
  const refused = expect(() => compilePattern(source));
  refused.toThrow(PatternError);
  refused.toThrow(problem);
});

test("refuses a pattern of 5,000 characters [T27]", () => {
  expect(() => compilePattern("a".repeat(5_000))).toThrow("longer than");
});

test("agrees with the engine on random patterns and texts [T27]", () => {
  const { int, pick } = dice(seededRandom("patterns"));
  const atoms = [
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    "\\w",
    "\\d",
    "\\s",
    "😀",
    "\\p{L}",
    "^",
    "$",
    "\\b",
  ];
  const piece = (depth: number): string => {
    if (depth === 0) return pick(atoms);
    const inner = () => piece(depth - 1);
    const shapes = [
      () => pick(atoms),
      () => inner() + inner(),
      () => `(?:${inner()}|${inner()})`,
      () => `(?:${inner()})${pick(["*", "+", "?", "{2}", "{1,2}", "{0}", "{1,}", "*?", "??"])}`,
      () => `(${pick(["?=", "?!", "?:", ""])}${inner()})`,
    ];
    return pick(shapes)();
  };
  let found = 0;
  for (let round = 0; round < 3_000; round += 1) {
    const source = piece(4);
    const native = new RegExp(source, "uy");
    const pattern = compilePattern(source);
    for (let sample = 0; sample < 8; sample += 1) {
      const text = Array.from({ length: int(7) }, () =>
        pick(["a", "b", "1", " ", "😀", "\n"]),
      ).join("");
      const expected = matchesSomewhere(native, text);
      if (expected) found += 1;
      expect({ source, text, match: pattern.test(text, free) }).toEqual({
        source,
        text,
        match: expected,
      });
    }
  }
  expect(found).toBeGreaterThan(1_000);
});

/** V8 also starts inside a surrogate pair, where `(?!.)` holds; the standard does not. So each position is tested. */
function matchesSomewhere(sticky: RegExp, text: string): boolean {
  let at = 0;
  for (const character of [...text, "\0"]) {
    sticky.lastIndex = at;
    if (sticky.test(text)) return true;
    at += character.length;
  }
  return false;
}

/** Small whole numbers and choices from a repeatable source. */
function dice(random: ReturnType<typeof seededRandom>) {
  const int = (below: number) => new DataView(random.bytes(4).buffer).getUint32(0) % below;
  return { int, pick: <Item>(items: readonly Item[]) => items[int(items.length)] as Item };
}
