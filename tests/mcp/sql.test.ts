// Arguments that hold SQL: what only reads passes as a tool of its own, everything else waits.

import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import { mcpWorld, TINY } from "./world.ts";

const world = (own: object = {}, gate: Partial<GateOptions> = {}) =>
  mcpWorld({
    gate,
    upstreams: ({ env }) => [
      {
        name: "db",
        command: process.execPath,
        args: [TINY],
        env,
        tools: { append: { sql: ["line"], ...own } },
      },
    ],
  });

const READ = { line: "select name from item" };
const WRITES = ["update item set n = 1", "select 1; drop table item", "select nextval('s')", ""];

test("mcp sql: a statement that only reads passes, everything else waits, and a person decides about it", async () => {
  const { client, gate, ledger, decide } = await world();
  expect(await client.call("append", READ)).toMatchObject({ isError: false });
  expect(ledger()).toEqual([READ.line]);
  for (const line of WRITES) {
    expect((await client.call("append", { line })).text).toContain("waits for approval");
  }
  expect((await client.call("append", {})).text).toContain("waits for approval");
  expect(ledger()).toEqual([READ.line]);
  expect(await gate.interactions.list()).toHaveLength(WRITES.length + 1);
  await decide("reject");
  expect(ledger()).toEqual([READ.line]);
});

test("mcp sql: rules name the reading calls of a tool by a name of their own, and a checkpoint holds for them too", async () => {
  const reason = "Not from here.";
  const rules = [{ id: "r", effect: "deny", tool: "db.append.read", reason }] as const;
  const denied = await world({}, { policy: { version: "1", rules } });
  expect((await denied.client.call("append", READ)).text).toContain(reason);
  expect((await denied.client.call("append", { line: "drop table x" })).text).toContain("waits");
  const asked = await world({ checkpoint: true });
  expect((await asked.client.call("append", READ)).text).toContain("waits for approval");
  expect([...denied.ledger(), ...asked.ledger()]).toEqual([]);
});

test("mcp sql: a reading call that a person changes into a write is not executed as one", async () => {
  const { client, gate, ledger } = await world({ checkpoint: true });
  await client.call("append", READ);
  const [{ id = "", hash = "" } = {}] = await gate.interactions.list();
  const inputs = { 0: { line: "drop table item" } };
  await gate.interactions.edit(id, { hash, by: "ada", inputs });
  const [edited] = await gate.interactions.list();
  expect(edited?.id).not.toBe(id);
  await gate.interactions.approve(edited?.id ?? "", { hash: edited?.hash ?? "", by: "grace" });
  const told = await client.call("append", READ);
  expect(told).toMatchObject({ isError: true });
  expect(told.text).toContain("does not only read");
  expect(ledger()).toEqual([]);
});

test("mcp sql: after its definition has changed, reading calls wait as well, and no tool may take the name of reading calls", async () => {
  const { client, file, problems, ledger } = await world();
  await client.request("tools/list");
  const listed = [
    { name: "append", description: "Changed.", inputSchema: { type: "object" } },
    { name: "other.read", description: "x", inputSchema: { type: "object" } },
  ];
  writeFileSync(file("tools.json"), JSON.stringify(listed));
  await client.request("tools/list");
  expect((await client.call("append", READ)).text).toContain("waits for approval");
  expect((await client.call("other.read")).raw).toMatchObject({ error: { code: -32602 } });
  expect(problems.join()).toContain("db.other.read is not offered");
  expect(ledger()).toEqual([]);
  expect(readFileSync(file("wire.log"), "utf8")).not.toContain("tools/call");
});
