// The gateway over Streamable HTTP, on a real server: tokens, sessions, streams, the headers of the stateless era.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createNodeServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createGate } from "sallyport";
import { createServer } from "sallyport/http";
import { createGateway, openPins, readMcpConfig, serveHttp } from "sallyport/mcp";
import { memoryStore } from "sallyport/store/memory";
import { expect, onTestFinished, test } from "vitest";
import { startUpkeep } from "../../src/gate/upkeep.ts";
import { CLIENT, META, mcpWorld, READS, resultIn, TINY, type Wire } from "./world.ts";

const ACCEPT = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** Everything that came for one request, the answer last. */
async function messagesIn(response: Response): Promise<Wire[]> {
  const text = await response.text();
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (!isStream) return text === "" ? [] : [JSON.parse(text)];
  const lines = text.split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

async function httpWorld(
  more: { upstreams?: object[]; holdMs?: number; env?: object; tools?: object } = {},
) {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-mcp-http-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string) => path.join(folder, name);
  const lines = (name: string) =>
    existsSync(file(name)) ? readFileSync(file(name), "utf8").split("\n").slice(0, -1) : [];
  const env = {
    WIRE_LOG: file("http-wire.log"),
    LEDGER: file("http-ledger.txt"),
    STATE: file("http-state.json"),
    ...more.env,
  };
  const store = memoryStore();
  const gate = createGate({ store, checkpoint: "inbox" });
  const upkeep = startUpkeep({ gate, everyMs: 20, onError: () => {} });
  const problems: string[] = [];
  const own = {
    name: "tiny",
    command: process.execPath,
    args: [TINY],
    env,
    tools: more.tools ?? READS,
  };
  const config = readMcpConfig({ holdMs: more.holdMs ?? 0, upstreams: more.upstreams ?? [own] });
  const pins = openPins(file("http-pins.json"));
  const gateway = createGateway({ gate, config, pins, onProblem: (text) => problems.push(text) });
  const endpoint = serveHttp(gateway);
  const server = await createServer({
    store,
    gates: { default: gate },
    mcp: { default: endpoint },
  });
  onTestFinished(async () => {
    await endpoint.close();
    await gateway.close();
    await upkeep.stop();
    await server.close();
    await gate.close();
  });
  const url = `${server.url}/mcp`;
  const token = await server.makeToken({ subject: "bot", roles: ["agent"] });
  const headersFor = (secret: string) => ({ ...ACCEPT, authorization: `Bearer ${secret}` });
  let last = 0;
  const post = (body: object, headers: Record<string, string> = {}, secret = token) =>
    fetch(url, {
      method: "POST",
      headers: { ...headersFor(secret), ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    });
  return {
    gate,
    server,
    url,
    token,
    post,
    problems,
    headersFor,
    lines,
    file,
    /** A request of the stateless era. */
    async stateless(method: string, params: object = {}, headers: Record<string, string> = {}) {
      last += 1;
      const name = "name" in params ? { "mcp-name": String(params.name) } : {};
      const about = { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...name };
      const body = { id: last, method, params: { ...params, _meta: META } };
      const response = await post(body, { ...about, ...headers });
      return { status: response.status, messages: await messagesIn(response) };
    },
    /** A session of the era with a handshake. */
    async session(secret = token) {
      const first = await post({ id: 0, method: "initialize", params: CLIENT }, {}, secret);
      const id = first.headers.get("mcp-session-id") ?? "";
      await first.text();
      const about = { "mcp-session-id": id, "mcp-protocol-version": CLIENT.protocolVersion };
      await post({ method: "notifications/initialized" }, about, secret);
      return {
        id,
        about,
        async request(method: string, params: object = {}) {
          last += 1;
          return messagesIn(await post({ id: last, method, params }, about, secret));
        },
      };
    },
    async decide(verdict: "approve" | "reject") {
      for (const { id, hash } of await gate.interactions.list()) {
        if (verdict === "approve") await gate.interactions.approve(id, { hash, by: "ada" });
        else await gate.interactions.reject(id, { hash, by: "ada", reason: "not now" });
      }
    },
  };
}

test("mcp over HTTP: without a valid agent token nothing is answered, and the refusal says where to learn how", async () => {
  const { url, server, post, token } = await httpWorld();
  const bare = await fetch(url, { method: "POST", headers: ACCEPT, body: "{}" });
  expect(bare.status).toBe(401);
  const where = /resource_metadata="([^"]+)"/.exec(bare.headers.get("www-authenticate") ?? "")?.[1];
  const metadata = await (await fetch(where ?? "")).json();
  expect(metadata).toMatchObject({ resource: url, bearer_methods_supported: ["header"] });
  const auditor = await server.makeToken({ subject: "eve", roles: ["auditor"] });
  const body = { id: 1, method: "initialize", params: CLIENT };
  expect((await post(body, {}, auditor)).status).toBe(403);
  const foreign = await post(body, { origin: "https://evil.example" }, token);
  expect(foreign.status).toBe(403);
});

test("mcp over HTTP: a stateless read passes, a write waits, runs once after the approval, and never before", async () => {
  const { stateless, decide, lines, gate } = await httpWorld();
  const read = await stateless("tools/call", { name: "count", arguments: {} });
  expect(resultIn(read.messages[0] ?? {})).toMatchObject({ text: "0", isError: false });
  const call = { name: "append", arguments: { line: "x" } };
  const asked = await stateless("tools/call", call);
  expect(resultIn(asked.messages[0] ?? {}).text).toContain("waits for approval");
  expect(lines("http-wire.log").filter((line) => line.includes("append"))).toEqual([]);
  expect(await gate.interactions.list()).toHaveLength(1);
  await decide("approve");
  await expect.poll(() => lines("http-ledger.txt")).toEqual(["x"]);
  const later = await stateless("tools/call", call);
  expect(resultIn(later.messages[0] ?? {}).text).toBe("appended x");
  expect(lines("http-ledger.txt")).toEqual(["x"]);
});

test("mcp over HTTP: a rejected call never reaches the upstream, and its client is told why", async () => {
  const { session, decide, lines } = await httpWorld();
  const { request } = await session();
  const call = { name: "append", arguments: { line: "x" } };
  await request("tools/call", call);
  await decide("reject");
  expect(resultIn((await request("tools/call", call)).at(-1) ?? {}).text).toContain("not now");
  expect(lines("http-ledger.txt")).toEqual([]);
});

test("mcp over HTTP: headers that say something else than the message are refused", async () => {
  const { stateless } = await httpWorld();
  const call = { name: "count", arguments: {} };
  for (const wrong of [
    { "mcp-method": "tools/list" },
    { "mcp-name": "append" },
    { "mcp-protocol-version": "2025-11-25" },
  ]) {
    const { status, messages } = await stateless("tools/call", call, wrong);
    expect(status).toBe(400);
    expect(messages[0]).toMatchObject({ error: { code: -32020 } });
  }
});

test("mcp over HTTP: a session belongs to its token, and ends with DELETE", async () => {
  const { session, server, post, url, headersFor, token } = await httpWorld();
  const { id, about, request } = await session();
  expect((await request("ping")).at(-1)).toMatchObject({ result: {} });
  const other = await server.makeToken({ subject: "other", roles: ["agent"] });
  expect((await post({ id: 5, method: "ping" }, about, other)).status).toBe(404);
  const headers = { ...headersFor(token), "mcp-session-id": id };
  expect((await fetch(url, { method: "DELETE", headers })).status).toBe(200);
  expect((await post({ id: 6, method: "ping" }, about)).status).toBe(404);
});

test("mcp over HTTP: tokens of one agent with different owners are two clients, and neither owner approves their own call [H3]", async () => {
  const { server, post, gate } = await httpWorld();
  for (const owner of ["person:ada", "person:bob"]) {
    const secret = await server.makeToken({ subject: "bot", roles: ["agent"], owner });
    const name = "append";
    const params = { name, arguments: { line: owner }, _meta: META };
    const about = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call" };
    const body = { id: 1, method: "tools/call", params };
    await (await post(body, { ...about, "mcp-name": name }, secret)).text();
  }
  const asked = await gate.interactions.list();
  expect(asked).toHaveLength(2);
  for (const { id, hash, pendingTool } of asked) {
    const by = JSON.parse(pendingTool?.args_json ?? "{}").line;
    const vote = gate.interactions.approve(id, { hash, by });
    await expect(vote, by).rejects.toMatchObject({ code: "not_allowed" });
  }
});

test("mcp over HTTP: two stateless clients with the same ids and progress tokens each get their own answers", async () => {
  const { post } = await httpWorld();
  const about = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "slow",
  };
  const params = { name: "slow", arguments: {}, _meta: { ...META, progressToken: "p" } };
  const answers = await Promise.all(
    Array.from({ length: 10 }, async () =>
      messagesIn(await post({ id: 1, method: "tools/call", params }, about)),
    ),
  );
  for (const messages of answers) {
    expect(messages).toHaveLength(2);
    expect(messages[0]).toMatchObject({
      method: "notifications/progress",
      params: { progressToken: "p" },
    });
    expect(messages[1]).toMatchObject({ id: 1 });
  }
});

test("mcp over HTTP: a stream that the client lost is continued after its last event", async () => {
  const { session, post, url, headersFor, token } = await httpWorld({
    tools: { later: { effect: "read" } },
  });
  const { about } = await session();
  const lost = new AbortController();
  const call = { name: "later", arguments: { line: "x" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 77, method: "tools/call", params: call });
  const headers = { ...headersFor(token), ...about };
  const begun = await fetch(url, { method: "POST", headers, body, signal: lost.signal });
  const reader = begun.body?.getReader();
  const piece = new TextDecoder().decode((await reader?.read())?.value);
  const [, id = ""] = /^id: (\S+)$/m.exec(piece) ?? [];
  lost.abort();
  const again = await fetch(url, {
    headers: { ...headers, accept: "text/event-stream", "last-event-id": id },
  });
  expect(resultIn((await messagesIn(again)).at(-1) ?? {}).text).toBe("later x");
  expect((await post({ id: 78, method: "ping" }, about)).status).toBe(200);
});

test("mcp: an upstream over HTTP that hangs up in a call leaves it unknown, which its client learns at once, and one that is not there fails it", async () => {
  const hangUp = createNodeServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += String(piece);
    const { id, method } = JSON.parse(text);
    const tools = [{ name: "pay", inputSchema: { type: "object" } }];
    if (method === "tools/call") response.destroy();
    else {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { tools } }));
    }
  });
  await new Promise<void>((resolve) => void hangUp.listen(0, "127.0.0.1", resolve));
  const { port } = hangUp.address() as AddressInfo;
  const up = { name: "shop", url: `http://127.0.0.1:${port}/mcp` };
  const { stateless, gate, decide } = await httpWorld({ upstreams: [up], holdMs: 600_000 });
  const pay = async (input: object) => {
    const asked = stateless("tools/call", { name: "pay", arguments: input });
    await expect.poll(async () => (await gate.interactions.list()).length).toBe(1);
    await decide("approve");
    return resultIn((await asked).messages.at(-1) ?? {});
  };
  const lost = await pay({});
  expect(lost).toMatchObject({ isError: true, meta: { "sallyport/answer": "unknown" } });
  const [question] = await gate.interactions.list();
  const { hash = "" } = question ?? {};
  const found = { by: "ada", hash, happened: false, otherwise: "give_up" } as const;
  await gate.interactions.settle(question?.id ?? "", found);
  await new Promise((resolve) => {
    hangUp.close(resolve);
    hangUp.closeAllConnections();
  });
  expect((await pay({ n: 2 })).text).toContain("Not executed");
});

test("mcp: a client over stdio and a server over HTTP: a read passes, a write waits, runs once after the approval and never after a rejection", async () => {
  // The server is a gateway of its own that lets everything pass.
  const inner = await httpWorld({ tools: { ...READS, append: { effect: "read" } } });
  const outer = await mcpWorld({
    upstreams: () => [
      {
        name: "inner",
        url: inner.url,
        headers: { authorization: `Bearer ${inner.token}` },
        tools: READS,
      },
    ],
  });
  expect(await outer.client.call("count")).toMatchObject({ text: "0", isError: false });
  for (const [line, verdict] of [
    ["x", "approve"],
    ["y", "reject"],
  ] as const) {
    expect((await outer.client.call("append", { line })).text).toContain("waits for approval");
    expect(inner.lines("http-wire.log").join()).not.toContain(`"line":"${line}"`);
    await outer.decide(verdict);
    const told = await outer.client.call("append", { line });
    expect(told.text).toContain(verdict === "approve" ? "appended x" : "not now");
  }
  expect(inner.lines("http-ledger.txt")).toEqual(["x"]);
});

test("mcp: a chain of two gateways passes calls on, and each asks for itself", async () => {
  const inner = await httpWorld();
  const outer = await mcpWorld({
    upstreams: () => [
      {
        name: "inner",
        url: inner.url,
        headers: { authorization: `Bearer ${inner.token}` },
        tools: { append: { effect: "read" } },
      },
    ],
  });
  const asked = await outer.client.call("append", { line: "x" });
  expect(asked.text, JSON.stringify(outer.problems)).toContain("waits for approval");
  expect(inner.lines("http-ledger.txt")).toEqual([]);
  await inner.decide("approve");
  await expect.poll(() => inner.lines("http-ledger.txt")).toEqual(["x"]);
});

test("mcp over HTTP: a call whose client ended its session is executed when it is approved, and is rolled back, without any client", async () => {
  const undo = {
    snapshot: { tool: "get", input: { key: "{input.key}" } },
    tool: "put",
    input: { key: "{input.key}", value: "{before}" },
  };
  const { session, decide, gate, lines, url, headersFor, token, file } = await httpWorld({
    tools: { ...READS, put: { undo } },
  });
  const ask = async (input: object) => {
    const { request, about } = await session();
    const [told] = await request("tools/call", { name: "put", arguments: input });
    expect(resultIn(told ?? {}).text).toContain("waits for approval");
    const ended = await fetch(url, {
      method: "DELETE",
      headers: { ...headersFor(token), ...about },
    });
    expect(ended.status).toBe(200);
  };
  writeFileSync(file("http-state.json"), `${JSON.stringify({ a: "zero" })}\n`);
  await ask({ key: "a", value: "one" });
  await decide("approve");
  await expect.poll(() => readFileSync(file("http-state.json"), "utf8")).toContain("one");
  const [decision] = await gate.decisions.list({ limit: 1 });
  const [done] = await gate.operations.listBySession(decision?.sessionId ?? "");
  expect(done).toMatchObject({ status: "success", output: "put a" });
  const operator = gate.sessions.open({ id: decision?.sessionId ?? "", agent: "operator" });
  await operator.rollback("person:ada");
  await decide("approve");
  await expect.poll(() => readFileSync(file("http-state.json"), "utf8")).toContain("zero");
  expect(lines("http-wire.log").filter((line) => line.includes('"name":"put"'))).toHaveLength(2);
  // The next session of the same token learns what became of it.
  const { request } = await session();
  const [told] = await request("tools/call", {
    name: "put",
    arguments: { key: "a", value: "one" },
  });
  expect(resultIn(told ?? {}).text).toContain("undone afterwards");
});
