// Lost answers: an upstream that really dies in the middle of a call, and what the operator has declared about that.

import { writeFileSync } from "node:fs";
import { readMcpConfig } from "sallyport/mcp";
import { expect, test } from "vitest";
import { handshake, type McpWorld, mcpWorld, TINY } from "./world.ts";

const TEXT = { type: "string" };
const schema = (properties: object) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const DEFINITIONS = [
  { name: "once", description: "Pays.", inputSchema: schema({ line: TEXT, key: TEXT }) },
  { name: "die", description: "Dies late.", inputSchema: schema({ line: TEXT }) },
  { name: "late", description: "Dies early.", inputSchema: schema({ line: TEXT }) },
  { name: "entries", description: "Lists.", inputSchema: { type: "object" } },
  { name: "get", description: "Reads.", inputSchema: schema({ key: TEXT }) },
  { name: "put", description: "Sets.", inputSchema: schema({ key: TEXT, value: TEXT }) },
];

const READ = { effect: "read" };
const IN_LEDGER = {
  tool: "entries",
  input: {},
  happened: { at: "{output}", has: "{input.line}" },
};

async function lostWorld(tools: object, definitions: readonly object[] = DEFINITIONS, holdMs = 0) {
  const world = await mcpWorld({
    config: { holdMs },
    handshake: "none",
    upstreams: ({ env }) => [
      {
        name: "tiny",
        command: process.execPath,
        args: [TINY],
        env,
        tools: { entries: READ, get: READ, ...tools },
      },
    ],
  });
  define(world, definitions);
  await handshake(world.client);
  return world;
}

function define({ file }: McpWorld, definitions: readonly object[]): void {
  writeFileSync(file("tools.json"), JSON.stringify(definitions));
}

/** Calls, approves, and calls again until there is an outcome. */
async function approved({ client, gate, decide }: McpWorld, name: string, input: object) {
  expect((await client.call(name, input)).text).toContain("waits for approval");
  await decide("approve");
  await expect
    .poll(async () => (await gate.interactions.list()).map(({ type }) => type))
    .not.toContain("confirm");
  return client.call(name, input);
}

async function questions({ gate }: McpWorld): Promise<readonly string[]> {
  return (await gate.interactions.list()).map(({ type }) => type);
}

test("mcp lost call: a tool with a key is sent again under the same key, which the gateway sets and the client is not offered", async () => {
  const world = await lostWorld({ once: { key: "key" } });
  const { result } = (await world.client.request("tools/list")) as {
    result: { tools: { name: string; inputSchema: object }[] };
  } & object;
  const offered = result.tools.find(({ name }) => name === "once");
  expect(offered?.inputSchema).toMatchObject({ properties: { line: TEXT }, required: ["line"] });
  expect(JSON.stringify(offered)).not.toContain('"key"');
  const answer = await approved(world, "once", { line: "a" });
  expect(answer).toMatchObject({ text: "paid a before", isError: false });
  expect(world.ledger()).toEqual(["a"]);
  expectOneKey(world);
  expect(await questions(world)).toEqual([]);
});

function expectOneKey(world: McpWorld): void {
  const sent = world.calls().map(({ arguments: input }) => input as { key: string });
  expect(sent).toHaveLength(2);
  expect(sent[0]?.key).toMatch(/^default\/./);
  expect(sent[1]).toEqual(sent[0]);
}

test("mcp lost call: an error in answer to a call that was sent again does not say that it failed: a person is asked", async () => {
  const world = await lostWorld({ once: { key: "key" } });
  const answer = await approved(world, "once", { line: "strict" });
  expect(answer.text).toMatch(/unknown|not known/);
  expect(world.ledger()).toEqual(["strict"]);
  expect(await questions(world)).toEqual(["connection_lost"]);
});

test("mcp lost call: a call that its client still waits for has the key too, in the client's own message", async () => {
  const world = await lostWorld({ once: { key: "key" } }, DEFINITIONS, 60_000);
  const answer = world.client.call("once", { line: "a" });
  await expect.poll(() => questions(world)).toEqual(["confirm"]);
  await world.decide("approve");
  expect(await answer).toMatchObject({ text: "paid a before", isError: false });
  expectOneKey(world);
});

test("mcp lost call: a call that brings a key of its own never reaches the upstream", async () => {
  const open = DEFINITIONS.map((one) =>
    one.name === "once"
      ? { ...one, inputSchema: { ...one.inputSchema, additionalProperties: true } }
      : one,
  );
  const world = await lostWorld({ once: { key: "key" } }, open);
  const asked = await world.client.call("once", { line: "a", key: "of another call" });
  expect(asked.isError).toBe(true);
  await world.decide("approve");
  const answer = await world.client.call("once", { line: "a", key: "of another call" });
  expect(answer.text).toContain("set by the gateway");
  expect(world.calls()).toEqual([]);
});

test("mcp lost call: a probe that finds the call settles it, and it is not sent again", async () => {
  const world = await lostWorld({ die: { probe: { ...IN_LEDGER, otherwise: "repeat" } } });
  const answer = await approved(world, "die", { line: "a" });
  expect(answer).toMatchObject({ isError: false });
  expect(answer.text).toContain("entries shows that it happened");
  expect(world.ledger()).toEqual(["a"]);
  expect(world.calls().map(({ name }) => name)).toEqual(["die", "entries"]);
  expect(await questions(world)).toEqual([]);
});

test("mcp lost call: where the probe does not find the call a person is asked, unless the operator says that it is repeated then", async () => {
  for (const [own, ledger] of [
    [{ probe: IN_LEDGER }, []],
    [{ probe: { ...IN_LEDGER, input: { refuse: true }, otherwise: "repeat" } }, []],
    [
      { probe: { ...IN_LEDGER, input: { broken: true }, otherwise: "repeat", missing: "repeat" } },
      [],
    ],
    [{ probe: { ...IN_LEDGER, otherwise: "repeat" } }, ["a"]],
    [{ probe: { ...IN_LEDGER, input: { refuse: true }, missing: "repeat" } }, ["a"]],
  ] as const) {
    const world = await lostWorld({ late: own });
    const answer = await approved(world, "late", { line: "a" });
    expect(answer.isError, JSON.stringify(own)).toBe(ledger.length === 0);
    expect(world.ledger()).toEqual(ledger);
    expect(await questions(world)).toEqual(ledger.length === 0 ? ["connection_lost"] : []);
  }
});

test("mcp lost call: neither a key nor a probe counts for a definition that has changed", async () => {
  const calls = [
    ["once", { line: "a", key: "k" }, { key: "key" }],
    ["die", { line: "a" }, { probe: IN_LEDGER }],
  ] as const;
  for (const [name, input, own] of calls) {
    const world = await lostWorld({ [name]: own });
    await world.client.request("tools/list");
    define(
      world,
      DEFINITIONS.map((one) => ({ ...one, description: "Changed." })),
    );
    await world.client.request("tools/list");
    await approved(world, name, input);
    expect(await questions(world), name).toEqual(["connection_lost"]);
    expect(world.ledger()).toEqual(["a"]);
  }
});

test("mcp lost call: the undo of a call that was sent again restores what was there before the first time", async () => {
  const undo = {
    snapshot: { tool: "get", input: { key: "target" } },
    tool: "put",
    input: { key: "target", value: "{before}" },
  };
  const world = await lostWorld({ once: { key: "key", undo } });
  const { gate, client, file, decide } = world;
  writeFileSync(file("state.json"), JSON.stringify({ target: "zero" }));
  expect((await approved(world, "once", { line: "one" })).isError).toBe(false);
  const [decision] = await gate.decisions.list({ limit: 1 });
  const operator = gate.sessions.open({ id: decision?.sessionId ?? "", agent: "operator" });
  await operator.rollback("person:ada");
  await decide("approve");
  await expect.poll(async () => (await client.call("get", { key: "target" })).text).toBe("zero");
});

test("mcp lost call: a key or probe that cannot work is refused with its field, and a key that the schema lacks hides the tool", async () => {
  const config = (tools: object) => ({
    upstreams: [{ name: "tiny", command: "node", tools }],
  });
  expect(() =>
    readMcpConfig(
      config({ die: { probe: { tool: "x", input: {}, happened: { at: "{output}" } } } }),
    ),
  ).toThrow("needs either `is` or `has`");
  for (const [tools, field] of [
    [{ get: { effect: "read", key: "key" } }, "tools.get.key"],
    [{ die: { probe: { ...IN_LEDGER, tool: "put" } } }, "tools.die.probe.tool"],
  ] as const) {
    await expect(lostWorld(tools), field).rejects.toThrow(field);
  }
  const { client, problems } = await lostWorld({ die: { key: "token" } });
  const listed = await client.request("tools/list");
  expect(JSON.stringify(listed)).not.toContain('"die"');
  expect(problems.join()).toContain('no argument "token"');
});
