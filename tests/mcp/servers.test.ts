// Published MCP servers behind the gate, each with a tap on its input: nothing of a call may reach it before the approval. They
// are in tools/mcp, installed on demand: by `npm run proof`, or by hand with `npm ci --prefix tools/mcp`.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { canonicalJson } from "../../src/util/canonical-json.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { unpackedChromium } from "../console/browser.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { record } from "../support/record.ts";
import { SCALE } from "../support/scale.ts";
import { type McpWorld, mcpWorld, type Result } from "./world.ts";

const home = path.resolve(import.meta.dirname, "../../tools/mcp");
const packages = path.join(home, "node_modules");
const bin = (name: string) => path.join(packages, name, "dist/index.js");
const TAP = path.join(import.meta.dirname, "wire-tap.mjs");

if (SCALE !== "test") await install(home, "MCP servers (once, ~60 s)", process.env);
// skip: the servers of tools/mcp are 217 MB and take half a minute; the proof installs and starts them
const atScale = test.skipIf(SCALE === "test");

/** One server, and two calls of it that a person decides about. */
interface Row {
  /** How many tools it offers. */
  readonly tools: number;
  readonly profile?: string;
  /** What is known of its tools where there is no profile. */
  readonly own?: object;
  /** Prepares its folder and says how it is started. */
  open(folder: string): Promise<{ readonly args: readonly string[]; readonly seen: Seen }>;
}

/** What a test of one server looks at, once its folder is there. */
interface Seen {
  readonly read: Called;
  /** The same tool with other arguments: the first is approved, the second rejected. */
  readonly tool: string;
  readonly yes: JsonObject;
  readonly no: JsonObject;
  /** The read tool of its snapshot, which is called before the approval. */
  readonly snapshot?: string;
  /** How often the first and the second have happened, as the target itself shows it. */
  happened(world: McpWorld): Promise<readonly [yes: number, no: number]>;
  /** Whether what was there before is back; without it the call is irreversible, for this reason. */
  readonly undone?: (world: McpWorld) => Promise<boolean>;
  readonly whyNot?: string;
}

interface Called {
  readonly tool: string;
  readonly input: JsonObject;
}

const count = (text: string, part: string) => text.split(part).length - 1;
const isThere = async (client: McpWorld["client"], { tool, input }: Called, part: string) =>
  count((await client.call(tool, input)).text, part);

const dbhub = (dsnOf: (folder: string) => Promise<string>): Row => ({
  tools: 2,
  profile: "dbhub",
  async open(folder) {
    const sql = "select name as found from item";
    const rows = { tool: "execute_sql", input: { sql } };
    return {
      args: [bin("@bytebase/dbhub"), "--transport", "stdio", "--dsn", await dsnOf(folder)],
      seen: {
        read: { tool: "execute_sql", input: { sql: "select 1 as one" } },
        tool: "execute_sql",
        yes: { sql: "create table item as select 'yes' as name" },
        no: { sql: "create table other as select 'no' as name" },
        async happened({ client }) {
          const objects = { tool: "search_objects", input: { object_type: "table" } };
          const [yes, no] = [
            await isThere(client, rows, "yes"),
            await isThere(client, objects, "other"),
          ];
          return [yes, no];
        },
        whyNot: "does not say which rows",
      },
    };
  },
});

const SERVERS: Readonly<Record<string, Row>> = {
  "server-filesystem": {
    tools: 14,
    profile: "filesystem",
    async open(folder) {
      const [note, other] = [path.join(folder, "note.txt"), path.join(folder, "other.txt")];
      writeFileSync(note, "before\n");
      const now = () => readFileSync(note, "utf8");
      return {
        args: [bin("@modelcontextprotocol/server-filesystem"), folder],
        seen: {
          read: { tool: "read_text_file", input: { path: note } },
          tool: "write_file",
          yes: { path: note, content: "after\n" },
          no: { path: other, content: "x" },
          snapshot: "read_text_file",
          happened: async () => [count(now(), "after"), existsSync(other) ? 1 : 0],
          undone: async () => now() === "before\n",
        },
      };
    },
  },
  "server-memory": {
    tools: 9,
    profile: "memory",
    async open() {
      const graph = { tool: "read_graph", input: {} };
      const entity = (name: string): JsonObject => ({
        entities: [{ name, entityType: "person", observations: [] }],
      });
      return {
        args: [bin("@modelcontextprotocol/server-memory")],
        seen: {
          read: graph,
          tool: "create_entities",
          yes: entity("ada"),
          no: entity("eve"),
          happened: async ({ client }) => [
            await isThere(client, graph, '"ada"'),
            await isThere(client, graph, '"eve"'),
          ],
          undone: async ({ client }) => (await isThere(client, graph, '"ada"')) === 0,
        },
      };
    },
  },
  "server-everything": {
    // One of them is for clients that show forms.
    tools: 14,
    own: { echo: { effect: "read" } },
    async open() {
      return {
        args: [bin("@modelcontextprotocol/server-everything")],
        seen: {
          read: { tool: "echo", input: { message: "hello" } },
          tool: "get-sum",
          yes: { a: 1, b: 2 },
          no: { a: 3, b: 4 },
          // It keeps nothing: what reached it is all that happened.
          happened: async (world) => [
            count(reached(world, "get-sum").join(), '"a":1'),
            count(reached(world, "get-sum").join(), '"a":3'),
          ],
          whyNot: "",
        },
      };
    },
  },
  "git-mcp-server": {
    tools: 28,
    profile: "git",
    async open(folder) {
      const repository = path.join(folder, "repository");
      mkdirSync(repository);
      const git = (...args: string[]) =>
        execFileSync("git", ["-C", repository, ...args], { encoding: "utf8" });
      git("init", "-q");
      git("config", "user.name", "a");
      git("config", "user.email", "a@b");
      git("commit", "-q", "--allow-empty", "-m", "first");
      writeFileSync(path.join(repository, "note.txt"), "x\n");
      git("add", "note.txt");
      const log = () => git("log", "--format=%s");
      return {
        args: [bin("@cyanheads/git-mcp-server")],
        seen: {
          read: { tool: "git_status", input: { path: repository } },
          tool: "git_commit",
          yes: { path: repository, message: "second" },
          no: { path: repository, message: "third" },
          snapshot: "git_log",
          happened: async () => [count(log(), "second"), count(log(), "third")],
          undone: async () => log() === "first\n" && git("status", "--short") === "A  note.txt\n",
        },
      };
    },
  },
  "dbhub on SQLite": dbhub(async (folder) => {
    writeFileSync(path.join(folder, "shop.db"), "");
    return `sqlite://${path.join(folder, "shop.db")}`;
  }),
  "dbhub on PostgreSQL": dbhub(async () => {
    const { url, drop } = await freshDatabase(inject("pgUrl"));
    onTestFinished(drop);
    return url;
  }),
  playwright: {
    tools: 25,
    own: { browser_tabs: { effect: "read" } },
    async open() {
      const visits: string[] = [];
      const site = createServer(({ url = "" }, response) => {
        visits.push(url);
        response.setHeader("content-type", "text/html").end("<title>Shop</title><p>hello</p>");
      });
      await new Promise<void>((resolve) => void site.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => void site.close());
      const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
      const chromium = unpackedChromium() ?? "";
      const flags = ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium];
      const times = (page: string) => visits.filter((one) => one === page).length;
      return {
        args: [path.join(packages, "@playwright/mcp/cli.js"), ...flags],
        seen: {
          read: { tool: "browser_tabs", input: { action: "list" } },
          tool: "browser_navigate",
          yes: { url: `${url}shop` },
          no: { url: `${url}other` },
          happened: async () => [times("/shop"), times("/other")],
          whyNot: "",
        },
      };
    },
  },
};

/** Calls of a tool that reached the server, by their arguments. */
function reached(world: McpWorld, tool: string): readonly string[] {
  return world
    .lines("tap.log")
    .filter((line) => line.includes('"tools/call"'))
    .map((line) => JSON.parse(line).params as { name: string; arguments: JsonObject })
    .filter(({ name }) => name === tool)
    .map((params) => canonicalJson(params.arguments));
}

for (const [name, { tools, profile, own, open }] of Object.entries(SERVERS)) {
  atScale(
    `mcp ${name} behind the gate: its tools are listed, a read passes, of a write nothing arrives before the approval, it runs once, never after a rejection, and a rollback restores or says why not`,
    async () => {
      const folder = mkdtempSync(path.join(tmpdir(), "sallyport-server-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const { args, seen } = await open(folder);
      const { read, tool, yes, no, snapshot, happened, undone } = seen;
      const world = await mcpWorld({
        upstreams: ({ env }) => {
          const log = path.join(path.dirname(env["LEDGER"] ?? ""), "tap.log");
          return [
            {
              name: "up",
              command: process.execPath,
              args: [TAP, log, process.execPath, ...args],
              cwd: folder,
              env: { MEMORY_FILE_PATH: path.join(folder, "memory.jsonl") },
              ...(profile === undefined ? { tools: own } : { profile }),
            },
          ];
        },
      });
      const { client, decide, problems } = world;
      const listed = (await client.request("tools/list"))["result"] as { tools: unknown[] };
      expect(listed.tools).toHaveLength(tools);
      expect(problems).toEqual([]);
      expect((await client.call(read.tool, read.input)).isError).toBe(false);
      expect(reached(world, read.tool)).toContain(canonicalJson(read.input));

      let bytes = 0;
      const answers: Result[] = [];
      for (const [input, verdict] of [
        [yes, "approve"],
        [no, "reject"],
      ] as const) {
        const before = world.lines("tap.log").length;
        expect((await client.call(tool, input)).text).toContain("waits for approval");
        const since = world.lines("tap.log").slice(before);
        const ofCall = since.filter((line) => JSON.parse(line).params?.name !== snapshot);
        bytes += Buffer.byteLength(ofCall.join(""));
        await decide(verdict);
        answers.push(await client.call(tool, input));
      }
      expect(bytes).toBe(0);
      expect(answers[0]?.isError, answers[0]?.text).toBe(false);
      expect(answers[1]?.text).toContain("not now");
      const arrived = reached(world, tool);
      expect(arrived.filter((one) => one === canonicalJson(yes))).toHaveLength(1);
      expect(arrived).not.toContain(canonicalJson(no));
      const [times, ungated] = await happened(world);
      expect([times, ungated]).toEqual([1, 0]);

      const [decision] = await world.gate.decisions.list({ limit: 1 });
      const session = world.gate.sessions.open({ id: decision?.sessionId ?? "", agent: "op" });
      const report = await session.rollback("person:ada");
      if (undone === undefined) {
        expect(report.undone).toEqual([]);
        expect(JSON.stringify(report)).toContain(seen.whyNot ?? "");
        expect(await happened(world)).toEqual([1, 0]);
      } else await expect.poll(() => undone(world)).toBe(true);
      const figures = {
        servers: 1,
        "bytes upstream before approval": bytes,
        "ungated effects": ungated,
        "effects twice": times - 1,
      };
      record({ goal: "MCP-servers", what: name, figures });
    },
    120_000,
  );
}

atScale("mcp git-mcp-server without a profile: none of its hints lets a call pass", async () => {
  const world = await mcpWorld({
    upstreams: ({ env }) => {
      const log = path.join(path.dirname(env["LEDGER"] ?? ""), "tap.log");
      const args = [TAP, log, process.execPath, bin("@cyanheads/git-mcp-server")];
      return [{ name: "git", command: process.execPath, args }];
    },
  });
  const input = { path: world.folder };
  for (const tool of ["git_status", "git_init"]) {
    expect((await world.client.call(tool, input)).text).toContain("waits for approval");
    expect(reached(world, tool)).toEqual([]);
  }
  expect(existsSync(world.file(".git"))).toBe(false);
});
