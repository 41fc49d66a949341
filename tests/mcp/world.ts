// A gateway in this process with the tiny upstream as a real child process, and a client that speaks JSON-RPC over streams.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { createGate, type Gate } from "sallyport";
import { createGateway, openPins, readMcpConfig, serveStdio } from "sallyport/mcp";
import { memoryStore } from "sallyport/store/memory";
import { onTestFinished } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import { startUpkeep } from "../../src/gate/upkeep.ts";

export const TINY = path.join(import.meta.dirname, "tiny-upstream.mjs");

export type Wire = Record<string, unknown> & { readonly method?: string; readonly id?: unknown };

export interface McpClient {
  request(method: string, params?: object): Promise<Wire>;
  /** A request whose answer is not waited for; returns its id. */
  start(method: string, params?: object): number;
  answerTo(id: number): Promise<Wire>;
  send(message: object | string): void;
  call(name: string, input?: object, more?: object): Promise<Result>;
  /** Everything that is no answer. */
  readonly heard: Wire[];
  end(): void;
}

export interface Result {
  readonly text: string;
  readonly isError: boolean;
  readonly meta: Record<string, unknown>;
  readonly structured?: unknown;
  readonly raw: Wire;
}

export function mcpClient(toServer: Writable, fromServer: Readable): McpClient {
  const answers = new Map<unknown, (message: Wire) => void>();
  const early = new Map<unknown, Wire>();
  const heard: Wire[] = [];
  let last = 0;
  let rest = "";
  fromServer.on("data", (piece: Buffer) => {
    const lines = (rest + piece.toString("utf8")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = JSON.parse(line) as Wire;
      const waits = answers.get(message.id);
      if (message.method !== undefined) heard.push(message);
      else if (waits === undefined) early.set(message.id, message);
      else waits(message);
    }
  });
  const send = (message: object | string) =>
    void toServer.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  const start = (method: string, params: object = {}) => {
    last += 1;
    send({ jsonrpc: "2.0", id: last, method, params });
    return last;
  };
  const answerTo = (id: unknown) =>
    new Promise<Wire>((resolve) => {
      const known = early.get(id);
      if (known !== undefined) resolve(known);
      else answers.set(id, resolve);
    });
  const request = (method: string, params?: object) => answerTo(start(method, params));
  return {
    heard,
    send,
    start,
    answerTo,
    request,
    call: async (name, input = {}, more = {}) =>
      resultIn(await request("tools/call", { name, arguments: input, ...more })),
    end: () => toServer.end(),
  };
}

export function resultIn(raw: Wire): Result {
  const result = (raw["result"] ?? {}) as Record<string, unknown>;
  const content = (result["content"] ?? []) as { readonly text?: string }[];
  return {
    raw,
    text: content.map(({ text }) => text ?? "").join("\n"),
    isError: result["isError"] === true,
    meta: (result["_meta"] ?? {}) as Record<string, unknown>,
    structured: result["structuredContent"],
  };
}

export const CLIENT = {
  protocolVersion: "2025-11-25",
  capabilities: { roots: { listChanged: true }, elicitation: {} },
  clientInfo: { name: "test", version: "1" },
};

/** What every request of the stateless era carries. */
export const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

export interface McpWorld {
  readonly gate: Gate;
  readonly folder: string;
  readonly problems: string[];
  readonly client: McpClient;
  /** Another client of the same gateway. */
  connect(session?: string): McpClient;
  /** Lines that reached the upstream. */
  wire(): readonly string[];
  /** Calls of tools that reached the upstream. */
  calls(): readonly { readonly name: string; readonly arguments: object }[];
  ledger(): readonly string[];
  file(name: string): string;
  lines(name: string): readonly string[];
  /** A person's answers to everything that is open. */
  decide(verdict: "approve" | "reject"): Promise<void>;
}

export interface WorldOptions {
  readonly config?: object;
  readonly upstreams?: (place: { env: Record<string, string> }) => object[];
  readonly gate?: Partial<GateOptions>;
  readonly handshake?: "initialize" | "none";
}

export async function mcpWorld(options: WorldOptions = {}): Promise<McpWorld> {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-mcp-"));
  const file = (name: string) => path.join(folder, name);
  const store = memoryStore();
  const gate = createGate({ store, checkpoint: "inbox", ...options.gate });
  const upkeep = startUpkeep({ gate, everyMs: 20, onError: () => {} });
  const problems: string[] = [];
  const env = {
    WIRE_LOG: file("wire.log"),
    LEDGER: file("ledger.txt"),
    STATE: file("state.json"),
    TOOLS: file("tools.json"),
  };
  const upstreams = options.upstreams?.({ env }) ?? [
    { name: "tiny", command: process.execPath, args: [TINY], env, tools: READS },
  ];
  const config = readMcpConfig({ holdMs: 0, ...options.config, upstreams });
  const pins = openPins(file("pins.json"));
  const gateway = createGateway({ gate, config, pins, onProblem: (text) => problems.push(text) });
  const served: Promise<void>[] = [];
  const clients: McpClient[] = [];
  const connect = (session?: string) => {
    const input = new PassThrough();
    const output = new PassThrough();
    served.push(
      serveStdio(gateway, { input, output, ...(session === undefined ? {} : { session }) }),
    );
    const client = mcpClient(input, output);
    clients.push(client);
    return client;
  };
  onTestFinished(async () => {
    for (const client of clients) client.end();
    await Promise.all(served);
    await gateway.close();
    await upkeep.stop();
    await gate.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const client = connect();
  if (options.handshake !== "none") await handshake(client);
  const lines = (name: string) =>
    existsSync(file(name)) ? readFileSync(file(name), "utf8").split("\n").slice(0, -1) : [];
  const wire = () => lines("wire.log");
  return {
    gate,
    folder,
    problems,
    client,
    connect,
    file,
    lines,
    wire,
    calls: () =>
      wire()
        .filter((line) => line.includes("tools/call"))
        .map((line) => JSON.parse(line).params),
    ledger: () => lines("ledger.txt"),
    async decide(verdict) {
      for (const { id, hash } of await gate.interactions.list()) {
        if (verdict === "approve") await gate.interactions.approve(id, { hash, by: "ada" });
        else await gate.interactions.reject(id, { hash, by: "ada", reason: "not now" });
      }
    },
  };
}

export const READS = {
  count: { effect: "read" },
  get: { effect: "read" },
  slow: { effect: "read" },
};

export async function handshake(client: McpClient): Promise<void> {
  await client.request("initialize", CLIENT);
  client.send({ jsonrpc: "2.0", method: "notifications/initialized" });
}
