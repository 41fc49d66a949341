import { expect, test } from "vitest";
import { errorText, oneLine } from "./error-text.ts";

test("whatever is thrown becomes one short line", () => {
  expect(errorText(new Error("broken"))).toBe("broken");
  expect(errorText(new TypeError(""))).toBe("TypeError");
  expect(errorText("text")).toBe("text");
  expect(errorText(undefined)).toBe("undefined");
  expect(errorText(Symbol("s"))).toBe("Symbol(s)");
  expect(errorText("a\r\nb\u2028c\u0000d\u001b[31m")).toBe("a b c d [31m");
  expect(errorText("x".repeat(10_000))).toHaveLength(500);
});

test("a thrown value that fights back is described without its help", () => {
  const hostile = [
    Object.create(null),
    {
      toString() {
        throw new Error("no");
      },
    },
    new Proxy(new Error("x"), {
      get() {
        throw new Error("no");
      },
    }),
    Object.defineProperty(new Error("x"), "message", {
      get() {
        throw new Error("no");
      },
    }),
  ];
  for (const value of hostile) expect(errorText(value)).toBe("an error that cannot be described");
});

test("cutting never leaves half a character", () => {
  for (let longest = 2; longest < 12; longest += 1) {
    const line = oneLine("😀".repeat(20), longest);
    expect(line.length).toBeLessThanOrEqual(longest);
    expect(line.isWellFormed()).toBe(true);
  }
});
