import { afterEach, expect, test } from "vitest";
import { createDeferredRegistry, registerDeferredTool } from "./deferred-registry.ts";
import { defineTool } from "./define-tool.ts";
import { createRegistry, type Registry } from "./registry.ts";
import type { Tool } from "./tool.ts";

function tool(name: string, description = "d", searchHint = ""): Tool {
  return defineTool({
    name,
    description,
    searchHint,
    input: { type: "object" },
    execute: () => name,
  });
}

/** A registry with the given tools and this many others. */
function registryOf(others: number, ...tools: readonly Tool[]): Registry {
  const registry = createRegistry();
  for (const one of tools) registry.register(one);
  for (let at = 0; at < others; at += 1) registry.register(tool(`other.n${100 + at}`));
  return registry;
}

const names = (tools: readonly Tool[]) => tools.map(({ name }) => name);
const undoGlobal: (() => void)[] = [];
afterEach(() => {
  for (const undo of undoGlobal.splice(0)) undo();
});

test.each([
  [undefined, 15],
  [0, 15],
  [-3, 15],
  [1, 1],
  [40, 40],
])(
  "a threshold of %s means %i, and threshold and registry can be read back [S2-67 S2-77]",
  (given, expected) => {
    const registry = createRegistry();
    const deferred = createDeferredRegistry(registry, given);
    expect(deferred.threshold).toBe(expected);
    expect(deferred.registry).toBe(registry);
  },
);

test("while the number does not exceed the threshold, all tools are active [S2-68]", () => {
  const registry = registryOf(15);
  const deferred = createDeferredRegistry(registry);
  expect(deferred.active()).toEqual(registry.all());
  registry.register(tool("sixteenth"));
  expect(deferred.active()).toEqual([]);
  registry.unregister("sixteenth");
  expect(deferred.active()).toHaveLength(15);
});

test("above it only the always loaded and the activated ones are [S2-69]", () => {
  const deferred = createDeferredRegistry(registryOf(5, tool("a"), tool("b"), tool("c")), 3);
  deferred.withAlwaysLoad("a");
  deferred.activate("c");
  expect(names(deferred.active())).toEqual(["a", "c"]);
});

test("an activated tool appears from then on; a reset takes all activations away [S2-70]", () => {
  const deferred = createDeferredRegistry(registryOf(5, tool("a"), tool("b")), 3);
  expect(deferred.active()).toEqual([]);
  expect(deferred.activate("b")).toBe(true);
  expect(names(deferred.active())).toEqual(["b"]);
  expect(deferred.activate("a")).toBe(true);
  expect(names(deferred.active())).toEqual(["a", "b"]);
  deferred.reset();
  expect(deferred.active()).toEqual([]);
});

test("activating an unknown tool has no effect, also when a tool of that name is registered later or again [S2-70]", () => {
  const registry = registryOf(5, tool("again"));
  const deferred = createDeferredRegistry(registry, 3);
  expect(deferred.activate("later")).toBe(false);
  deferred.activate("again");
  registry.register(tool("later"));
  registry.unregister("again");
  registry.register(tool("again", "another tool"));
  expect(deferred.active()).toEqual([]);
});

test("isDeferred is true for a tool that exists and is not active, false for unknown and activated ones [S2-71]", () => {
  const deferred = createDeferredRegistry(registryOf(5, tool("a")), 3);
  expect([deferred.isDeferred("a"), deferred.isDeferred("nobody")]).toEqual([true, false]);
  deferred.activate("a");
  expect(deferred.isDeferred("a")).toBe(false);
});

test("isDeferred never contradicts the active list [S2-72]", () => {
  undoGlobal.push(registerDeferredTool("global"));
  const registry = registryOf(0, tool("a"), tool("b"), tool("own"), tool("global"));
  const deferred = createDeferredRegistry(registry, 5).withAlwaysLoad("own");
  const agree = () => {
    const active = new Set(deferred.active());
    for (const one of registry.all()) expect(deferred.isDeferred(one.name)).toBe(!active.has(one));
    return names([...active]);
  };
  expect(agree()).toEqual(["a", "b", "global", "own"]);
  registry.register(tool("c"));
  registry.register(tool("d"));
  expect(agree()).toEqual(["global", "own"]);
  deferred.activate("b");
  expect(agree()).toEqual(["b", "global", "own"]);
  registry.unregister("c");
  expect(agree()).toHaveLength(5);
});

const pay = tool("billing.refund", "Pays an Invoice back", "money");
const mail = tool("mail.send", "Writes a letter", "post correspondence");

test("search looks at name, description and hint, whatever the case [S2-40 S2-73 S2-74]", () => {
  const deferred = createDeferredRegistry(registryOf(5, pay, mail), 3);
  for (const query of [
    "REFUND",
    "billing.re",
    "invoice",
    "Money",
    "pays BACK",
    "  refund\tmoney ",
  ]) {
    expect(names(deferred.search(query)), query).toEqual(["billing.refund"]);
  }
  expect(deferred.search("invoice letter")).toEqual([]);
  expect(deferred.search("nothing like it")).toEqual([]);
});

test("search returns only tools that are still deferred [S2-73]", () => {
  const deferred = createDeferredRegistry(registryOf(5, pay, mail), 3);
  deferred.activate("mail.send");
  expect(deferred.search("letter")).toEqual([]);
  expect(
    createDeferredRegistry(registryOf(5, pay), 3).withAlwaysLoad("billing.refund").search("refund"),
  ).toEqual([]);
  expect(createDeferredRegistry(registryOf(0, pay), 3).search("refund")).toEqual([]);
});

test.each(["", "   ", "\n\t"])("the empty query %j finds nothing [S2-74]", (query) => {
  expect(createDeferredRegistry(registryOf(5, pay), 3).search(query)).toEqual([]);
});

test("descriptions are searched as they are in this context, and one that throws hides no other [S2-06 S2-73]", () => {
  const here = { ...tool("a.here"), description: () => "in the house" };
  const there = {
    ...tool("a.there"),
    description: ({ workingDirectory }: { workingDirectory: string }) => workingDirectory,
  };
  const broken: Tool = {
    ...tool("a.broken"),
    description: () => {
      throw new Error("boom");
    },
  };
  const deferred = createDeferredRegistry(registryOf(5, here, there, broken), 3);
  expect(names(deferred.search("house"))).toEqual(["a.here"]);
  expect(names(deferred.search("house", { workingDirectory: "/house" }))).toEqual([
    "a.here",
    "a.there",
  ]);
  expect(names(deferred.search("broken"))).toEqual(["a.broken"]);
});

test("search puts an exact name first, then tools with a dry run [S2-11 S2-73]", () => {
  const dryRun = async () => ({ summary: "", preview: "", impact: {} });
  const safe: Tool = { ...tool("b.safe", "moves a file"), dryRun };
  const registry = registryOf(
    5,
    tool("a.plain", "moves a file"),
    safe,
    tool("c.move", "shifts a file"),
  );
  const deferred = createDeferredRegistry(registry, 3);
  expect(names(deferred.search("move"))).toEqual(["c.move", "b.safe", "a.plain"]);
});

test("registerDeferredTool adds to the global always-load list, so that tool is not deferred [S2-75]", () => {
  const first = createDeferredRegistry(registryOf(5, tool("a")), 3);
  expect(first.isDeferred("a")).toBe(true);
  undoGlobal.push(registerDeferredTool("a"));
  const second = createDeferredRegistry(registryOf(5, tool("a")), 3);
  for (const deferred of [first, second]) {
    expect(names(deferred.active())).toEqual(["a"]);
    expect(deferred.isDeferred("a")).toBe(false);
    deferred.reset();
    expect(names(deferred.active())).toEqual(["a"]);
  }
});

test("withAlwaysLoad is for one instance only and returns it [S2-76]", () => {
  const registry = registryOf(5, tool("a"), tool("b"));
  const [first, second] = [
    createDeferredRegistry(registry, 3),
    createDeferredRegistry(registry, 3),
  ];
  expect(first.withAlwaysLoad("a").withAlwaysLoad("b", "nobody")).toBe(first);
  expect(names(first.active())).toEqual(["a", "b"]);
  expect(second.active()).toEqual([]);
  expect(createDeferredRegistry(registry, 3).active()).toEqual([]);
  first.reset();
  expect(names(first.active())).toEqual(["a", "b"]);
});

test("a tool that only rollbacks call is neither active nor found", () => {
  const restore = defineTool({
    name: "orders.restore",
    description: "Restores an order.",
    input: { type: "object" },
    undoOnly: true,
    execute: () => "restored",
  });
  const few = createDeferredRegistry(registryOf(1, restore, tool("orders.ship")));
  expect(names(few.active())).toEqual(["orders.ship", "other.n100"]);
  const many = createDeferredRegistry(registryOf(30, restore, tool("orders.ship")));
  expect(names(many.search("orders"))).toEqual(["orders.ship"]);
});
