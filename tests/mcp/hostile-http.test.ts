// Servers over HTTP that answer as no server should. Each client gets an answer, the gateway lives on, and nothing that needs a
// person passes.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createDice } from "../support/dice.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { META, mcpWorld } from "./world.ts";

const CALLS = scaled({ test: 120, proof: 2_500, full: 10_000 });
const SEEDS = [3, 11];
const MEMORY = 256 * 1024 * 1024;

const JSON_TYPE = { "content-type": "application/json" };
const EVENTS = { "content-type": "text/event-stream" };
const tools = [{ name: "touch", inputSchema: { type: "object" } }];

/** Writes until the other side hangs up. */
function endless(response: ServerResponse, piece: string): void {
  const go = () => {
    while (!response.destroyed && response.write(piece));
    if (!response.destroyed) response.once("drain", go);
  };
  go();
}

const event = (message: unknown) => `data: ${JSON.stringify(message)}\n\n`;

/** What it does instead of answering the request with this id. */
const ODD: readonly ((id: unknown, response: ServerResponse) => void)[] = [
  (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>hello</p>"),
  (_, response) => response.writeHead(200, JSON_TYPE).end("{"),
  (_, response) => response.writeHead(200, JSON_TYPE).end("null"),
  (_, response) => response.writeHead(200).end(),
  (_, response) => response.writeHead(500, JSON_TYPE).end('{"jsonrpc":"2.0"}'),
  (_, response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  (_, response) => void response.destroy(),
  (_, response) =>
    void response.writeHead(200, JSON_TYPE).write('{"jsonrpc"', () => response.destroy()),
  (_, response) => response.writeHead(200, EVENTS).end("data: {}\n\ndata: nothing\n\n"),
  (id, response) =>
    response
      .writeHead(200, JSON_TYPE)
      .end(JSON.stringify({ jsonrpc: "2.0", id: `${id}x`, result: { forged: true } })),
  (_, response) =>
    response
      .writeHead(200, EVENTS)
      .end([1, 2, 3].map((id) => event({ jsonrpc: "2.0", id, result: { forged: true } })).join("")),
  (id, response) =>
    response
      .writeHead(200, EVENTS)
      .end(
        event({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "touch" } }) +
          event({ jsonrpc: "2.0", id, error: {} }),
      ),
  (id, response) =>
    response
      .writeHead(200, JSON_TYPE)
      .end(JSON.stringify({ jsonrpc: "2.0", id, result: "text", error: [] })),
];

async function hostile(answer: (method: string, id: unknown, response: ServerResponse) => boolean) {
  let touched = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += String(piece);
    const { id, method = "", params } = text === "" ? { id: 0 } : JSON.parse(text);
    if (method === "tools/call" && params.name === "touch") touched += 1;
    if (answer(method, id, response)) return;
    const result = method === "tools/list" ? { tools } : { content: [] };
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const world = await mcpWorld({ handshake: "none", upstreams: () => [{ name: "hostile", url }] });
  const ask = (method: string, params: object = {}) =>
    world.client.request(method, { ...params, _meta: META });
  return { ...world, ask, touched: () => touched };
}

test.each(SEEDS)(
  "mcp over HTTP: odd answers of a server, by seed %i, are errors of their own request, and no write passes",
  async (seed) => {
    const dice = createDice(seed);
    const { ask, touched, gate } = await hostile((method, id, response) => {
      if (method === "tools/list" || dice.percent(20)) return false;
      dice.pick(ODD)(id, response);
      return true;
    });
    let unanswered = 0;
    let forged = 0;
    for (let n = 0; n < CALLS; n += 1) {
      const answer = await ask("ping").catch(() => undefined);
      if (answer === undefined) unanswered += 1;
      if (JSON.stringify(answer ?? {}).includes("forged")) forged += 1;
      if (n % 20 === 0) {
        const told = await ask("tools/call", { name: "touch", arguments: { n } });
        expect(JSON.stringify(told)).toContain("waits for approval");
      }
    }
    const crashes = "result" in (await ask("tools/list")) ? 0 : 1;
    const figures = { messages: CALLS, crashes, unanswered };
    record({ goal: "MCP-fuzz", what: "odd answers over HTTP", figures, seed });
    expect({ crashes, unanswered, forged, touched: touched() }).toEqual({
      crashes: 0,
      unanswered: 0,
      forged: 0,
      touched: 0,
    });
    expect((await gate.interactions.list()).length).toBe(Math.ceil(CALLS / 20));
  },
  300_000,
);

const FLOODS: readonly [string, (id: unknown, response: ServerResponse) => void][] = [
  [
    "one endless message",
    (_, response) => endless(response.writeHead(200, JSON_TYPE), "x".repeat(65_536)),
  ],
  [
    "one endless event",
    (_, response) => endless(response.writeHead(200, EVENTS), `data: ${"x".repeat(65_536)}\n`),
  ],
  [
    "one endless line",
    (_, response) => endless(response.writeHead(200, EVENTS), "x".repeat(65_536)),
  ],
];

test.each(FLOODS)(
  "mcp over HTTP: %s ends as an error, and costs no more memory than a message may",
  async (_, flood) => {
    const { ask } = await hostile((method, id, response) => {
      if (method !== "ping") return false;
      flood(id, response);
      return true;
    });
    await ask("tools/list");
    const before = process.memoryUsage().rss;
    expect(await ask("ping")).toMatchObject({ error: {} });
    expect(process.memoryUsage().rss - before).toBeLessThan(MEMORY);
    expect(await ask("tools/list")).toMatchObject({ result: { tools } });
  },
  60_000,
);

test("mcp over HTTP: a list without an end is cut off, whether its pages are many or large, and its client is answered", async () => {
  let pages = 0;
  const { ask, problems } = await hostile((method, id, response) => {
    if (method !== "tools/list") return false;
    pages += 1;
    const invented = Array.from({ length: 50 }, (_, n) => ({
      ...tools[0],
      name: `t${pages}_${n}`,
    }));
    const result = { tools: [...tools, ...invented], nextCursor: String(pages) };
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    return true;
  });
  const told = await ask("tools/call", { name: "touch", arguments: {} });
  expect(JSON.stringify(told)).toContain("waits for approval");
  expect(pages).toBeLessThan(120);
  expect(problems.length).toBeLessThan(3_000);
}, 60_000);
