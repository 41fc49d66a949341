import { expect, test } from "vitest";
import { LEASE_MS, oneWorker } from "../../tests/support/one-worker.ts";
import { SallyportError } from "../model/errors.ts";
import { defineTool } from "../tools/define-tool.ts";
import { definitionHash } from "../tools/registry.ts";
import type { ProbeAnswer, Tool } from "../tools/tool.ts";

/** Production, as far as these tests are concerned: it remembers what reached it, and can lose the answer. */
function world() {
  const effects: string[] = [];
  const faults: ("lose the answer" | "lose the request" | "refuse")[] = [];
  const seen = new Set<string>();
  return {
    effects,
    faults,
    async take(key: string, isKeyed: boolean): Promise<string> {
      const fault = faults.shift();
      if (fault === "lose the request") throw new SallyportError("outcome_unknown");
      if (!(isKeyed && seen.has(key))) effects.push(key);
      seen.add(key);
      if (fault === "lose the answer") throw new SallyportError("outcome_unknown");
      return "R-1";
    },
    has: (key: string) => seen.has(key),
  };
}

type Kind = "plain" | "keyed" | "probed";

function refund(kind: Kind, { take, has, faults }: ReturnType<typeof world>): Tool {
  const probe = async (key: string): Promise<ProbeAnswer> =>
    has(key) ? { happened: true, result: { text: "R-1" } } : { happened: false };
  return defineTool({
    name: "billing.refund",
    description: "Refunds an invoice.",
    input: {
      type: "object",
      properties: { cents: { type: "integer" } },
      required: ["cents"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    idempotency: kind === "keyed" ? "keyed" : "none",
    async execute({ idempotencyKey }) {
      if (faults[0] === "refuse") return { text: "insufficient funds", isError: true };
      return { text: await take(idempotencyKey, kind === "keyed") };
    },
    ...(kind === "probed" ? { probe: ({ idempotencyKey }) => probe(idempotencyKey) } : {}),
  });
}

function setup(kind: Kind) {
  const production = world();
  const tool = refund(kind, production);
  const { order, ...one } = oneWorker(tool);
  return { ...one, production, tool, order: { ...order, input: { cents: 100 } } };
}

test("an order is run as intent, act and outcome, and its second run does nothing [I5 I7]", async () => {
  const { executor, order, production, audit } = setup("plain");
  const first = await executor.run(order);
  expect(first.status).toBe("done");
  expect(production.effects).toEqual(["acme/op-1"]);
  const second = await executor.run(order);
  expect(second).toMatchObject({ status: "refused", reason: "used_up" });
  expect(production.effects).toHaveLength(1);
  const trail = await audit.read({ after: 0, limit: 10 });
  expect(trail.map(({ type }) => type)).toEqual(["operation.started", "operation.succeeded"]);
});

test("the intent is on record before the tool is called [I5]", async () => {
  const { executor, order, operations, production } = setup("plain");
  let seen = "";
  const take = production.take;
  const tool = defineTool({
    name: "billing.refund",
    description: "x",
    input: { type: "object", properties: {}, additionalProperties: true },
    safety: { effect: "external" },
    async execute({ idempotencyKey }) {
      seen = (await operations.get("op-1")).status;
      return take(idempotencyKey, false);
    },
  });
  await executor.run({ ...order, tool, definitionHash: definitionHash(tool) });
  expect(seen).toBe("started");
});

test.each([
  ["plain", "lose the answer", "unknown", 1],
  ["plain", "lose the request", "unknown", 0],
  ["keyed", "lose the answer", "done", 1],
  ["keyed", "lose the request", "done", 1],
  ["probed", "lose the answer", "done", 1],
  ["probed", "lose the request", "done", 1],
] as const)(
  "a %s tool, %s: %s after %i effect(s) [T8 I7]",
  async (kind, fault, status, effects) => {
    const { executor, order, production, operations } = setup(kind);
    production.faults.push(fault);
    const executed = await executor.run(order);
    expect(executed.status).toBe(status);
    expect(production.effects).toHaveLength(effects);
    const stored = await operations.get("op-1");
    expect(stored.status).toBe(status === "done" ? "success" : "unknown");
  },
);

test.each([
  ["plain", "before the effect", "unknown", 0],
  ["plain", "after the effect", "unknown", 1],
  ["keyed", "before the effect", "done", 1],
  ["keyed", "after the effect", "done", 1],
  ["probed", "before the effect", "done", 1],
  ["probed", "after the effect", "done", 1],
] as const)("left by a dead process %s, %s: %s, %i effect(s) [T8 I14]", async (...row) => {
  const [kind, when, status, effects] = row;
  const { executor, order, production, operations, clock } = setup(kind);
  // What a process leaves behind that dies between intent and outcome.
  await operations.start({
    ...order,
    id: "op-1",
    tool: order.tool.name,
    effect: "external",
    input: '{"cents":100}',
    undoOf: "",
    approval: undefined,
    leaseMs: LEASE_MS,
  });
  if (when === "after the effect") await production.take("acme/op-1", kind === "keyed");
  const operation = await operations.get("op-1");
  expect((await executor.resume(order, operation)).status, "the lease still holds").toBe(
    "overtaken",
  );
  clock.advance(LEASE_MS);
  expect((await executor.resume(order, operation)).status).toBe(status);
  expect(production.effects).toHaveLength(effects);
});

test("a tool that says it failed has failed, and its reason is kept", async () => {
  const { executor, order, production, operations } = setup("plain");
  production.faults.push("refuse");
  const executed = await executor.run(order);
  expect(executed).toMatchObject({ status: "failed", result: { text: "insufficient funds" } });
  expect((await operations.get("op-1")).error).toBe("insufficient funds");
});

test("a tool whose definition changed is not called [T5 T10]", async () => {
  const { executor, order, production } = setup("plain");
  const changed = { ...order.tool, version: "2" };
  const executed = await executor.run({ ...order, tool: changed });
  expect(executed).toEqual({ status: "refused", reason: "definition_changed" });
  expect(production.effects).toEqual([]);
});

test("nothing starts once the tenant is stopped [T38 I30]", async () => {
  const { executor, order, production, killSwitch } = setup("plain");
  await killSwitch.stop("wait", { actor: "person:ada" });
  expect(await executor.run(order)).toEqual({ status: "refused", reason: "stopped" });
  expect(production.effects).toEqual([]);
});

test("who lost the lease settles nothing [T34]", async () => {
  const { executor, order, operations, clock, production } = setup("plain");
  const take = production.take;
  const slow = defineTool({
    name: "billing.refund",
    description: "x",
    input: { type: "object", properties: {}, additionalProperties: true },
    safety: { effect: "external" },
    async execute({ idempotencyKey }) {
      // While it works the process sleeps past its lease, and another one takes over.
      clock.advance(LEASE_MS);
      await operations.takeOver("op-1", LEASE_MS, "worker-2");
      return take(idempotencyKey, false);
    },
  });
  const executed = await executor.run({
    ...order,
    tool: slow,
    definitionHash: definitionHash(slow),
  });
  expect(executed.status).toBe("overtaken");
  expect(await operations.get("op-1")).toMatchObject({ status: "started", fence: 2 });
});

test("a caller that gives up leaves the outcome of a write open, and of a read failed [S2-04]", async () => {
  for (const [effect, status] of [
    ["external", "unknown"],
    ["read", "failed"],
  ] as const) {
    const { executor, order } = setup("plain");
    const stop = new AbortController();
    let aborted = false;
    const tool = defineTool({
      name: "slow.tool",
      description: "x",
      input: { type: "object", properties: {}, additionalProperties: true },
      safety: { effect },
      execute: ({ signal }) =>
        new Promise<string>((_, reject) => {
          signal.addEventListener("abort", () => {
            aborted = true;
            reject(signal.reason);
          });
          stop.abort(new Error("no longer wanted"));
        }),
    });
    const executed = await executor.run({
      ...order,
      tool,
      definitionHash: definitionHash(tool),
      signal: stop.signal,
    });
    expect([effect, executed.status, aborted]).toEqual([effect, status, true]);
  }
});
