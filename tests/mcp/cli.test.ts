// `sallyport mcp` as an MCP host starts it: a real process on standard input and output, decided in another process.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createGate } from "sallyport";
import { sqliteStore } from "sallyport/store/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { type CliPlace, cliPlace } from "../cli/cli-process.ts";
import { handshake, type McpClient, mcpClient, TINY } from "./world.ts";

const root = path.resolve(import.meta.dirname, "../..");

function startMcp(
  place: CliPlace,
  args: readonly string[],
): { client: McpClient; ended: Promise<unknown> } {
  const bin = path.join(root, "src/cli/bin.ts");
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning", bin];
  const child = spawn(process.execPath, [...flags, "--data", place.data, "mcp", ...args], {
    cwd: place.folder,
    env: {
      ...process.env,
      SALLYPORT_STATE: place.state,
      LEDGER: path.join(place.folder, "ledger.txt"),
      WIRE_LOG: path.join(place.folder, "wire.log"),
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stderr.resume();
  const ended = new Promise((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.stdin.end();
    await ended;
  });
  return { client: mcpClient(child.stdin, child.stdout), ended };
}

/** Another process would decide; another gate over the same file is as far away. */
async function approveAll(place: CliPlace): Promise<void> {
  const store = await sqliteStore({ file: path.join(place.data, "sallyport.db") });
  const gate = createGate({ store });
  for (const { id, hash } of await gate.interactions.list()) {
    await gate.interactions.approve(id, { hash, by: "person:ada" });
  }
  await store.close();
}

test("sallyport mcp: a write waits, is approved in another process and runs once; reads named by a flag pass", async () => {
  const place = cliPlace();
  const upstream = `tiny=${process.execPath} ${TINY}`;
  const { client } = startMcp(place, [
    "--upstream",
    upstream,
    "--read-only",
    "count",
    "--hold",
    "0",
  ]);
  await handshake(client);
  const input = { line: "one" };
  expect((await client.call("append", input)).text).toContain("waits for approval");
  expect(await client.call("count")).toMatchObject({ text: "0", isError: false });
  await approveAll(place);
  await expect.poll(async () => existsSync(path.join(place.folder, "ledger.txt"))).toBe(true);
  expect(await client.call("append", input)).toMatchObject({
    text: "appended one",
    isError: false,
  });
  expect(readFileSync(path.join(place.folder, "ledger.txt"), "utf8")).toBe("one\n");
});

test("sallyport mcp: a configuration that does not fit names its field, and nothing is started", async () => {
  const place = cliPlace();
  const file = path.join(place.folder, "mcp.json");
  writeFileSync(
    file,
    JSON.stringify({
      mcp: { upstreams: [{ name: "a", command: "x", tools: { t: { effect: "maybe" } } }] },
    }),
  );
  const { code, err } = await place.run("mcp", "--config", file);
  expect(code).not.toBe(0);
  expect(err).toContain("mcp.upstreams.0.tools.t.effect");
  expect(existsSync(place.data)).toBe(false);
  expect((await place.run("mcp")).err).toContain("mcp.upstreams");
});

test("sallyport mcp --accept: forgets the pinned definitions of a tool, and says when there are none", async () => {
  const place = cliPlace();
  const { client, ended } = startMcp(place, ["--upstream", `tiny=${process.execPath} ${TINY}`]);
  await handshake(client);
  await client.request("tools/list");
  client.end();
  await ended;
  const file = path.join(place.data, "mcp-pins.json");
  expect(Object.keys(JSON.parse(readFileSync(file, "utf8")).tiny)).toContain("append");
  expect((await place.run("mcp", "--accept", "tiny.append")).out).toContain("tiny.append");
  expect(Object.keys(JSON.parse(readFileSync(file, "utf8")).tiny)).not.toContain("append");
  const none = await place.run("mcp", "--accept", "tiny.append");
  expect(none.code).not.toBe(0);
});
