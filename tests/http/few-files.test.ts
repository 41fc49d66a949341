// Where the system allows a process few open files, agents must not be able to use up all of them.

import { spawn } from "node:child_process";
import { Agent, request } from "node:http";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { withinOpenFiles } from "../../src/http/connections.ts";

const CHILD = path.join(import.meta.dirname, "few-files-child.ts");
const NODE = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
const LIMITS = { total: 4_096, strangers: 256, perSender: 256, agents: 3_072 };

test("connections: limits fit what the process may open, in proportion, and leave some for people [H5]", () => {
  expect(withinOpenFiles(LIMITS, undefined)).toEqual(LIMITS);
  expect(withinOpenFiles(LIMITS, 20_000)).toEqual(LIMITS);
  for (const files of [64, 256, 1_024, 4_096]) {
    const { total, strangers, perSender, agents } = withinOpenFiles(LIMITS, files);
    expect(total, String(files)).toBeLessThan(files);
    expect(strangers + agents, String(files)).toBeLessThan(total * 0.85);
    expect(perSender, String(files)).toBeGreaterThan(0);
  }
});

test("connections: agents of a server with few open files leave the kill switch and health answering [H5]", {
  timeout: 60_000,
}, async (context) => {
  // skip: other systems do not report how many files are allowed
  context.skip(
    process.platform !== "linux",
    "other systems do not report how many files are allowed",
  );
  const shell = ["-c", 'ulimit -n 300; exec "$0" "$@"', process.execPath, ...NODE, CHILD];
  const child = spawn("/bin/sh", shell, { stdio: ["pipe", "pipe", "inherit"] });
  const lines: Agent[] = [];
  onTestFinished(() => {
    for (const line of lines) line.destroy();
    child.stdin.end();
  });
  const { url, agents, operator } = JSON.parse(
    await new Promise<string>((resolve) => child.stdout.once("data", (text) => resolve(`${text}`))),
  ) as { url: string; agents: readonly string[]; operator: string };
  /** Leaves its connection open. */
  const ask = (token: string, agent: Agent) =>
    new Promise<string>((resolve) => {
      const headers = { authorization: `Bearer ${token}` };
      const sent = request(`${url}/v1/me`, { agent, headers }, (answer) => {
        answer.resume().on("end", () => resolve(String(answer.statusCode)));
      });
      sent.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
      sent.end();
    });
  const counts: Record<string, number> = {};
  for (const token of agents) {
    const own = new Agent({ keepAlive: true });
    lines.push(own);
    for (const status of await Promise.all(Array.from({ length: 10 }, () => ask(token, own)))) {
      counts[status] = (counts[status] ?? 0) + 1;
    }
  }
  expect(Object.keys(counts)).toEqual(["200", "503"]);
  const client = createClient({ url, token: operator, retries: 0 });
  expect(await client.switch.stop({ reason: "flooded" })).toEqual({ stopped: true });
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});
