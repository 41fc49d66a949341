import { expect, test } from "vitest";
import { isSallyportError } from "../model/errors.ts";
import { defineTool } from "../tools/define-tool.ts";
import { createRegistry, type Registry } from "../tools/registry.ts";
import type { PermissionClass } from "../tools/tool.ts";

// The registry is the only table from names to classes: the gate reads the class from it for each call.
const tool = (name: string, permissionClass?: PermissionClass) =>
  defineTool({
    name,
    description: name,
    input: { type: "object" },
    ...(permissionClass === undefined ? {} : { permissionClass }),
    execute: () => name,
  });

const classOf = (table: Registry, name: string) => table.metadataFor(name).metadata.permissionClass;

const refused = (work: () => unknown) => {
  try {
    work();
    return false;
  } catch (error) {
    return isSallyportError(error, "invalid_input");
  }
};

test("a registry maps tool names to classes, each registry by itself [I-18]", () => {
  const one = createRegistry();
  const two = createRegistry();
  one.register(tool("a", "bash"));
  two.register(tool("b", "file"));
  expect([classOf(one, "a"), classOf(one, "b"), classOf(two, "b")]).toEqual(["bash", "", "file"]);
  one.unregister("a");
  expect(classOf(one, "a")).toBe("");
  expect(classOf(two, "b")).toBe("file");
});

test("names are compared letter by letter [I-18]", () => {
  const table = createRegistry();
  table.register(tool("Run", "readonly"));
  for (const name of ["run", "RUN", "Run ", "\u0052un\u200b", "constructor", "__proto__"]) {
    expect(classOf(table, name), name).toBe("");
  }
});

test("a tool without a class gets the fallback [S2-43]", () => {
  const table = createRegistry();
  table.register(tool("plain"));
  expect(classOf(table, "plain")).toBe("");
});

test("a second registration cannot make a checked tool unchecked [S2-43 T12]", () => {
  const table = createRegistry();
  table.register(tool("run", "bash"));
  for (const other of ["readonly", "generic", "file", "", "bash"] as const) {
    expect(
      refused(() => table.register(tool("run", other))),
      other,
    ).toBe(true);
    expect(classOf(table, "run")).toBe("bash");
  }
  table.unregister("run");
  table.register(tool("run", "file"));
  expect(classOf(table, "run")).toBe("file");
});

test("a class that does not exist is refused [I-18]", () => {
  const plain = tool("a");
  for (const odd of ["shell", "Readonly", "read-only"]) {
    expect(
      refused(() => tool("a", odd as PermissionClass)),
      odd,
    ).toBe(true);
    const handmade = { ...plain, metadata: { permissionClass: odd as PermissionClass } };
    expect(
      refused(() => createRegistry().register(handmade)),
      odd,
    ).toBe(true);
  }
});
