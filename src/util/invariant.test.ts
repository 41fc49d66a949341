import { expect, test } from "vitest";
import { InvariantError, invariant } from "./error-text.ts";

test("does nothing while the condition holds", () => {
  invariant(true, "never said");
});

test("throws an InvariantError when the condition fails", () => {
  expect(() => invariant(false, "a decision was approved twice")).toThrow(
    new InvariantError("a decision was approved twice"),
  );
  const error = new InvariantError("x");
  expect(error).toMatchObject({ name: "InvariantError", message: "sallyport: this is a bug: x" });
});

test("narrows types", () => {
  const value: string | undefined = ["a"][0];
  invariant(value !== undefined, "the list has one element");
  expect(value.length).toBe(1);
});
