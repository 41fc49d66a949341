import { expect, test } from "vitest";
import {
  createDeferredRegistry,
  createToolSearch,
  deferredCallProblem,
} from "./deferred-registry.ts";
import { defineTool, sampleCall } from "./define-tool.ts";
import { createRegistry, TOOL_SEARCH } from "./registry.ts";
import { capabilityOf, metadataOf } from "./tool.ts";

/** 30 deferred tools, one of which pays back. */
function setUp() {
  const registry = createRegistry();
  const sheet = { input: { type: "object" }, execute: () => "" };
  for (let at = 10; at < 39; at += 1) {
    registry.register(defineTool({ ...sheet, name: `report.n${at}`, description: `Report ${at}` }));
  }
  const safety = { effect: "external", confidenceMin: 80, checkpoint: true } as const;
  const description = "Pays an invoice back.\nSecond line.";
  registry.register(
    defineTool({
      ...sheet,
      name: "billing.refund",
      description,
      safety,
      permissionClass: "generic",
    }),
  );
  const deferred = createDeferredRegistry(registry);
  const search = createToolSearch(() => deferred);
  registry.register(search);
  const find = (query: string) => search.execute(sampleCall({ query }));
  return { registry, deferred, search, find };
}

test("the search is read-only and concurrency-safe, and is always loaded itself [I-50]", () => {
  const { search, deferred } = setUp();
  expect(metadataOf(search)).toMatchObject({
    readOnly: true,
    concurrencySafe: true,
    permissionClass: "readonly",
  });
  expect(deferred.active()).toEqual([search]);
  expect(deferred.isDeferred(TOOL_SEARCH)).toBe(false);
});

test("it finds deferred tools and activates them with all their declarations [I-50]", async () => {
  const { deferred, find, registry } = setUp();
  expect(await find("refund invoice")).toEqual({
    text: "These tools are loaded now and can be called:\n- billing.refund: Pays an invoice back. Second line.",
    data: { loaded: ["billing.refund"] },
  });
  const refund = deferred.active().find(({ name }) => name === "billing.refund")!;
  expect(refund).toBe(registry.get("billing.refund"));
  expect(capabilityOf(refund)).toMatchObject({ confidenceMin: 80, checkpoint: true });
});

test("a repeated search does not activate a tool twice [I-50]", async () => {
  const { find } = setUp();
  await find("refund");
  expect((await find("refund")).text).toMatch(/^No further tool fits/);
});

test("it loads at most ten and reports how many more match [I-50]", async () => {
  const { deferred, find } = setUp();
  const { text } = await find("report");
  expect(text).toContain("19 more fit");
  expect(deferred.active()).toHaveLength(11);
});

test("with no deferred registry it finds nothing [I-50]", async () => {
  const search = createToolSearch(() => undefined);
  expect(await search.execute(sampleCall({ query: "refund" }))).toMatchObject({
    data: { loaded: [] },
  });
});

test("each session has its own [I-50]", async () => {
  const { registry } = setUp();
  const sessions = { a: createDeferredRegistry(registry), b: createDeferredRegistry(registry) };
  const search = createToolSearch(({ sessionId }) => sessions[sessionId as "a" | "b"]);
  await search.execute(sampleCall({ query: "refund" }, { sessionId: "a" }));
  expect([
    sessions.a.isDeferred("billing.refund"),
    sessions.b.isDeferred("billing.refund"),
  ]).toEqual([false, true]);
});

test("an empty query is refused by the schema [S2-74 I-50]", async () => {
  const { deferred, find } = setUp();
  expect((await find("")).isError).toBe(true);
  await find("   ");
  expect(deferred.active()).toHaveLength(1);
});

test("calling a deferred tool gives an error that says to search first [I-51]", () => {
  const { deferred } = setUp();
  const problem = deferredCallProblem(deferred, "billing.refund");
  expect(problem).toBe(
    '"billing.refund" was not called: it exists but is not loaded, so you have not seen its input schema. ' +
      'Call "tool_search" with a few words for what you want to do, then call it again.',
  );
  expect(deferred.isDeferred("billing.refund")).toBe(true);
});

test("the host may activate on call; active and unknown tools are unaffected [I-51]", () => {
  const { deferred } = setUp();
  expect(deferredCallProblem(deferred, "billing.refund", "activate")).toBeUndefined();
  expect(deferred.isDeferred("billing.refund")).toBe(false);
  expect(deferredCallProblem(deferred, "billing.refund")).toBeUndefined();
  expect(deferredCallProblem(deferred, "nobody")).toBeUndefined();
});
