// Published MCP servers behind the gate. They are in tools/mcp, installed on demand: by `npm run proof`, or by hand with
// `npm ci --prefix tools/mcp`.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { SCALE } from "../support/scale.ts";
import { type McpWorld, mcpWorld } from "./world.ts";

const home = path.resolve(import.meta.dirname, "../../tools/mcp");
const packages = path.join(home, "node_modules");
if (SCALE !== "test") await install(home, "MCP servers (once, ~60 s)", process.env);
const installed = existsSync(path.join(packages, "@modelcontextprotocol/server-filesystem"));
// skip: the servers of tools/mcp are not installed (217 MB); the proof installs them
const published = test.skipIf(!installed);

const bin = (name: string) => path.join(packages, name, "dist/index.js");

const behind = (name: string, args: (folder: string) => string[], more: object = {}) =>
  mcpWorld({
    upstreams: ({ env }) => {
      const folder = path.dirname(env["LEDGER"] ?? "");
      const own = { MEMORY_FILE_PATH: path.join(folder, "memory.jsonl") };
      return [
        { name, command: process.execPath, args: args(folder), cwd: folder, env: own, ...more },
      ];
    },
  });

const files = () =>
  behind("files", (folder) => [bin("@modelcontextprotocol/server-filesystem"), folder], {
    profile: "filesystem",
  });

async function rolledBack(world: McpWorld) {
  const [decision] = await world.gate.decisions.list({ limit: 1 });
  const session = world.gate.sessions.open({ id: decision?.sessionId ?? "", agent: "operator" });
  return session.rollback("person:ada");
}

published(
  "mcp server-filesystem: reads pass, a write waits, runs once, and is rolled back to the earlier content",
  async () => {
    const world = await files();
    const { client, decide } = world;
    const file = world.file("note.txt");
    writeFileSync(file, "before\n");
    const read = await client.call("read_text_file", { path: file });
    expect(read).toMatchObject({ text: "before\n", isError: false });
    const input = { path: file, content: "after\n" };
    expect((await client.call("write_file", input)).text).toContain("waits for approval");
    expect(readFileSync(file, "utf8")).toBe("before\n");
    await decide("approve");
    expect((await client.call("write_file", input)).isError).toBe(false);
    expect(readFileSync(file, "utf8")).toBe("after\n");
    await rolledBack(world);
    await expect.poll(() => readFileSync(file, "utf8")).toBe("before\n");
  },
);

published(
  "mcp server-filesystem: a rejected write never happens, and every tool of the server is offered",
  async () => {
    const world = await files();
    const { client, decide, problems } = world;
    const listed = (await client.request("tools/list")) as unknown as {
      result: { tools: unknown[] };
    };
    expect(listed.result.tools).toHaveLength(14);
    const file = world.file("new.txt");
    await client.call("write_file", { path: file, content: "x" });
    await decide("reject");
    expect((await client.call("write_file", { path: file, content: "x" })).text).toContain(
      "not now",
    );
    expect(existsSync(file)).toBe(false);
    expect(problems).toEqual([]);
  },
);

published("mcp server-memory: what was created is deleted by a rollback", async () => {
  const world = await behind("memory", () => [bin("@modelcontextprotocol/server-memory")], {
    profile: "memory",
  });
  const { client, decide } = world;
  const input = { entities: [{ name: "ada", entityType: "person", observations: [] }] };
  expect((await client.call("create_entities", input)).isError).toBe(true);
  expect((await client.call("read_graph")).text).not.toContain("ada");
  await decide("approve");
  expect((await client.call("create_entities", input)).structured).toMatchObject(input);
  expect((await client.call("read_graph")).text).toContain("ada");
  expect((await rolledBack(world)).undone).toHaveLength(1);
  expect((await client.call("read_graph")).text).not.toContain("ada");
});

published(
  "mcp server-everything: a call waits and returns the server's own answer after the approval",
  async () => {
    const world = await behind("everything", () => [
      bin("@modelcontextprotocol/server-everything"),
    ]);
    const { client, decide, problems } = world;
    expect((await client.call("echo", { message: "hello" })).text).toContain("waits for approval");
    await decide("approve");
    expect((await client.call("echo", { message: "hello" })).text).toContain("hello");
    expect(problems).toEqual([]);
  },
);

published(
  "mcp git-mcp-server: all of its tools are offered, and none of its hints lets a call pass",
  async () => {
    const world = await behind("git", () => [bin("@cyanheads/git-mcp-server")]);
    const { client, problems } = world;
    const listed = (await client.request("tools/list")) as unknown as {
      result: { tools: unknown[] };
    };
    expect(problems).toEqual([]);
    expect(listed.result.tools).toHaveLength(28);
    const input = { path: world.folder };
    expect((await client.call("git_init", input)).text).toContain("waits for approval");
    expect((await client.call("git_status", input)).text).toContain("waits for approval");
    expect(existsSync(world.file(".git"))).toBe(false);
  },
);
