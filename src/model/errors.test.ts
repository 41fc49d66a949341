import { describe, expect, test } from "vitest";
import { ERRORS, type ErrorCode, isSallyportError, SallyportError } from "./errors.ts";

const codes = Object.keys(ERRORS) as ErrorCode[];
const SENTINELS = [
  "illegal_transition",
  "not_found",
  "already_final",
  "dependency_denied",
] as const;

describe("the table", () => {
  test("has the four errors of staging [S0-98]", () => {
    for (const code of SENTINELS) expect(codes).toContain(code);
  });

  test.each(codes)("%s has a failure status, retry advice and a sentence", (code) => {
    const { status, retry, summary } = ERRORS[code];
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(["never", "later", "after_reread", "safe", "ask_a_person"]).toContain(retry);
    expect(summary).toMatch(/^[A-Z].*\.$/);
  });

  test("gives every code a summary of its own", () => {
    expect(new Set(codes.map((code) => ERRORS[code].summary)).size).toBe(codes.length);
  });

  test("says of a denial by a guard that it may be asked again later [S0-101]", () => {
    expect(new SallyportError("dependency_denied").retry).toBe("later");
  });

  test("says of an illegal transition and of a closed record that repeating is useless [S0-07 S0-100]", () => {
    expect(new SallyportError("illegal_transition").retry).toBe("never");
    expect(new SallyportError("already_final").retry).toBe("never");
  });
});

describe("an error", () => {
  test.each(SENTINELS)("%s carries the package's name and its code in the text [S0-98]", (code) => {
    const error = new SallyportError(code, { id: "42", hint: "Do this." });
    expect(error.message).toMatch(/^sallyport: /);
    expect(error.message).toContain(code);
    expect(error.message).toContain("id=42");
    expect(error.message).toContain("Do this.");
    expect(error.name).toBe("SallyportError");
    expect(error.status).toBe(ERRORS[code].status);
  });

  test.each(SENTINELS)(
    "%s is recognised as itself and as none of the others [S0-98 S0-100]",
    (code) => {
      const error = new SallyportError(code);
      const recognised = codes.filter((other) => isSallyportError(error, other));
      expect(recognised).toEqual([code]);
    },
  );

  test.each(SENTINELS)("%s survives wrapping, several times [S0-98]", (code) => {
    const inner = new SallyportError(code);
    const wrapped = new Error("outer", { cause: new TypeError("middle", { cause: inner }) });
    expect(isSallyportError(wrapped, code)).toBe(true);
    expect(isSallyportError(wrapped)).toBe(true);
    for (const other of SENTINELS.filter((one) => one !== code)) {
      expect(isSallyportError(wrapped, other)).toBe(false);
    }
  });

  test("keeps its cause, and one SallyportError may wrap another [S0-41]", () => {
    const cause = new Error("why");
    expect(new SallyportError("dependency_denied", {}, cause).cause).toBe(cause);
    expect("cause" in new SallyportError("not_found")).toBe(false);
    const both = new SallyportError("dependency_denied", {}, new SallyportError("not_found"));
    expect(isSallyportError(both, "dependency_denied")).toBe(true);
    expect(isSallyportError(both, "not_found")).toBe(true);
  });

  test("shows lists of facts, and leaves out what is not known", () => {
    const { message } = new SallyportError("invalid_input", {
      what: undefined,
      states: ["a", "b"],
    });
    expect(message).toContain("states=a,b");
    expect(message).not.toContain("what");
  });
});

describe("recognising", () => {
  test.each([undefined, null, "not_found", { code: "not_found" }, new Error("not_found")])(
    "%s is none of ours",
    (value) => {
      expect(isSallyportError(value)).toBe(false);
      expect(isSallyportError(value, "not_found")).toBe(false);
    },
  );

  test("comes to an end when causes run in a circle", () => {
    const one = new Error("one");
    const two = new Error("two", { cause: one });
    one.cause = two;
    expect(isSallyportError(one)).toBe(false);
  });
});
