// Calls that wait for a person as tasks, for clients that declare the Tasks extension.

import path from "node:path";
import type { Gate } from "sallyport";
import { expect, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { SCALE } from "../support/scale.ts";
import { gatewayOver, MCP_TOOLS, runSuite, total } from "./conformance-run.ts";
import { META, mcpWorld, resultIn, type Wire } from "./world.ts";

const TASKS = "io.modelcontextprotocol/tasks";
const DECLARED = {
  ...META,
  "io.modelcontextprotocol/clientCapabilities": { extensions: { [TASKS]: {} } },
};

const result = (message: Wire) => (message["result"] ?? {}) as Record<string, unknown>;

async function taskWorld() {
  const world = await mcpWorld({ handshake: "none", config: { holdMs: 20_000 } });
  const { client } = world;
  const ask = (method: string, params: object = {}, meta: object = DECLARED) =>
    client.request(method, { ...params, _meta: meta });
  const append = (line: string) =>
    ask("tools/call", { name: "append", arguments: { line } }).then(result);
  return { ...world, ask, append };
}

test("mcp tasks: a call that waits returns a task at once, which ends with the result of the approved call", async () => {
  const { ask, append, decide, ledger, wire } = await taskWorld();
  const discovered = result(await ask("server/discover"));
  expect(discovered).toMatchObject({ capabilities: { extensions: { [TASKS]: {} } } });
  const { taskId, ...created } = await append("x");
  expect(created).toMatchObject({ resultType: "task", status: "working" });
  expect(result(await ask("tasks/get", { taskId }))).toMatchObject({ status: "working" });
  expect(wire().filter((line) => line.includes('"x"'))).toEqual([]);
  await decide("approve");
  const ended = result(await ask("tasks/get", { taskId }));
  expect(ended).toMatchObject({
    status: "completed",
    result: { content: [{ type: "text", text: "appended x" }] },
  });
  expect(ledger()).toEqual(["x"]);
  // Its outcome was delivered, so the same call is a new one.
  expect(await append("x")).toMatchObject({ resultType: "task", status: "working" });
  expect(ledger()).toEqual(["x"]);
});

test("mcp tasks: a rejected call ends as a result that says so, a cancelled one never runs", async () => {
  const { ask, append, decide, ledger, gate } = await taskWorld();
  const { taskId: rejected } = await append("x");
  await decide("reject");
  const told = result(await ask("tasks/get", { taskId: rejected }));
  expect(told).toMatchObject({ status: "completed", result: { isError: true } });
  expect(JSON.stringify(told)).toContain("not now");
  const { taskId } = await append("y");
  expect(result(await ask("tasks/cancel", { taskId }))).toEqual({ resultType: "complete" });
  expect(await gate.interactions.list()).toEqual([]);
  expect(result(await ask("tasks/get", { taskId }))).toMatchObject({ status: "cancelled" });
  expect(ledger()).toEqual([]);
});

test("mcp tasks: what a reviewer asks back is input that the task requires, and the reply reaches the reviewer", async () => {
  const { ask, append, decide, ledger, gate } = await taskWorld();
  const { taskId } = await append("x");
  const [open] = await gate.interactions.list();
  await gate.interactions.askBack(open?.id ?? "", { by: "ada", text: "Which one?" });
  const { status, inputRequests } = result(await ask("tasks/get", { taskId }));
  expect(status).toBe("input_required");
  const [[key = "", request] = []] = Object.entries(inputRequests as Record<string, unknown>);
  expect(request).toMatchObject({
    method: "elicitation/create",
    params: { message: "Which one?" },
  });
  const inputResponses = { [key]: { action: "accept", content: { reply: "The last one." } } };
  await ask("tasks/update", { taskId, inputResponses });
  expect((await gate.interactions.get(open?.id ?? "")).remarks.at(-1)?.text).toBe("The last one.");
  expect(result(await ask("tasks/get", { taskId }))).toMatchObject({ status: "working" });
  await decide("approve");
  expect(ledger()).toEqual(["x"]);
});

test("mcp tasks: a client that does not declare them gets none, and a task of another session is unknown", async () => {
  const { ask, append, connect, client, ledger } = await taskWorld();
  const { taskId } = await append("x");
  const undeclared = await ask("tasks/get", { taskId }, META);
  expect(undeclared).toMatchObject({ error: { code: -32021 } });
  const other = connect();
  const stolen = await other.request("tasks/get", { taskId, _meta: DECLARED });
  expect(stolen).toMatchObject({ error: { code: -32602 } });
  const started = client.start("tools/call", {
    name: "append",
    arguments: { line: "y" },
    _meta: META,
  });
  client.send({
    jsonrpc: "2.0",
    method: "notifications/cancelled",
    params: { requestId: started },
  });
  expect(result(await ask("tasks/get", { taskId }))).toMatchObject({ status: "working" });
  expect(ledger()).toEqual([]);
  expect(resultIn(undeclared).text).toBe("");
});

if (SCALE !== "test") await install(MCP_TOOLS, "MCP servers (once, ~60 s)", process.env);
// skip: the conformance suite is installed for the proof
const atScale = test.skipIf(SCALE === "test");

/** Scenarios that our own answers pass in full. */
const PASSED = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
];

atScale(
  "mcp tasks: the conformance suite passes the gateway's own tasks",
  async () => {
    const upstream = {
      command: process.execPath,
      args: [path.join(import.meta.dirname, "tasks-upstream.mjs")],
      tools: { greet: { effect: "read" } },
    };
    const target = await gatewayOver("tasks", upstream, { holdMs: 10_000 });
    const stop = decideSoon(target.gate);
    try {
      const scores = await runSuite(target.url, "2026-07-28");
      const tasks = new Map([...scores].filter(([name]) => name.startsWith("tasks-")));
      for (const name of PASSED) expect([name, tasks.get(name)?.[1]]).toEqual([name, 0]);
      expect(total(tasks)[0]).toBeGreaterThanOrEqual(30);
    } finally {
      stop();
      await target.close();
    }
  },
  300_000,
);

/** A reviewer who approves after a while, and first asks back about deletions. */
function decideSoon(gate: Gate): () => void {
  const seen = new Map<string, number>();
  const timer = setInterval(async () => {
    for (const { id, hash, waitsFor, remarks } of await gate.interactions.list()) {
      const rounds = (seen.get(id) ?? 0) + 1;
      seen.set(id, rounds);
      const shown = JSON.stringify((await gate.interactions.shown(id))?.preview ?? {});
      if (waitsFor === "agent" || rounds < 4) continue;
      const isDelete = shown.includes("confirm_delete");
      if (isDelete && remarks.length === 0) {
        await gate.interactions.askBack(id, { by: "ada", text: "Really?" });
      } else await gate.interactions.approve(id, { hash, by: "ada" }).catch(() => {});
    }
  }, 150);
  return () => clearInterval(timer);
}
