import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { createGate } from "../src/gate/create-gate.ts";
import { createGateway, openPins, readMcpConfig, serveHttp, serveStdio } from "../src/mcp/index.ts";
import { memoryStore } from "../src/store/memory/index.ts";
import { sqliteStore } from "../src/store/sqlite/index.ts";
import type { Store } from "../src/store/store.ts";
import type { Result } from "./report.ts";

const CALLS = 300;
const AT_ONCE = 200;
const WARM = 100;

/** A server that reads its line, answers, and does nothing else: what is measured is the way. */
const ECHO = `
const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const tools = [{ name: "look", inputSchema: { type: "object" } }];
  const result = method === "tools/call" ? { content: [{ type: "text", text: "seen" }] }
    : method === "tools/list" ? { tools }
    : { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "echo", version: "1" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
});`;

type Ask = (method: string, params: object) => Promise<{ readonly result?: unknown }>;

/**
 * A passed-through read of an MCP server: directly, and through the gateway over SQLite, on both carriers. Over a store in memory
 * the difference is what the gateway computes; the rest is the two durable commits of every call.
 */
export async function* mcpBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  if (!wanted("mcp.")) return;
  for (const carrier of ["stdio", "http"] as const) {
    const direct = await (carrier === "stdio" ? directStdio() : directHttp());
    const gated = await through(carrier, direct.place);
    const inMemory = await through(carrier, direct.place, memoryStore());
    try {
      const [floor, own] = [await timesOf(direct.ask), await timesOf(gated.ask)];
      for (const [name, share] of [
        ["p50", 0.5],
        ["p99", 0.99],
      ] as const) {
        const [before, value] = [at(floor, share), at(own, share)];
        yield { name: `mcp.${carrier}.direct.${name}`, value: before, unit: "ms" };
        yield {
          name: `mcp.${carrier}.${name}`,
          value,
          unit: "ms",
          against: "direct",
          ratio: value / before,
          goal: "<= 1.3",
        };
      }
      const value = at(await timesOf(inMemory.ask), 0.5);
      yield { name: `mcp.${carrier}.memory.p50`, value, unit: "ms" };
      const begun = performance.now();
      const all = await Promise.all(Array.from({ length: AT_ONCE }, () => look(gated.ask)));
      const lost = all.filter((seen) => !seen).length;
      if (lost > 0) throw new Error(`${lost} of ${AT_ONCE} concurrent calls were lost`);
      const rate = AT_ONCE / ((performance.now() - begun) / 1_000);
      yield { name: `mcp.${carrier}.${AT_ONCE} at once`, value: rate, unit: "calls/s" };
    } finally {
      await inMemory.end();
      await gated.end();
      await direct.end();
    }
  }
}

async function look(ask: Ask): Promise<boolean> {
  const answer = await ask("tools/call", { name: "look", arguments: {} });
  return JSON.stringify(answer.result ?? {}).includes("seen");
}

async function timesOf(ask: Ask): Promise<readonly number[]> {
  const times: number[] = [];
  for (let n = 0; n < WARM + CALLS; n += 1) {
    const begun = performance.now();
    if (!(await look(ask))) throw new Error("a call was lost");
    if (n >= WARM) times.push(performance.now() - begun);
  }
  return times.toSorted((a, b) => a - b);
}

function at(times: readonly number[], share: number): number {
  return times[Math.floor(times.length * share)] ?? Number.NaN;
}

/** A client on two streams, after its handshake. */
async function clientOn(input: Writable, output: Readable): Promise<Ask> {
  const waiting = new Map<unknown, (message: { readonly result?: unknown }) => void>();
  let last = 0;
  createInterface({ input: output }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  const ask: Ask = (method, params) => {
    last += 1;
    const id = last;
    input.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  await ask("initialize", HELLO);
  input.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  return ask;
}

const HELLO = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "bench", version: "1" },
};

interface Contestant {
  readonly ask: Ask;
  readonly place: object;
  end(): Promise<void>;
}

async function directStdio(): Promise<Contestant> {
  const place = { command: process.execPath, args: ["-e", ECHO] };
  const child = spawn(place.command, place.args, { stdio: ["pipe", "pipe", "inherit"] });
  const ask = await clientOn(child.stdin, child.stdout);
  return {
    ask,
    place,
    end: () =>
      new Promise((resolve) => {
        child.once("close", () => resolve());
        child.stdin.end();
      }),
  };
}

async function directHttp(): Promise<Contestant> {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += String(piece);
    const { id, method } = JSON.parse(text);
    const result =
      method === "tools/call"
        ? { resultType: "complete", content: [{ type: "text", text: "seen" }] }
        : { tools: [{ name: "look", inputSchema: { type: "object" } }] };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const url = await listening(server);
  return {
    ask: httpClient(url),
    place: { url },
    async end() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function listening(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

/** Stateless requests, as of 2026-07-28. */
function httpClient(url: string): Ask {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  let last = 0;
  return async (method, params) => {
    last += 1;
    const name = "name" in params ? { "mcp-name": String(params.name) } : {};
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        ...name,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: last, method, params: { ...params, _meta } }),
    });
    return (await response.json()) as { result?: unknown };
  };
}

/** The gateway in this process. Over HTTP without the server around it, whose sign-in has numbers of its own. */
async function through(
  carrier: "stdio" | "http",
  place: object,
  kept?: Store,
): Promise<Contestant> {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-bench-"));
  const store = kept ?? sqliteStore({ file: path.join(folder, "bench.db") });
  const gate = createGate({ store });
  const tools = { look: { effect: "read" } };
  const config = readMcpConfig({ upstreams: [{ name: "echo", tools, ...place }] });
  const gateway = createGateway({ gate, config, pins: openPins(), onProblem: console.error });
  const end = async () => {
    await gateway.close();
    await gate.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  };
  if (carrier === "stdio") {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const served = serveStdio(gateway, { input, output });
    const ask = await clientOn(input, output);
    await ask("tools/list", {});
    const leave = async () => {
      input.end();
      await served;
      await end();
    };
    return { ask, place, end: leave };
  }
  const endpoint = serveHttp(gateway);
  const client = {
    agent: "bench",
    openSession: async (name: string) => name,
    isValid: async () => true,
  };
  const server = createServer((request, response) => {
    void endpoint.handle(request, response, client);
  });
  const ask = httpClient(await listening(server));
  await ask("tools/list", {});
  return {
    ask,
    place,
    async end() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await endpoint.close();
      await end();
    },
  };
}
