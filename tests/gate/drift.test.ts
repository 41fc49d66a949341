import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import type { Tool } from "../../src/tools/tool.ts";
import {
  AGENT,
  approve,
  createWorld,
  decisionIdOf,
  type GateWorld,
  isApproval,
  isIntent,
  openGate,
  PERSON,
  request,
} from "../support/port-world.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";

const ROUNDS = scaled({ test: 60, proof: 60, full: 1_000 });

type Step = () => void | Promise<void>;

/** Stages one call and has it approved, with something done at one moment of the way. */
async function walk(
  { gate, tap }: Pick<GateWorld, "gate" | "tap">,
  tool: string,
  key: string,
  at: { readonly shown?: Step; readonly approved?: Step; readonly intent?: Step },
) {
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const id = decisionIdOf(await session.call(request(tool, { key, value: 1 })));
  tap.isApart = at.approved !== undefined;
  await at.shown?.();
  tap.after = async (change) => {
    if (isApproval(change)) await at.approved?.();
  };
  tap.before = async (change) => {
    if (isIntent(change)) await at.intent?.();
  };
  try {
    return { id, answers: await approve(gate, id) };
  } finally {
    tap.after = () => {};
    tap.before = () => {};
  }
}

/** Where the world changes, and whether what was shown is still true when it is executed. */
const ORDERS = {
  "change, preview, approve, execute": "fresh",
  "preview, change, approve, execute": "stale",
  "preview, approve, change, execute": "stale",
  "preview, approve, execute, change": "fresh",
  "preview, change, change back, approve, execute": "fresh",
  "preview, change, approve, change back, execute": "fresh",
} as const;

for (const [order, truth] of Object.entries(ORDERS)) {
  test(`${order}: ${truth === "stale" ? "never executed" : "never refused"} [T4]`, async () => {
    const world = openGate();
    const { values, effects } = world;
    const moments = order.split(", ");
    const place = (what: string) => moments.indexOf(what);
    let [stale, refused] = [0, 0];
    for (let i = 0; i < ROUNDS; i += 1) {
      const key = `k${i}`;
      values.set(key, "old");
      const change = () => void values.set(key, `new ${i}`);
      const back = () => void values.set(key, "old");
      /** Everything that the order puts between two of its steps. */
      const between = (from: string, to: string) => () => {
        for (const what of moments.slice(place(from) + 1, place(to))) {
          if (what === "change") change();
          if (what === "change back") back();
        }
      };
      if (place("change") < place("preview")) change();
      const steps = {
        shown: between("preview", "approve"),
        approved: between("approve", "execute"),
      };
      const before = effects.length;
      const { id, answers } = await walk(world, "world.set", key, steps);
      const done = truth === "fresh";
      const happened = effects.length - before;
      if (!done && happened > 0) stale += 1;
      if (done && happened !== 1) refused += 1;
      expect(answers[0]?.answer).toBe(done ? "done" : "pending");
      const { state } = await world.gate.decisions.get(id);
      expect(state).toBe(done ? "executed" : "failed");
      if (place("change") > place("execute")) change();
    }
    const figures = { rounds: ROUNDS, "stale executions": stale, "false refusals": refused };
    record({ goal: "T4", what: "changes of the world in six orders", figures });
    expect(stale + refused).toBe(0);
  });
}

test("the world that changes while the intent is being written is not touched [T4]", async () => {
  const world = openGate();
  world.values.set("a", "old");
  const intent = () => void world.values.set("a", "new");
  await walk(world, "world.set", "a", { intent }).catch(() => {});
  expect(world.effects).toEqual([]);
});

test("the target of a later call that changes while an earlier one runs is not touched [T4]", async () => {
  const { gate, tap, values, effects } = openGate();
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const set = (key: string) => request("world.set", { key, value: 1 });
  const id = decisionIdOf(await session.stage([set("a"), set("b")]));
  let intents = 0;
  tap.after = (change) => {
    if (!isIntent(change)) return;
    intents += 1;
    if (intents === 1) values.set("b", "somebody else's");
  };
  await approve(gate, id);
  expect(effects.filter((one) => one.includes('"b"'))).toEqual([]);
  expect(values.get("b")).toBe("somebody else's");
});

test("what was shown in a working directory is executed in that one, and not refused [T4 I2]", async () => {
  const places: string[] = [];
  const sheet = {
    description: "Works where it stands.",
    input: { type: "object", additionalProperties: true },
    safety: { effect: "write" },
  } as const;
  const blind = defineTool({
    ...sheet,
    name: "place.blind",
    execute: ({ workingDirectory }) => void places.push(workingDirectory),
  });
  const seeing = defineTool({
    ...sheet,
    name: "place.seeing",
    dryRun: ({ workingDirectory }) => `would write in ${workingDirectory}`,
    execute: ({ workingDirectory }) => void places.push(workingDirectory),
  });
  const { gate } = openGate({ tools: [blind, seeing] });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: "/work/a" });
  for (const { name } of [blind, seeing]) {
    const [answer] = await approve(gate, decisionIdOf(await session.call(request(name, {}))));
    expect(answer, name).toMatchObject({ answer: "done" });
  }
  expect(places).toEqual(["/work/a", "/work/a"]);
});

test("stopped, or too late, between the yes and the execution: nothing happens [T5 I4]", async () => {
  for (const way of ["stopped", "expired"] as const) {
    const world = openGate({ approvalMs: 60_000 });
    const approved =
      way === "stopped"
        ? async () => void (await world.gate.killSwitch.stop("wait", { actor: PERSON }))
        : () => world.clock.advance(60_001);
    const { answers } = await walk(world, "world.blind", "a", { approved });
    expect(answers).toMatchObject([{ answer: way === "stopped" ? "pending" : "failed" }]);
    expect(world.effects).toEqual([]);
  }
});

/** Each is the same tool with one thing changed about it. */
const REDEFINED: Readonly<Record<string, (tool: Tool) => Tool>> = {
  description: (tool) => ({ ...tool, description: () => "Sets a value. Really." }),
  "a space in the description": (tool) => ({
    ...tool,
    description: () => `${tool.description({ workingDirectory: "" })} `,
  }),
  "schema: a field more": (tool) => ({
    ...tool,
    inputSchema: { ...tool.inputSchema, properties: { key: {}, value: {}, force: {} } },
  }),
  "schema: nothing required": (tool) => ({ ...tool, inputSchema: { type: "object" } }),
  "safety: effect": (tool) => ({ ...tool, metadata: { ...tool.metadata, effect: "read" } }),
  "safety: destructive": (tool) => ({ ...tool, metadata: { ...tool.metadata, destructive: true } }),
  "safety: read-only": (tool) => ({ ...tool, metadata: { ...tool.metadata, readOnly: true } }),
  "safety: parallel": (tool) => ({
    ...tool,
    metadata: { ...tool.metadata, concurrencySafe: true },
  }),
  "permission class": (tool) => ({
    ...tool,
    metadata: { ...tool.metadata, permissionClass: "readonly" },
  }),
  "audit operation": (tool) => ({ ...tool, metadata: { ...tool.metadata, auditOperation: "x" } }),
  "search hint": (tool) => ({ ...tool, metadata: { ...tool.metadata, searchHint: "x" } }),
  alias: (tool) => ({ ...tool, metadata: { ...tool.metadata, aliases: ["world.other"] } }),
  confidence: (tool) => ({ ...tool, capability: { ...tool.capability, confidenceMin: 1 } }),
  checkpoint: (tool) => ({ ...tool, capability: { ...tool.capability, checkpoint: true } }),
  "reverse thinking": (tool) => ({
    ...tool,
    capability: { ...tool.capability, reverseThinking: true },
  }),
  affects: (tool) => ({ ...tool, capability: { ...tool.capability, affects: ["money"] } }),
  version: (tool) => ({ ...tool, version: "2" }),
  idempotency: (tool) => ({ ...tool, idempotency: "keyed" }),
  "a probe": (tool) => ({ ...tool, probe: async () => ({ happened: false }) }),
  resources: (tool) => ({ ...tool, resources: () => [] }),
  "another tool under its name": (tool) => ({
    ...tool,
    name: "world.other",
    metadata: { ...tool.metadata, aliases: [tool.name] },
  }),
};

const REPEATS = 7;

test("a tool that changed in any way since it was shown is not executed [T5 T10 I4]", async () => {
  const executed: string[] = [];
  let mutations = 0;
  let controls = 0;
  for (const [what, redefine] of [...Object.entries(REDEFINED), ["nothing", undefined] as const]) {
    for (const name of ["set", "blind"] as const) {
      for (const moment of ["shown", "approved"] as const) {
        for (let round = 0; round < REPEATS; round += 1) {
          const { tools, effects } = createWorld();
          const registry = createRegistry();
          registry.register(tools[name]);
          const change = () => {
            if (redefine === undefined) return;
            registry.unregister(tools[name].name);
            registry.register(redefine(tools[name]));
          };
          const world = openGate({ tools: registry });
          await walk(world, tools[name].name, "a", { [moment]: change }).catch(() => {});
          if (redefine === undefined) controls += effects.length;
          else {
            mutations += 1;
            if (effects.length > 0) executed.push(`${what} of ${name}, when ${moment}`);
          }
        }
      }
    }
  }
  expect(executed).toEqual([]);
  expect(mutations).toBeGreaterThanOrEqual(500);
  expect(controls).toBe(4 * REPEATS);
});

test("a tool that is gone since it was shown is said to be gone, and nothing happens [T5 T10]", async () => {
  for (const moment of ["shown", "approved"] as const) {
    const { tools, effects } = createWorld();
    const registry = createRegistry();
    registry.register(tools.set);
    const gone = () => void registry.unregister("world.set");
    const { answers } = await walk(openGate({ tools: registry }), "world.set", "a", {
      [moment]: gone,
    });
    expect(answers).toMatchObject([{ answer: "pending" }]);
    expect(answers[0]?.text).toContain('does not have "world.set"');
    expect(effects).toEqual([]);
  }
});

test("a tool that tells another definition each time it is asked is never executed [T10]", async () => {
  let asked = 0;
  const runs: string[] = [];
  const shifty = defineTool({
    name: "shifty.read",
    description: () => {
      asked += 1;
      return `Reads. ${asked}`;
    },
    input: { type: "object" },
    safety: { effect: "read" },
    permissionClass: "readonly",
    execute: ({ callId }) => void runs.push(callId),
  });
  const { gate } = openGate({ tools: [shifty] });
  const answer = await gate.sessions.open({ agent: AGENT }).call(request("shifty.read", {}));
  expect(answer.answer).toBe("failed");
  expect(answer.text).toContain("changed");
  expect(runs).toEqual([]);
});

test("a bundle of nothing leaves no decision that nobody can close [I14]", async () => {
  const { gate } = openGate();
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  const answer = await session.stage([]).catch(() => undefined);
  if (answer?.answer === "pending") await approve(gate, answer.decisionId);
  const states = (await gate.decisions.listBySession("s-1")).map(({ state }) => state);
  expect(states.filter((state) => state === "approved" || state === "pending_ml")).toEqual([]);
});
