// Calls that wait for a person as tasks, for clients that declare the Tasks extension.

import { expect, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { record } from "../support/record.ts";
import { SCALE } from "../support/scale.ts";
import { MCP_TOOLS, runSuite, TASK_SCENARIOS, tasksServer, total } from "./conformance-run.ts";
import { META, mcpWorld, resultIn, TINY, type Wire } from "./world.ts";

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

test("mcp tasks: each question of a reviewer is an input of its own, and the reviewer gets the answers when all are there", async () => {
  const { ask, append, gate } = await taskWorld();
  const { taskId } = await append("x");
  const [{ id = "" } = {}] = await gate.interactions.list();
  for (const text of ["Who?", "Why?"]) await gate.interactions.askBack(id, { by: "ada", text });
  const state = async () => result(await ask("tasks/get", { taskId }));
  const keys = Object.keys((await state())["inputRequests"] as object);
  expect(keys).toHaveLength(2);
  const answer = (key = "", reply = "") =>
    ask("tasks/update", {
      taskId,
      inputResponses: { [key]: { action: "accept", content: { reply } } },
    });
  await answer(keys[0], "Bob.");
  const left = await state();
  expect(left["status"]).toBe("input_required");
  expect(Object.keys(left["inputRequests"] as object)).toEqual([keys[1]]);
  expect((await gate.interactions.get(id)).remarks).toHaveLength(2);
  await answer(keys[1], "It is late.");
  expect(await state()).toMatchObject({ status: "working" });
  expect((await gate.interactions.get(id)).remarks.at(-1)?.text).toBe("Bob.\nIt is late.");
});

test("mcp tasks: a tool that needs a task refuses a client that declares none, and nobody is asked", async () => {
  const { client, gate } = await mcpWorld({
    handshake: "none",
    upstreams: ({ env }) => [
      {
        name: "tiny",
        command: process.execPath,
        args: [TINY],
        env,
        tools: { append: { task: "required" } },
      },
    ],
  });
  const call = { name: "append", arguments: { line: "x" } };
  const refused = await client.request("tools/call", { ...call, _meta: META });
  expect(refused).toMatchObject({ error: { code: -32021 } });
  expect(await gate.interactions.list()).toEqual([]);
  const taken = await client.request("tools/call", { ...call, _meta: DECLARED });
  expect(result(taken)).toMatchObject({ resultType: "task" });
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

atScale(
  "mcp tasks: the conformance suite passes the gateway's own tasks in all of its scenarios",
  async () => {
    const target = await tasksServer();
    try {
      const scores = await runSuite(target.url, "2026-07-28");
      const tasks = new Map([...scores].filter(([name]) => name.startsWith("tasks-")));
      const [passed, failed] = total(tasks);
      record({ goal: "MCP-conformance", what: "own tasks", figures: { checks: passed, failed } });
      expect([...tasks.keys()].toSorted()).toEqual(TASK_SCENARIOS.toSorted());
      expect(new Map([...tasks].filter(([, score]) => score[1] > 0))).toEqual(new Map());
      expect(passed).toBeGreaterThanOrEqual(43);
    } finally {
      await target.close();
    }
  },
  300_000,
);
