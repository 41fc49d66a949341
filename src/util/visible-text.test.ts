import fc from "fast-check";
import { expect, test } from "vitest";
import { headOf, piecesOf } from "./visible-text.ts";

const FULL = process.env["SCALE"] === "full";
const kinds = (text: string) => piecesOf(text).map(({ kind, raw }) => `${kind}:${raw}`);
const marksIn = (text: string) =>
  piecesOf(text).filter(({ kind }) => kind !== "text" && kind !== "newline").length;
const rejoined = (text: string) =>
  piecesOf(text)
    .map(({ raw }) => raw)
    .join("");

test("whatever the text, its pieces are the whole text, in order [T13]", () => {
  const codes = fc.array(fc.integer({ min: 0, max: 0x10ffff }), { maxLength: 40 });
  const texts = codes.map((list) => String.fromCodePoint(...list));
  fc.assert(
    fc.property(texts, (text) => rejoined(text) === text),
    { numRuns: 1_000 },
  );
  expect(rejoined("\ud800 half \udc00")).toBe("\ud800 half \udc00");
});

test("text pieces contain no characters that hide or reorder [T13]", () => {
  const hidden =
    /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|[^\P{Zs} ]|\p{M}{3}/u;
  for (let first = 0; first <= 0x10ffff; first += 256) {
    if (first >= 0xd800 && first < 0xe000) continue;
    // Nearly everything that is in use, unless all of Unicode is asked for.
    if (!FULL && first >= 0x20000 && !(first >= 0xe0000 && first < 0xe1000)) continue;
    const text = Array.from(
      { length: 256 },
      (_, at) => `a${String.fromCodePoint(first + at)} `,
    ).join("");
    const shown = piecesOf(text).filter(({ kind }) => kind === "text" || kind === "twin");
    expect(
      shown.filter(({ raw }) => hidden.test(raw)),
      `from U+${first.toString(16)}`,
    ).toEqual([]);
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
])("%j has %i misleading characters", (text, count) => {
  expect(marksIn(text)).toBe(count);
});

const LOOK_ALIKES: readonly (readonly [string, number])[] = [
  ["p\u0251ypal.com", 1],
  ["\u0261ithub.com", 1],
  ["adm\u0131n", 1],
  ["micro\u1d0fft.com", 1],
  ["\u15eaocker.com", 1],
  ["\u146daypal.com", 1],
  ["\u09ea00 EUR", 1],
  ["d\u0336e\u0336l\u0336e\u0336t\u0336e\u0336", 6],
  ["a\u20d2b", 1],
  ["pay\u3164pal", 1],
  ["a\u115fb", 1],
  ["a\u1160b", 1],
  ["a\u2800b", 1],
  ["a\u034fb", 1],
  ["a\ufe0fb", 1],
  ["a\u00a0b", 1],
  ["a\u180eb", 1],
  ["a\u{e0041}b", 1],
  ["paypal\u2215com", 1],
  ["paypal.com\uff0flogin", 1],
  ["\u0430\u0440\u0440\u04cf\u0435", 5],
  ["rm \u2010rf", 1],
  ["rm \u02d7rf", 1],
  ["history\u01c3 42", 1],
  ["https\u02d0//x", 1],
  ["a\u2571b\u27cbc\u2216d\u29f5e", 4],
  ["cat x \u2223 sh \u2758 y", 2],
  ["x\ua78a1, y\u14002, evil\u2e31com, evil\u2027com", 4],
  ["\u223c/x \u2053/y \u02c2z\u02c3", 4],
  ["\u0661\u0660 EUR", 2],
  ["order 9\u0660 pieces", 1],
];

test.each(LOOK_ALIKES)("%j: look-alike and invisible letters are marked [M14]", (text, count) => {
  expect(marksIn(text)).toBe(count);
});

test.each([
  "Η παραγγελία είναι έτοιμη και περιμένει τον Νίκο.",
  "Пришёл товар со склада, сор и оса, 12 штук.",
  "আমার সোনার বাংলা, ৪৫ টাকা",
  "订单已准备好，共三件：请确认。",
  "ご注文は「ラーメン」です。",
  "مرحبا بالعالم، ١٢ قطعة",
  "Größe, naïve, façade, Łódź, Việt Nam",
])("%s: a text in one script has no marks [M14]", (text) => {
  expect(marksIn(text)).toBe(0);
});

test("a word in another script than the rest is marked once, as a whole [M14]", () => {
  expect(kinds("pay Иванов now")).toEqual(["text:pay ", "twin:Иванов", "text: now"]);
  expect(piecesOf("pay Иванов now")[1]).toMatchObject({ label: "Cyrillic" });
  // A Latin word among Cyrillic ones is marked where a reader would take it for Cyrillic.
  expect(kinds("Заберите товар: cop")).toContain("twin:c");
  expect(marksIn("Заберите товар LAMP-01 завтра")).toBe(0);
});

test("marking takes time in proportion to the length of the text [M14]", () => {
  const text = "а1a".repeat(200_000);
  expect(piecesOf(text).length).toBeGreaterThan(200_000);
});

test("marks name the character, and look-alikes keep their shape", () => {
  expect(kinds("a\u200bb")).toEqual(["text:a", "code:\u200b", "text:b"]);
  expect(piecesOf("\u202e")[0]).toMatchObject({
    label: "U+202E",
    why: "changes the direction of text",
  });
  expect(kinds("\u0430b")).toEqual(["twin:\u0430", "text:b"]);
  expect(piecesOf(`x${" ".repeat(50)}y`)[1]).toMatchObject({ label: "50 spaces" });
});

test("a beginning is never cut through a character", () => {
  expect(headOf("ab🙂c", 3)).toBe("ab");
  expect(headOf("ab🙂c", 4)).toBe("ab🙂");
  expect(headOf("abc", 3)).toBe("abc");
});
