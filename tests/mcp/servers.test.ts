// Published MCP servers behind the gate, each with a tap on its input: nothing of a call may reach it before the approval. They are in tools/mcp, installed on demand: by `npm run proof`, or by hand with
// `npm ci --prefix tools/mcp`.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { unpackedChromium } from "../console/browser.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { SCALE } from "../support/scale.ts";
import { type McpWorld, mcpWorld } from "./world.ts";

const home = path.resolve(import.meta.dirname, "../../tools/mcp");
const packages = path.join(home, "node_modules");
if (SCALE !== "test") await install(home, "MCP servers (once, ~60 s)", process.env);
const installed = existsSync(path.join(packages, "@modelcontextprotocol/server-filesystem"));
// skip: the servers of tools/mcp are not installed (217 MB); the proof installs them
const published = test.skipIf(!installed);

const bin = (name: string) => path.join(packages, name, "dist/index.js");
const TAP = path.join(import.meta.dirname, "wire-tap.mjs");

/** Calls of a tool that reached the server. */
const reached = (world: McpWorld, tool: string) =>
  world
    .lines("tap.log")
    .filter((line) => line.includes('"tools/call"') && line.includes(`"name":"${tool}"`));

const behind = (name: string, args: (folder: string) => string[], more: object = {}) =>
  mcpWorld({
    upstreams: ({ env }) => {
      const folder = path.dirname(env["LEDGER"] ?? "");
      const own = { MEMORY_FILE_PATH: path.join(folder, "memory.jsonl") };
      const tapped = [TAP, path.join(folder, "tap.log"), process.execPath, ...args(folder)];
      return [{ name, command: process.execPath, args: tapped, cwd: folder, env: own, ...more }];
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
    expect(reached(world, "write_file")).toEqual([]);
    await decide("approve");
    expect((await client.call("write_file", input)).isError).toBe(false);
    expect(readFileSync(file, "utf8")).toBe("after\n");
    expect(reached(world, "write_file")).toHaveLength(1);
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
    expect(reached(world, "write_file")).toEqual([]);
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
  expect(reached(world, "create_entities")).toEqual([]);
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
    expect(reached(world, "echo")).toEqual([]);
    await decide("approve");
    expect((await client.call("echo", { message: "hello" })).text).toContain("hello");
    expect(problems).toEqual([]);
  },
);

published("mcp git-mcp-server: without a profile none of its hints lets a call pass", async () => {
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
  expect(reached(world, "git_status")).toEqual([]);
});

published(
  "mcp git-mcp-server: with its profile a commit waits, is made once, and is rolled back into the index",
  async () => {
    const world = await behind("git", () => [bin("@cyanheads/git-mcp-server")], { profile: "git" });
    const { client, decide } = world;
    const repository = world.file("repository");
    mkdirSync(repository);
    const git = (...args: string[]) =>
      execFileSync(
        "git",
        ["-C", repository, "-c", "user.name=a", "-c", "user.email=a@b", ...args],
        {
          encoding: "utf8",
        },
      );
    git("init", "-q");
    git("config", "user.name", "a");
    git("config", "user.email", "a@b");
    git("commit", "-q", "--allow-empty", "-m", "first");
    writeFileSync(path.join(repository, "note.txt"), "x\n");
    git("add", "note.txt");
    const status = await client.call("git_status", { path: repository });
    expect(status).toMatchObject({ isError: false });
    const input = { path: repository, message: "second" };
    expect((await client.call("git_commit", input)).text).toContain("waits for approval");
    expect(reached(world, "git_commit")).toEqual([]);
    expect(git("log", "--format=%s")).toBe("first\n");
    await decide("approve");
    expect((await client.call("git_commit", input)).isError).toBe(false);
    expect(git("log", "--format=%s")).toBe("second\nfirst\n");
    expect(reached(world, "git_commit")).toHaveLength(1);
    await rolledBack(world);
    await expect.poll(() => git("log", "--format=%s")).toBe("first\n");
    expect(git("status", "--short")).toBe("A  note.txt\n");
  },
);

const DATABASES = {
  SQLite: async (folder: string) => ({
    dsn: `sqlite://${path.join(folder, "shop.db")}`,
    drop: async () => {},
  }),
  PostgreSQL: async () => {
    const { url, drop } = await freshDatabase(inject("pgUrl"));
    return { dsn: url, drop };
  },
};

for (const [kind, open] of Object.entries(DATABASES)) {
  published(
    `mcp dbhub on ${kind}: a statement waits, runs once after the approval and never after a rejection`,
    async () => {
      const place = mkdtempSync(path.join(tmpdir(), "sallyport-dbhub-"));
      const { dsn, drop } = await open(place);
      onTestFinished(async () => {
        await drop();
        rmSync(place, { recursive: true, force: true });
      });
      if (kind === "SQLite") writeFileSync(path.join(place, "shop.db"), "");
      const args = [bin("@bytebase/dbhub"), "--transport", "stdio", "--dsn", dsn];
      const world = await behind("db", () => args, { profile: "dbhub" });
      const { client, decide } = world;
      const run = async (sql: string, verdict: "approve" | "reject") => {
        const before = reached(world, "execute_sql").length;
        expect((await client.call("execute_sql", { sql })).text).toContain("waits for approval");
        expect(reached(world, "execute_sql")).toHaveLength(before);
        await decide(verdict);
        return client.call("execute_sql", { sql });
      };
      expect((await run("create table item (n integer)", "approve")).isError).toBe(false);
      await run("insert into item values (1)", "approve");
      await run("insert into item values (2)", "reject");
      const rows = await client.call("execute_sql", { sql: "select n, 'row' as kind from item" });
      expect(rows.isError).toBe(false);
      expect(rows.text.match(/"row"/g)).toHaveLength(1);
      expect((await client.call("search_objects", { object_type: "table" })).text).toContain(
        "item",
      );
    },
  );
}

published(
  "mcp playwright: the browser opens a page only after the approval",
  async () => {
    const chromium = unpackedChromium();
    let visits = 0;
    const site = createServer((_, response) => {
      visits += 1;
      response.setHeader("content-type", "text/html").end("<title>Shop</title><p>hello</p>");
    });
    await new Promise<void>((resolve) => void site.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void site.close());
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
    const flags = ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium ?? ""];
    const world = await behind("browser", () => [
      path.join(packages, "@playwright/mcp/cli.js"),
      ...flags,
    ]);
    const { client, decide } = world;
    expect((await client.call("browser_navigate", { url })).text).toContain("waits for approval");
    expect([visits, reached(world, "browser_navigate")]).toEqual([0, []]);
    await decide("approve");
    const opened = await client.call("browser_navigate", { url });
    expect(opened.text).toContain("Shop");
    expect(reached(world, "browser_navigate")).toHaveLength(1);
    expect(visits).toBeGreaterThan(0);
    await client.call("browser_navigate", { url: `${url}other` });
    await decide("reject");
    const refused = await client.call("browser_navigate", { url: `${url}other` });
    expect(refused.text).toContain("not now");
    expect(reached(world, "browser_navigate")).toHaveLength(1);
  },
  120_000,
);
