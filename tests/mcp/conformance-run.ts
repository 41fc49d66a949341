// The conformance suite of tools/mcp against the fixture server: directly, and through the gateway in every combination of
// carriers that the suite can reach.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createNodeServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createGate, type Gate } from "sallyport";
import { createServer } from "sallyport/http";
import { createGateway, openPins, readMcpConfig, serveHttp } from "sallyport/mcp";
import { memoryStore } from "sallyport/store/memory";
import { startUpkeep } from "../../src/gate/upkeep.ts";

const root = path.resolve(import.meta.dirname, "../..");
export const MCP_TOOLS = path.join(root, "tools/mcp");
const FIXTURE = path.join(MCP_TOOLS, "fixture-server.mjs");
const SUITE = path.join(MCP_TOOLS, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
export const SUITE_VERSION = "0.2.0-alpha.12";

/** What a server cannot do over stdio, so that there is nothing to compare. */
export const ONLY_HTTP: readonly string[] = ["server-sse-polling"];

export const ERAS = ["2025-11-25", "2026-07-28"] as const;
export type Era = (typeof ERAS)[number];

/** Passed and failed checks of one scenario. */
export type Score = readonly [passed: number, failed: number];
export type Scores = ReadonlyMap<string, Score>;

export interface Target {
  readonly name: string;
  readonly url: string;
  /** What the gateway told its operator. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** The fixture server as a process, over HTTP. */
export async function fixtureServer(): Promise<Target> {
  const child = spawn(process.execPath, [FIXTURE, "http"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await firstLine(child);
  return {
    name: "direct",
    url,
    problems: [],
    close: () => ended(child),
  };
}

export const CHAINS = {
  "through the gateway, upstream over HTTP": (url: string) => ({ url }),
  "through the gateway, upstream over stdio": () => ({
    command: process.execPath,
    args: [FIXTURE, "stdio"],
  }),
  "through two gateways, stdio between them": (url: string, config: string) => ({
    command: process.execPath,
    args: [
      "--conditions=sallyport-source",
      "--disable-warning=ExperimentalWarning",
      path.join(root, "src/cli/bin.ts"),
      "--data",
      path.join(path.dirname(config), "inner"),
      "mcp",
      "--allow-roots",
      "--upstream",
      `inner=${url}`,
      "--read-only",
      READ.join(","),
    ],
  }),
} as const;
export type Chain = keyof typeof CHAINS;

/** Every tool of the fixture passes without a person: what is compared is the way through. */
let READ: readonly string[] = [];

/** The gateway in front of the fixture server, by one of the chains. */
export async function gatewayServer(chain: Chain, fixture: string): Promise<Target> {
  READ = await toolNames(fixture);
  const tools = Object.fromEntries(READ.map((name) => [name, { effect: "read" }]));
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-conformance-inner-"));
  const place = CHAINS[chain](fixture, path.join(folder, "config"));
  const target = await gatewayOver(chain, { tools, ...place }, { roots: "allow" });
  return {
    ...target,
    async close() {
      await target.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The gateway on a real server, behind a door that adds the token, because the suite cannot send one. */
export async function gatewayOver(
  name: string,
  upstream: object,
  more: object,
): Promise<Target & { readonly gate: Gate }> {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-conformance-"));
  const problems: string[] = [];
  const store = memoryStore();
  const gate = createGate({ store, checkpoint: "inbox" });
  const config = readMcpConfig({ ...more, upstreams: [{ name: "fixture", ...upstream }] });
  const upkeep = startUpkeep({
    gate,
    everyMs: 50,
    onError: (error) => problems.push(String(error)),
  });
  const pins = openPins(path.join(folder, "pins.json"));
  const gateway = createGateway({ gate, config, pins, onProblem: (text) => problems.push(text) });
  const endpoint = serveHttp(gateway);
  const door = createNodeServer();
  await new Promise<void>((resolve) => void door.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(door.address() as AddressInfo).port}`;
  const inner = await freePort();
  const server = await createServer({
    store,
    listenPort: inner,
    gates: { default: gate },
    remote: { origins: [address], auth: "tokens" },
    mcp: { default: endpoint },
  });
  const token = await server.makeToken({ subject: "suite", roles: ["agent"] });
  door.on("request", (request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const passed = httpRequest(
      { host: "127.0.0.1", port: inner, method: request.method, path: request.url, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
      },
    );
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    request.pipe(passed);
  });
  return {
    name,
    gate,
    url: `${address}/mcp`,
    problems,
    async close() {
      door.close();
      door.closeAllConnections();
      await endpoint.close();
      await gateway.close();
      await upkeep.stop();
      await server.close();
      await gate.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The scenarios about tasks, all of them. The last one is skipped by the suite itself, which waits to be rewritten. */
export const TASK_SCENARIOS: readonly string[] = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-mrtr-input",
  "tasks-mrtr-composition",
  "tasks-required-task-error",
  "tasks-status-notifications",
];

/** The gateway in front of a server whose tools wait for people, and a reviewer: what it says about tasks is its own. */
export async function tasksServer(): Promise<Target> {
  const upstream = {
    command: process.execPath,
    args: [path.join(import.meta.dirname, "tasks-upstream.mjs")],
    tools: {
      greet: { effect: "read" },
      test_tool_with_task: { effect: "read" },
      failing_job: { task: "required" },
    },
  };
  const target = await gatewayOver("the gateway's own tasks", upstream, { holdMs: 10_000 });
  const stop = decideSoon(target.gate);
  return {
    ...target,
    close() {
      stop();
      return target.close();
    },
  };
}

const QUESTIONS: readonly (readonly [tool: string, questions: readonly string[]])[] = [
  ["confirm_delete", ["Really?"]],
  ["multi_input", ["Who are you?", "Really?"]],
];

/** A reviewer who approves after a while, and first asks back: once about deletions, twice about what needs two answers. */
function decideSoon(gate: Gate): () => void {
  const seen = new Map<string, number>();
  const timer = setInterval(async () => {
    for (const { id, hash, waitsFor, remarks } of await gate.interactions.list()) {
      const rounds = (seen.get(id) ?? 0) + 1;
      seen.set(id, rounds);
      const shown = JSON.stringify((await gate.interactions.shown(id))?.preview ?? {});
      if (waitsFor === "agent" || rounds < 4) continue;
      const questions = QUESTIONS.find(([tool]) => shown.includes(tool))?.[1] ?? [];
      if (remarks.length === 0 && questions.length > 0) {
        for (const text of questions) await gate.interactions.askBack(id, { by: "ada", text });
      } else await gate.interactions.approve(id, { hash, by: "ada" }).catch(() => {});
    }
  }, 150);
  return () => clearInterval(timer);
}

/** Runs the suite and reads its summary. */
export async function runSuite(url: string, era: Era): Promise<Scores> {
  const args = [SUITE, "server", "--url", url, "--requirements", era];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (piece: Buffer) => {
      text += piece.toString("utf8");
    });
  }
  await new Promise((resolve) => child.once("close", resolve));
  const lines = text.matchAll(/^[✓✗] (\S+): (\d+) passed, (\d+) failed/gmu);
  const scores = new Map<string, Score>();
  for (const [, name = "", passed, failed] of lines) {
    scores.set(name, [Number(passed), Number(failed)]);
  }
  if (scores.size === 0) throw new Error(`the suite said nothing of its results:\n${text}`);
  return scores;
}

export function total(scores: Scores): Score {
  return [...scores.values()].reduce<Score>(
    ([passed, failed], [p, f]) => [passed + p, failed + f],
    [0, 0],
  );
}

async function toolNames(url: string): Promise<readonly string[]> {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/list",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: meta } }),
  });
  const { result } = (await response.json()) as { result: { tools: { name: string }[] } };
  return result.tools.map(({ name }) => name);
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (piece: Buffer) => {
      text += piece.toString("utf8");
      const [line = "", rest] = text.split("\n");
      if (rest !== undefined) resolve(line);
    });
    child.once("exit", (code) => reject(new Error(`the fixture server ended with ${code}`)));
  });
}

async function ended(child: ChildProcess): Promise<void> {
  const over = new Promise((resolve) => child.once("close", resolve));
  child.kill();
  await over;
}

async function freePort(): Promise<number> {
  const server = createNodeServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
