// Not one byte of a call that a person has to decide about reaches the server before the yes, counted over many calls.

import { expect, test } from "vitest";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { mcpWorld } from "./world.ts";

const ROUNDS = scaled({ test: 1, proof: 10, full: 40 });
const CALLS = 20;

test("mcp: of many calls that wait no byte reaches the server, then each approved one reaches it once and each rejected one never", async () => {
  const { client, gate, wire, ledger, calls } = await mcpWorld();
  await client.request("tools/list");
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = wire().length;
    for (let n = 0; n < CALLS; n += 1) await client.call("append", { line: `${round}-${n}` });
    bytes += Buffer.byteLength(wire().slice(before).join(""));
    const open = await gate.interactions.list();
    expect(open).toHaveLength(CALLS);
    for (const [index, { id, hash }] of open.entries()) {
      if (index % 2 === 0) await gate.interactions.approve(id, { hash, by: "ada" });
      else await gate.interactions.reject(id, { hash, by: "ada", reason: "not now" });
    }
    await expect.poll(() => ledger().length).toBe(((round + 1) * CALLS) / 2);
  }
  const figures = { calls: ROUNDS * CALLS, "bytes upstream before approval": bytes };
  record({ goal: "MCP-wire", what: "calls that wait", figures });
  expect(bytes).toBe(0);
  expect(new Set(ledger()).size).toBe(ledger().length);
  expect(calls()).toHaveLength(ledger().length);
}, 120_000);
