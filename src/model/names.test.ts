import { expect, test } from "vitest";
import { isSallyportError } from "./errors.ts";
import { checkName, foldName } from "./names.ts";

/** Named, because an assertion function has to have an explicit type where it is called. */
const check: (what: string, name: unknown) => void = checkName;

test.each([
  ["a letter", "a"],
  ["spaces and dots", "crm / update v1.2"],
  ["other scripts and emoji", "Sitzung ü 日本 👩‍👩‍👧"],
  ["the longest", "x".repeat(512)],
  ["something that looks like code", "'; DROP TABLE decisions; --"],
  ["names that objects have", "__proto__"],
])("a name may be %s", (_what, name) => {
  expect(() => check("session id", name)).not.toThrow();
});

test.each([
  ["nothing", ""],
  ["undefined", undefined],
  ["null", null],
  ["a number", 5],
  ["a list", ["a"]],
  ["too long", "x".repeat(513)],
  ["with NUL", "a\u0000b"],
  ["with a line break", "a\nb"],
  ["with an escape", "\u001b[31m"],
  ["with DEL", "a\u007f"],
  ["half a character", "a\ud800"],
  ["the other half", "\udc00a"],
])("a name may not be %s", (_what, name) => {
  let error: unknown;
  try {
    check("session id", name);
  } catch (thrown) {
    error = thrown;
  }
  expect(isSallyportError(error, "invalid_input")).toBe(true);
  expect((error as Error).message, "it says which name, and how to help it").toMatch(
    /session id.*what=session id/s,
  );
});

test("the refused text itself is not repeated in the error", () => {
  expect(() => check("tenant", "sec\u0000ret")).toThrow(/^((?!sec).)*$/s);
});

test("names that a reader takes for the same fold alike, and different ones do not", () => {
  const alike = [
    "Person:Ada",
    " person:ada",
    "person:ada\u00a0",
    "per\u00adson:ada",
    "person：ada\u200b",
  ];
  expect(new Set(alike.map(foldName))).toEqual(new Set(["person:ada"]));
  expect(foldName("person:ad")).not.toBe(foldName("person:ada"));
  // A name in another alphabet is another name: a list of people protects against it, folding does not.
  expect(foldName("person:\u0430da")).not.toBe("person:ada");
  expect(foldName(" \u200b\t")).toBe("");
});
