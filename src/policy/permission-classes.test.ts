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

test("a table maps tool names to classes and is never changed in place [I-18]", () => {
  const one = withClass(NO_CLASSES, "a", "bash");
  const two = withClass(one, "b", "file");
  expect([classOf(two, "a"), classOf(two, "b"), classOf(two, "c")]).toEqual(["bash", "file", ""]);
  expect(classOf(one, "b")).toBe("");
  expect(NO_CLASSES.size).toBe(0);
  expect(classOf(withoutClass(two, "a"), "a")).toBe("");
  expect(classOf(two, "a")).toBe("bash");
});

test("names are compared letter by letter [I-18]", () => {
  const table = withClass(NO_CLASSES, "Run", "readonly");
  for (const name of ["run", "RUN", "Run ", "\u0052un\u200b", "constructor", "__proto__"]) {
    expect(classOf(table, name), name).toBe("");
  }
});

test("a tool without a class gets the fallback [S2-43]", () => {
  expect(classOf(withClass(NO_CLASSES, "plain"), "plain")).toBe("");
});

test("a second registration cannot make a checked tool unchecked [S2-43 T12]", () => {
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

test("a class that does not exist is refused [I-18]", () => {
  for (const odd of ["shell", "Readonly", "read-only"]) {
    expect(
      refused(() => withClass(NO_CLASSES, "a", odd as never)),
      odd,
    ).toBe(true);
  }
});
