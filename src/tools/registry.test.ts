import { expect, test } from "vitest";
import { isSallyportError } from "../model/errors.ts";
import { defineTool } from "./define-tool.ts";
import { createRegistry, type RegistryChange } from "./registry.ts";
import type { Tool } from "./tool.ts";
import { NO_METADATA, type PermissionClass, type ToolMetadata } from "./tool.ts";

function tool(name: string, metadata?: Partial<ToolMetadata>): Tool {
  const plain = defineTool({
    name,
    description: `does ${name}`,
    input: { type: "object" },
    execute: () => name,
  });
  return metadata === undefined ? plain : { ...plain, metadata };
}

function registryOf(...tools: readonly Tool[]) {
  const registry = createRegistry();
  for (const one of tools) registry.register(one);
  return registry;
}

/** What registering is refused with. */
function refusal(register: () => void): string {
  try {
    register();
  } catch (error) {
    expect(isSallyportError(error, "invalid_input")).toBe(true);
    return String(error);
  }
  return "accepted";
}

test("tools can be added and removed at run time, also during iteration and notification [S2-55]", async () => {
  const registry = registryOf(tool("a"), tool("b"));
  registry.listen(({ type, name }) => {
    if (type === "registered" && name === "c") registry.unregister("a");
  });
  const seen: string[] = [];
  for (const one of registry.all()) {
    seen.push(one.name);
    if (one.name === "a") registry.register(tool("c"));
    registry.unregister("b");
  }
  expect(seen).toEqual(["a", "b"]);
  expect(registry.names()).toEqual(["c"]);
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, async () => {
      await Promise.resolve();
      registry.register(tool("contested"));
    }),
  );
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});

test("tools of every origin live in one registry [S2-56]", () => {
  const registry = registryOf(tool("builtin"), tool("custom.mine"));
  registry.register(tool("github.create_issue"), { server: "github" });
  expect(registry.names()).toEqual(["builtin", "custom.mine", "github.create_issue"]);
});

test("get returns a tool by name, or undefined [S2-57]", () => {
  const one = tool("a");
  const registry = registryOf(one);
  expect(registry.get("a")).toBe(one);
  for (const unknown of ["b", "", "A", "constructor", "__proto__"])
    expect(registry.get(unknown)).toBeUndefined();
});

test("metadata and tool are found by name and by alias; metadata without the tool [S2-39 S2-58 S2-61]", () => {
  const one = tool("mail.send", { aliases: ["mail.post", "send_old"], searchHint: "post" });
  const registry = registryOf(one);
  for (const name of ["mail.send", "mail.post", "send_old"]) {
    expect(registry.get(name)).toBe(one);
    const answer = registry.metadataFor(name);
    expect(answer).toEqual({ metadata: { ...NO_METADATA, ...one.metadata }, found: true });
    expect(Object.values(answer)).not.toContain(one);
  }
  expect(registry.metadataFor("mail")).toEqual({ metadata: NO_METADATA, found: false });
});

test("unknown and undeclared tools can be distinguished, and both give the same empty metadata [S2-59 S2-60]", () => {
  const registry = registryOf(tool("plain"));
  expect(registry.metadataFor("plain")).toEqual({ metadata: NO_METADATA, found: true });
  expect(registry.metadataFor("nobody")).toEqual({ metadata: NO_METADATA, found: false });
  expect(registry.metadataFor("plain").metadata).toBe(registry.metadataFor("nobody").metadata);
  const { aliases, ...rest } = NO_METADATA;
  expect([...new Set(Object.values(rest))]).toEqual(["", false]);
  expect(aliases).toEqual([]);
});

test.each<[string, unknown, string]>([
  ["nothing", undefined, "There is no tool."],
  ["null", null, "There is no tool."],
  ["an empty name", { ...tool("x"), name: "" }, "A tool needs a name."],
  ["no execute", { ...tool("x"), execute: undefined }, "needs the function execute"],
  ["no schema", { ...tool("x"), inputSchema: undefined }, "needs an inputSchema"],
  ["a claim for a function", { ...tool("x"), dryRun: true }, "dryRun must be a function"],
  ["a taken name", tool("taken"), 'The name "taken" is taken'],
  ["the name of an alias", tool("old"), 'The name "old" is taken'],
  ["an alias that is a name", tool("x", { aliases: ["taken"] }), 'The name "taken" is taken'],
  ["an alias that is an alias", tool("x", { aliases: ["old"] }), 'The name "old" is taken'],
  ["an alias twice", tool("x", { aliases: ["y", "y"] }), "aliases differ"],
  ["its name as an alias", tool("x", { aliases: ["x"] }), "aliases differ"],
  ["an impossible alias", tool("x", { aliases: ["a b"] }), "ASCII"],
  [
    "an unknown class",
    tool("x", { permissionClass: "root" as PermissionClass }),
    "permissionClass",
  ],
  [
    "a confidence that is no number",
    { ...tool("x"), capability: { confidenceMin: Number.NaN } },
    "0 to 100",
  ],
])("registering %s is refused and replaces nothing [S2-62]", (_what, bad, problem) => {
  const kept = tool("taken", { aliases: ["old"] });
  const registry = registryOf(kept);
  expect(refusal(() => registry.register(bad as Tool))).toContain(problem);
  expect([registry.count(), registry.get("taken"), registry.get("old"), registry.get("x")]).toEqual(
    [1, kept, kept, undefined],
  );
});

test("unregister returns whether a tool was removed, and removes its aliases [S2-63 S2-64]", () => {
  const registry = registryOf(tool("new-name", { aliases: ["old"] }));
  expect(registry.unregister("nobody")).toBe(false);
  expect(registry.unregister("old")).toBe(false);
  expect(registry.unregister("new-name")).toBe(true);
  expect(registry.unregister("new-name")).toBe(false);
  expect([registry.get("old"), registry.metadataFor("old").found]).toEqual([undefined, false]);
  registry.register(tool("old"));
  expect(registry.get("old")?.name).toBe("old");
});

test("count, names, all and filter describe the content, in a stable order [S2-65 S2-66]", () => {
  const [a, b, c] = [tool("a"), tool("b", { aliases: ["bee"] }), tool("c")];
  const forwards = registryOf(a, b, c);
  const backwards = registryOf(c, b, a);
  for (const registry of [forwards, backwards]) {
    expect(registry.count()).toBe(3);
    expect(registry.names()).toEqual(["a", "b", "c"]);
    expect(registry.all()).toEqual([a, b, c]);
    expect(registry.filter(["c", "nobody", "a"])).toEqual([c, a]);
    expect(registry.filter(["b", "bee", "b"])).toEqual([b]);
    expect(registry.filter([])).toEqual([]);
  }
});

test("registering a tool passes its class to listeners that know no tool by name [S2-41 S2-43]", () => {
  const classes = new Map<string, PermissionClass>();
  const learn = ({ type, name, metadata }: RegistryChange) => {
    const names = [name, ...metadata.aliases];
    for (const one of names) {
      if (type === "registered") classes.set(one, metadata.permissionClass);
      else classes.delete(one);
    }
  };
  const registry = registryOf(tool("early", { permissionClass: "webfetch" }));
  const stop = registry.listen(learn);
  registry.register(tool("late", { permissionClass: "bash", aliases: ["old-late"] }));
  registry.register(tool("undeclared"));
  expect(Object.fromEntries(classes)).toEqual({
    early: "webfetch",
    late: "bash",
    "old-late": "bash",
    undeclared: "",
  });
  registry.unregister("late");
  expect([...classes.keys()]).toEqual(["early", "undeclared"]);
  stop();
  registry.register(tool("unheard"));
  expect(classes.has("unheard")).toBe(false);
});

test("a tool that a listener rejects is not registered, and the other listeners see it removed [S2-43]", () => {
  const heard: string[] = [];
  const registry = createRegistry();
  registry.listen(({ type, name }) => heard.push(`${type} ${name}`));
  registry.listen(() => {
    throw new Error("full");
  });
  expect(refusal(() => registry.register(tool("a")))).toContain("A listener rejected the tool");
  expect([registry.count(), registry.get("a")]).toEqual([0, undefined]);
  expect(heard).toEqual(["registered a", "unregistered a"]);
});

test("a listener receives a tool's facts but not the tool [S2-61]", () => {
  const changes: RegistryChange[] = [];
  const registry = createRegistry();
  registry.listen((change) => changes.push(change));
  registry.register(tool("a"));
  expect(changes).toEqual([{ type: "registered", name: "a", metadata: NO_METADATA }]);
});
