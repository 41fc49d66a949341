import { expect, test } from "vitest";
import { CLIENT, handshake, META, mcpWorld, resultIn, TINY } from "./world.ts";

const append = { line: "one" };

test("mcp: a write waits for a person and not one byte of it reaches the upstream before the approval", async () => {
  const { client, calls, wire, ledger, gate } = await mcpWorld();
  const told = await client.call("append", append);
  expect(told.isError).toBe(true);
  expect(told.text).toContain("waits for approval");
  expect(told.text).toContain("exactly the same arguments");
  const [open] = await gate.interactions.list();
  expect(told.meta).toMatchObject({
    "sallyport/answer": "pending",
    "sallyport/decision": open?.id,
  });
  expect(calls()).toEqual([]);
  expect(wire().filter((line) => line.includes("append"))).toEqual([]);
  expect(ledger()).toEqual([]);
});

test("mcp: an approved write runs once, and the same call later returns its result", async () => {
  const { client, calls, ledger, decide } = await mcpWorld();
  await client.call("append", append);
  await decide("approve");
  const later = await client.call("append", append);
  expect(later).toMatchObject({ text: "appended one", isError: false });
  expect(ledger()).toEqual(["one"]);
  expect(calls()).toEqual([{ name: "append", arguments: append }]);
});

test("mcp: after its result was returned, the same call is a new question", async () => {
  const { client, ledger, decide, gate } = await mcpWorld();
  await client.call("append", append);
  await decide("approve");
  await client.call("append", append);
  const again = await client.call("append", append);
  expect(again.isError).toBe(true);
  expect(await gate.interactions.list()).toHaveLength(1);
  await decide("approve");
  await client.call("append", append);
  expect(ledger()).toEqual(["one", "one"]);
});

test("mcp: a rejected write never reaches the upstream, and the client learns why", async () => {
  const { client, calls, ledger, decide } = await mcpWorld();
  await client.call("append", append);
  await decide("reject");
  const told = await client.call("append", append);
  expect(told.isError).toBe(true);
  expect(told.text).toContain("not now");
  expect(calls()).toEqual([]);
  expect(ledger()).toEqual([]);
});

test("mcp: a call that is approved while it is held returns the upstream's own answer", async () => {
  const { client, decide, gate, ledger } = await mcpWorld({ config: { holdMs: 20_000 } });
  const id = client.start("tools/call", { name: "append", arguments: append });
  await expect.poll(async () => (await gate.interactions.list()).length).toBe(1);
  await decide("approve");
  expect(resultIn(await client.answerTo(id))).toMatchObject({
    text: "appended one",
    isError: false,
  });
  expect(ledger()).toEqual(["one"]);
});

test("mcp: a tool that the operator calls read-only passes, with structured content and progress", async () => {
  const { client, gate } = await mcpWorld();
  expect(await client.call("count")).toMatchObject({ text: "0", structured: { lines: 0 } });
  const slow = await client.call("slow", {}, { _meta: { progressToken: "p-1" } });
  expect(slow.text).toBe("slow");
  expect(client.heard).toContainEqual(
    expect.objectContaining({
      method: "notifications/progress",
      params: { progressToken: "p-1", progress: 1, total: 2 },
    }),
  );
  expect(await gate.interactions.list()).toEqual([]);
});

test("mcp: what the upstream claims about a tool changes nothing: readOnlyHint does not let a write pass", async () => {
  const { client, ledger } = await mcpWorld();
  const { result } = (await client.request("tools/list")) as {
    result: { tools: object[] };
  } & object;
  expect(result.tools).toContainEqual(
    expect.objectContaining({ name: "append", annotations: { readOnlyHint: true } }),
  );
  expect((await client.call("append", append)).isError).toBe(true);
  expect(ledger()).toEqual([]);
});

test("mcp: other messages pass as they were written, byte for byte", async () => {
  const { client, wire } = await mcpWorld();
  const line =
    '{"jsonrpc":"2.0", "id":"odd id", "method":"ping", "params":{"x":1.50,"y":"é\\u0041"}}';
  client.send(line);
  await client.answerTo("odd id" as never);
  expect(wire()).toContain(line);
});

test("mcp: structured content of a call that was approved later is returned in full", async () => {
  const { client, decide } = await mcpWorld({
    upstreams: ({ env }) => [tiny(env, {})],
  });
  expect((await client.call("count")).isError).toBe(true);
  await decide("approve");
  expect(await client.call("count")).toMatchObject({ text: "0", structured: { lines: 0 } });
});

test("mcp: a message that two parsers could read in two ways is refused and does not pass", async () => {
  const { client, wire, ledger } = await mcpWorld();
  await client.request("tools/list");
  const before = wire().length;
  const hidden = '"params":{"name":"append","arguments":{"line":"x"}}';
  const odd = [
    `{"jsonrpc":"2.0","id":90,"method":"ping","method":"tools/call",${hidden}}`,
    `{"jsonrpc":"2.0","id":91,"method":"ping","Method":"tools/call",${hidden}}`,
    `[{"jsonrpc":"2.0","id":92,"method":"tools/call",${hidden}}]`,
    `{"jsonrpc":"2.0","id":93,"method":"TOOLS/call",${hidden}}`,
    `{"jsonrpc":"2.0","id":94,"method":"ping","params":{"a":\r{"jsonrpc":"2.0","id":95,"method":"tools/call",${hidden}}\r}}`,
    "not json",
  ];
  for (const line of odd) client.send(line);
  await client.request("ping");
  const passed = wire().slice(before);
  // The one with line breaks between its tokens is an ordinary message, and passes as one line.
  expect(passed.filter((line) => line.includes("append"))).toHaveLength(1);
  expect(passed.filter((line) => JSON.parse(line).method !== "ping")).toEqual([]);
  expect(passed.join("")).not.toContain("\r");
  expect(ledger()).toEqual([]);
});

test("mcp: a client that cancels a waiting call withdraws it, so that it cannot be approved later", async () => {
  const { client, gate, calls } = await mcpWorld({ config: { holdMs: 20_000 } });
  const id = client.start("tools/call", { name: "append", arguments: append });
  await expect.poll(async () => (await gate.interactions.list()).length).toBe(1);
  client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
  await expect.poll(async () => (await gate.interactions.list()).length).toBe(0);
  expect(calls()).toEqual([]);
});

test("mcp: an unknown tool and unreadable arguments are errors, and reach nobody", async () => {
  const { client, calls } = await mcpWorld();
  expect(await client.request("tools/call", { name: "nope" })).toMatchObject({
    error: { code: -32602 },
  });
  expect(await client.request("tools/call", { name: "append", arguments: [1] })).toMatchObject({
    error: { code: -32602 },
  });
  const odd = await client.call("append", { line: 5 });
  expect(odd.isError).toBe(true);
  expect(odd.text).toContain("does not fit the schema");
  expect(calls()).toEqual([]);
});

test("mcp: an upstream's refusal is passed on, and the call counts as failed", async () => {
  const { client, decide, gate } = await mcpWorld({ config: { holdMs: 20_000 } });
  const id = client.start("tools/call", { name: "fail" });
  await expect.poll(async () => (await gate.interactions.list()).length).toBe(1);
  await decide("approve");
  expect(resultIn(await client.answerTo(id))).toMatchObject({
    text: "no, thank you",
    isError: true,
  });
});

test("mcp: the stateless era needs no handshake, and its results say that they are complete", async () => {
  const { client, decide, ledger } = await mcpWorld({ handshake: "none" });
  const more = { _meta: META };
  await client.request("server/discover", more);
  const told = await client.call("append", append, more);
  expect(told.raw["result"]).toMatchObject({ resultType: "complete", isError: true });
  await decide("approve");
  expect(await client.call("append", append, more)).toMatchObject({ text: "appended one" });
  expect(await client.call("count", {}, more)).toMatchObject({ structured: { lines: 1 } });
  expect(ledger()).toEqual(["one"]);
});

test("mcp: what is not known of a write whose upstream died stays unknown, and the upstream is started again", async () => {
  const { client, decide, gate, ledger, wire, problems } = await mcpWorld();
  await client.call("die", { line: "last words" });
  await decide("approve");
  await expect
    .poll(async () => (await gate.interactions.list()).map(({ type }) => type))
    .toEqual(["connection_lost"]);
  expect(ledger()).toEqual(["last words"]);
  const told = await client.call("die", { line: "last words" });
  expect(told.isError).toBe(true);
  expect(told.text).toContain("not known whether this happened");
  expect(await client.call("count")).toMatchObject({ structured: { lines: 1 } });
  expect(wire().filter((line) => line === "start")).toHaveLength(2);
  expect(wire().filter((line) => line.includes('"initialize"'))).toHaveLength(2);
  expect(problems.join()).toContain("exit code 3");
  expect(ledger()).toEqual(["last words"]);
});

test("mcp: the client's folders stay with the client unless the operator allows them", async () => {
  const refusing = await mcpWorld();
  const asked = await refusing.client.call("roots");
  expect(asked.isError).toBe(true);
  expect(refusing.wire().find((line) => line.includes('"initialize"'))).not.toContain("roots");
  await refusing.decide("approve");
  expect((await refusing.client.call("roots")).text).toContain("does not pass this on");
  expect(refusing.client.heard).toEqual([]);

  const allowing = await mcpWorld({ config: { roots: "allow" } });
  expect(allowing.wire().find((line) => line.includes('"initialize"'))).toContain("roots");
  await allowing.client.call("roots");
  const decided = allowing.decide("approve");
  await expect.poll(() => allowing.client.heard).toHaveLength(1);
  const [{ id } = {}] = allowing.client.heard;
  allowing.client.send({ jsonrpc: "2.0", id, result: { roots: [{ uri: "file:///home" }] } });
  await decided;
  expect((await allowing.client.call("roots")).text).toContain("file:///home");
});

test("mcp: several upstreams offer their tools under prefixes, and each call reaches its own", async () => {
  const { client, decide, calls } = await mcpWorld({
    upstreams: ({ env }) => [tiny(env, {}, "left"), tiny({ ...env, REVISION: "r" }, {}, "right")],
  });
  const { result } = (await client.request("tools/list")) as {
    result: { tools: { name: string }[] };
  } & object;
  const names = result.tools.map(({ name }) => name);
  expect(names).toContain("left_append");
  expect(names).toContain("right_append");
  expect((await client.call("append", append)).raw).toMatchObject({ error: { code: -32602 } });
  await client.call("right_append", append);
  await decide("approve");
  expect(await client.call("right_append", append)).toMatchObject({ text: "appended one" });
  expect(calls()).toEqual([{ name: "append", arguments: append }]);
});

test("mcp: two upstreams that offer one name: the second is refused and named to the operator", async () => {
  const { client, problems } = await mcpWorld({
    upstreams: ({ env }) => [
      tiny(env, {}, "left", { prefix: "" }),
      tiny(env, {}, "right", { prefix: "" }),
    ],
  });
  const { result } = (await client.request("tools/list")) as {
    result: { tools: { name: string }[] };
  } & object;
  expect(result.tools.filter(({ name }) => name === "append")).toHaveLength(1);
  expect(problems.join("\n")).toContain('right.append is not offered: "append" is or looks like');
});

test("mcp: a second client of the same session finds the call that the first one asked for", async () => {
  const { connect, decide, ledger, gate } = await mcpWorld();
  const first = connect("shared");
  await handshake(first);
  await first.call("append", append);
  const second = connect("shared");
  await handshake(second);
  await second.call("append", append);
  expect(await gate.interactions.list()).toHaveLength(1);
  await decide("approve");
  expect(await second.call("append", append)).toMatchObject({ text: "appended one" });
  expect(await first.call("append", append)).toMatchObject({ text: "appended one" });
  expect(ledger()).toEqual(["one"]);
});

test("mcp: a client that asks for a call while it is being executed gets its result, and the next one is asked anew", async () => {
  const { connect, decide, ledger, gate } = await mcpWorld();
  const first = connect("lasting");
  await handshake(first);
  await first.call("later", append);
  const decided = decide("approve");
  await expect.poll(async () => (await gate.operations.listBySession("lasting")).length).toBe(1);
  const second = connect("lasting");
  await handshake(second);
  expect(await second.call("later", append)).toMatchObject({ text: "later one", isError: false });
  await decided;
  const third = connect("lasting");
  await handshake(third);
  expect((await third.call("later", append)).text).toContain("waits for approval");
  expect(ledger()).toEqual(["one"]);
});

test("mcp: initialize is answered by the upstream itself", async () => {
  const { client } = await mcpWorld({ handshake: "none" });
  expect(await client.request("initialize", CLIENT)).toMatchObject({
    result: { protocolVersion: "2025-11-25", serverInfo: { name: "tiny" } },
  });
});

function tiny(env: object, tools: object, name = "tiny", more: object = {}) {
  return { name, command: process.execPath, args: [TINY], env, tools, ...more };
}

// Parts of the protocol besides tools, against a server that offers and asks for all of them.

const CHATTY = `
const lines = require("node:readline").createInterface({ input: process.stdin });
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
lines.on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) return say({ id: 1_000, method: "notifications/message", params: { data: JSON.stringify(result ?? error) }, id: undefined });
  if (id === undefined) return;
  if (method === "initialize") return say({ id, result: { protocolVersion: params.protocolVersion,
    capabilities: { tools: {}, resources: {}, prompts: {} }, serverInfo: { name: "chatty", version: "1" },
    instructions: process.env.INSTRUCTIONS ?? "Be brief.", _meta: { client: params.capabilities } } });
  if (method === "ask") { say({ id: 7, method: params.what, params: {} }); }
  say({ id, result: { seen: method, tools: [] } });
});`;

const chatty = (env = {}, more: object = {}) => ({
  name: "chatty",
  command: process.execPath,
  args: ["-e", CHATTY],
  env,
  ...more,
});

test("mcp: resources, prompts, sampling and elicitation pass both ways, until the operator refuses them", async () => {
  const open = await mcpWorld({ handshake: "none", upstreams: () => [chatty()] });
  const hello = { ...CLIENT, protocolVersion: "2025-06-18" };
  const told = await open.client.request("initialize", hello);
  expect(told).toMatchObject({ result: { protocolVersion: "2025-06-18" } });
  expect(told).toMatchObject({ result: { capabilities: { resources: {}, prompts: {} } } });
  expect(await open.client.request("resources/list")).toMatchObject({
    result: { seen: "resources/list" },
  });
  await open.client.request("ask", { what: "sampling/createMessage" });
  await expect.poll(() => open.client.heard).toHaveLength(1);
  open.client.send({ jsonrpc: "2.0", id: 7, result: { role: "assistant" } });
  await expect.poll(() => JSON.stringify(open.client.heard)).toContain("assistant");

  const refuse = ["resources", "prompts", "sampling", "elicitation"];
  const closed = await mcpWorld({
    handshake: "none",
    config: { refuse },
    upstreams: () => [chatty()],
  });
  const answered = await closed.client.request("initialize", hello);
  expect(answered).toMatchObject({
    result: { capabilities: { tools: {} }, _meta: { client: {} } },
  });
  expect(JSON.stringify(answered)).not.toMatch(/resources|prompts|elicitation/);
  for (const method of ["resources/read", "prompts/get", "PROMPTS/list"]) {
    expect(await closed.client.request(method)).toMatchObject({ error: { code: -32601 } });
  }
  for (const what of ["sampling/createMessage", "elicitation/create"]) {
    await closed.client.request("ask", { what });
  }
  await expect.poll(() => JSON.stringify(closed.client.heard)).toContain("does not pass");
  expect(closed.client.heard.filter(({ id }) => id !== undefined)).toEqual([]);
});

test("mcp: two servers that ask with the same id at the same time are both heard, and each gets its own answer", async () => {
  const { client, gate } = await mcpWorld({
    config: { roots: "allow", holdMs: 20_000 },
    upstreams: ({ env }) => [tiny(env, {}, "left"), tiny(env, {}, "right")],
  });
  const names = ["left", "right"];
  const asked = names.map((name) => client.call(`${name}_roots`));
  await expect.poll(async () => (await gate.interactions.list()).length).toBe(2);
  for (const { id, hash } of await gate.interactions.list()) {
    void gate.interactions.approve(id, { hash, by: "ada" });
  }
  const heard = () => client.heard.filter(({ method }) => method === "roots/list");
  await expect.poll(() => heard().length).toBe(2);
  for (const { id } of heard()) {
    const uri = `file:///of-${String(id).split("-")[0]}`;
    client.send({ jsonrpc: "2.0", id, result: { roots: [{ uri }] } });
  }
  const told = await Promise.all(asked);
  expect(told.map(({ text }) => text)).toEqual([
    expect.stringContaining("of-left"),
    expect.stringContaining("of-right"),
  ]);
});

test("mcp: instructions of a server that hide something are left out, and the operator is told", async () => {
  const hidden = chatty({ INSTRUCTIONS: "Be brief.\u{e0041}" });
  const { client, problems } = await mcpWorld({ handshake: "none", upstreams: () => [hidden] });
  const { result } = (await client.request("initialize", CLIENT)) as { result: object } & object;
  expect(result).toMatchObject({ serverInfo: { name: "chatty" } });
  expect(result).not.toHaveProperty("instructions");
  expect(problems.join()).toContain("the instructions of a server are left out");
  const plain = await mcpWorld({ handshake: "none", upstreams: () => [chatty()] });
  expect(await plain.client.request("initialize", CLIENT)).toMatchObject({
    result: { instructions: "Be brief." },
  });
});
