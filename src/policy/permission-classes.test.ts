import { expect, test } from "vitest";
import { isSallyportError } from "../model/errors.ts";
import { classOf, NO_CLASSES, withClass, withoutClass } from "./permission.ts";

const refused = (work: () => unknown) => {
  try {
    work();
    return false;
  } catch (error) {
    return isSallyportError(error, "invalid_input");
  }
};

test("I-18 a table maps tool names to classes and is never changed in place", () => {
  const one = withClass(NO_CLASSES, "a", "bash");
  const two = withClass(one, "b", "file");
  expect([classOf(two, "a"), classOf(two, "b"), classOf(two, "c")]).toEqual(["bash", "file", ""]);
  expect(classOf(one, "b")).toBe("");
  expect(NO_CLASSES.size).toBe(0);
  expect(classOf(withoutClass(two, "a"), "a")).toBe("");
  expect(classOf(two, "a")).toBe("bash");
});

test("I-18 names are compared letter by letter", () => {
  const table = withClass(NO_CLASSES, "Run", "readonly");
  for (const name of ["run", "RUN", "Run ", "\u0052un\u200b", "constructor", "__proto__"]) {
    expect(classOf(table, name), name).toBe("");
  }
});

test("S2-43 a tool without a class gets the fallback", () => {
  expect(classOf(withClass(NO_CLASSES, "plain"), "plain")).toBe("");
});

test("S2-43 T12 a second registration cannot turn a checked tool into a free one", () => {
  const table = withClass(NO_CLASSES, "run", "bash");
  expect(withClass(table, "run", "bash")).toBe(table);
  for (const other of ["readonly", "generic", "file", ""] as const) {
    expect(
      refused(() => withClass(table, "run", other)),
      other,
    ).toBe(true);
  }
  expect(refused(() => withClass(withClass(NO_CLASSES, "run"), "run", "readonly"))).toBe(true);
  expect(classOf(withClass(withoutClass(table, "run"), "run", "file"), "run")).toBe("file");
});

test("I-18 a class that does not exist is refused", () => {
  for (const odd of ["shell", "Readonly", "read-only"]) {
    expect(
      refused(() => withClass(NO_CLASSES, "a", odd as never)),
      odd,
    ).toBe(true);
  }
});
