import path from "node:path";
import { expect, test } from "vitest";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { mcpWorld } from "./world.ts";

const HOSTILE = path.join(import.meta.dirname, "hostile-upstream.mjs");
const MESSAGES = scaled({ test: 500, proof: 10_000, full: 50_000 });

test("mcp: a hostile upstream ends neither the gateway nor its rules: forged answers count for nothing, writes still wait", async () => {
  const SEED = "7";
  const { client, gate, decide, problems } = await mcpWorld({
    upstreams: () => [
      {
        name: "hostile",
        command: process.execPath,
        args: [HOSTILE],
        env: { SEED, MESSAGES: String(MESSAGES) },
        tools: { touch: { effect: "write" } },
      },
    ],
  });
  let left = MESSAGES;
  for (let round = 0; left > 0 && round < MESSAGES; round += 1) {
    const ping = (await client.request("ping")) as unknown as { result: { left?: number } };
    // A forged answer to this very request is the upstream's to give; any other shape would be a message of another request.
    left = ping.result?.left ?? left;
    const input = { line: String(round) };
    if (round % 10 === 0) {
      const told = await client.call("touch", input);
      expect(told.isError || told.raw["error"] !== undefined).toBe(true);
    }
  }
  const listed = await client.request("tools/list");
  const figures = {
    messages: MESSAGES,
    crashes: listed["result"] === undefined ? 1 : 0,
    // Each request was waited for, so what is missing are the messages that never came.
    unanswered: left,
  };
  record({ goal: "MCP-fuzz", what: "odd messages over stdio", figures, seed: SEED });
  expect(figures).toMatchObject({ crashes: 0, unanswered: 0 });
  expect(problems.length).toBeGreaterThan(10);
  const open = await gate.interactions.list();
  expect(open.length).toBeGreaterThan(0);
  await decide("reject");
  const [decision] = await gate.decisions.list({ limit: 1 });
  const done = await gate.operations.listBySession(decision?.sessionId ?? "");
  expect(done).toEqual([]);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("mcp: an upstream that sends one endless line is ended, and the client gets an error instead of waiting", async () => {
  const { client, problems } = await mcpWorld({
    handshake: "none",
    upstreams: () => [
      {
        name: "endless",
        command: process.execPath,
        args: [
          "-e",
          "const x='x'.repeat(1e6);const go=()=>{while(process.stdout.write(x));process.stdout.once('drain',go)};process.stdin.once('data',go)",
        ],
      },
    ],
  });
  expect(await client.request("ping")).toMatchObject({ error: { code: -32603 } });
  expect(problems.join("\n")).toContain("a line is longer than");
});
