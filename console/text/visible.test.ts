import fc from "fast-check";
import { expect, test } from "vitest";
import { headOf, oddities, piecesOf } from "./visible.ts";

const FULL = process.env["SCALE"] === "full";
const kinds = (text: string) => piecesOf(text).map(({ kind, raw }) => `${kind}:${raw}`);
const rejoined = (text: string) => piecesOf(text).map(({ raw }) => raw).join("");

test("T13 whatever the text, its pieces are the whole text, in order", () => {
  const texts = fc.string({ unit: "binary", maxLength: 40 });
  fc.assert(fc.property(texts, (text) => rejoined(text) === text), { numRuns: 1_000 });
  expect(rejoined("\ud800 half \udc00")).toBe("\ud800 half \udc00");
});

test("T13 what is shown as text holds nothing that hides or reorders", () => {
  const hidden =
    /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|[^\P{Zs} ]|\p{M}{3}/u;
  for (let first = 0; first <= 0x10ffff; first += 256) {
    if (first >= 0xd800 && first < 0xe000) continue;
    // Nearly everything that is in use, unless all of Unicode is asked for.
    if (!FULL && first >= 0x20000 && !(first >= 0xe0000 && first < 0xe1000)) continue;
    const text = Array.from({ length: 256 }, (_, at) => `a${String.fromCodePoint(first + at)} `).join("");
    const shown = piecesOf(text).filter(({ kind }) => kind === "text" || kind === "twin");
    expect(shown.filter(({ raw }) => hidden.test(raw)), `from U+${first.toString(16)}`).toEqual([]);
  }
});

test.each([
  ["plain words, 12.50 EUR", 0],
  ["Größe Übung naïve façade", 0],
  ["Приход товара со склада", 0],
  ["倉庫 北門 三", 0],
  ["مرحبا بالعالم", 0],
  ["emoji 🙂 ok", 0],
  ["if (x) {\n    return y;\n}", 0],
  ["pay\u202elap", 1],
  ["zero\u200bwidth", 1],
  ["раураl", 5],
  ["ｐａｙ", 3],
  ["\u0430dmin", 1],
  ["сос", 3],
  ["no\u00a0break", 1],
  [`a${" ".repeat(30)}b`, 1],
  [`a${"\n".repeat(30)}b`, 1],
  ["Z\u0310\u0341\u0311\u0312", 2],
])("%j has %i characters that are not what they seem", (text, count) => {
  expect(oddities(text)).toBe(count);
});

test("marks name the character, and look-alikes keep their shape", () => {
  expect(kinds("a\u200bb")).toEqual(["text:a", "code:\u200b", "text:b"]);
  expect(piecesOf("\u202e")[0]).toMatchObject({ label: "U+202E", why: "changes the direction of text" });
  expect(kinds("\u0430b")).toEqual(["twin:\u0430", "text:b"]);
  expect(piecesOf(`x${" ".repeat(50)}y`)[1]).toMatchObject({ label: "50 spaces" });
});

test("a beginning is never cut through a character", () => {
  expect(headOf("ab🙂c", 3)).toBe("ab");
  expect(headOf("ab🙂c", 4)).toBe("ab🙂");
  expect(headOf("abc", 3)).toBe("abc");
});
