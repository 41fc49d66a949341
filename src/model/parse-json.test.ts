import { expect, test } from "vitest";
import { ERRORS, isSallyportError, type SallyportError } from "./errors.ts";
import { parseJson } from "./names.ts";

test("parseJson reads what has one meaning [T24]", () => {
  expect(parseJson('{"cents":12900}')).toEqual({ cents: 12900 });
});

test.each([
  ["broken", '{"cents":', "invalid_json", "syntax"],
  ["of two meanings", '{"a":1,"a":2}', "invalid_json", "duplicate_key"],
  ["changed by reading", "9007199254740993", "invalid_json", "unsafe_number"],
  ["deep", "[".repeat(200_000), "payload_too_large", "too_deep"],
  ["oversized", `"${"x".repeat(2 ** 20)}"`, "payload_too_large", "too_large"],
] as const)(
  "JSON that is %s gets a code, the place and what to do [T24 T25]",
  (_, text, code, reason) => {
    let caught: unknown;
    try {
      parseJson(text);
    } catch (error) {
      caught = error;
    }
    expect(isSallyportError(caught, code)).toBe(true);
    const { details, message } = caught as SallyportError;
    expect(details["reason"]).toBe(reason);
    expect(details.hint).toMatch(/\w{3,}.*\.$/s);
    expect(message).toContain(ERRORS[code].summary);
  },
);
