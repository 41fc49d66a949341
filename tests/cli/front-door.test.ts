// What a person types first: the version, init, the inbox as a table, short ids, a store file, a review without a server.

import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import pg from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { checkedConfig, defineConfig } from "../../src/cli/config.ts";
import { inboxTable, shortId } from "../../src/cli/render.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { postgresStore, primaryPool } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { manualClock } from "../../src/util/clock.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { cliPlace } from "./cli-process.ts";

const root = path.resolve(import.meta.dirname, "../..");

const refund = defineTool({
  name: "billing.refund",
  description: "Pays an invoice back.",
  input: {
    type: "object",
    properties: { invoice: { type: "string" } },
    required: ["invoice"],
    additionalProperties: false,
  },
  safety: { effect: "external" },
  dryRun: ({ input }) => `refunds invoice ${input["invoice"]} to the customer who paid it twice`,
  execute: () => "paid",
});

/** A store file with this many refunds that wait for a person, as an agent leaves it behind. */
async function waitingRefunds(
  file: string | Store,
  count: number,
  tenant = "default",
): Promise<readonly string[]> {
  await using store = typeof file === "string" ? sqliteStore({ file }) : file;
  const gate = createGate({ store, tenant, tools: [refund] });
  const session = gate.sessions.open({ agent: "agent:billing" });
  for (let number = 1; number <= count; number += 1) {
    await session.call({
      tool: refund.name,
      input: { invoice: `INV-${number}` },
      key: `${number}`,
    });
  }
  return (await gate.interactions.list()).map(({ id }) => id);
}

test("sallyport --version prints the version of package.json", async () => {
  const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  const { code, out } = await cliPlace().run("--version");
  expect([code, out]).toEqual([0, `${version}\n`]);
});

test("init in an empty folder writes a configuration that serve accepts, and a package.json with the script", async () => {
  const place = cliPlace();
  const { code, out } = await place.run("init");
  expect([code, out]).toEqual([0, expect.stringContaining("Wrote sallyport.config.ts")]);
  const manifest = JSON.parse(readFileSync(path.join(place.folder, "package.json"), "utf8"));
  expect(manifest).toEqual({
    private: true,
    type: "module",
    scripts: { gate: "sallyport serve --config sallyport.config.ts" },
  });
  mkdirSync(path.join(place.folder, "node_modules"));
  symlinkSync(root, path.join(place.folder, "node_modules", "sallyport"));
  const config = path.join(place.folder, "sallyport.config.ts");
  const server = await place.start("serve", "--config", config);
  expect(await server.stop()).toBe(0);
});

test("init finds the framework and the language, and adds only its script to package.json", async () => {
  const place = cliPlace();
  const file = path.join(place.folder, "package.json");
  writeFileSync(file, '{\n    "name": "shop",\n    "dependencies": { "langchain": "^1.5" }\n}\n');
  const { out } = await place.run("init");
  expect(out).toContain("Found the LangChain: gate its tools with sallyport/langchain.");
  // CommonJS without TypeScript: a plain file would not be a module.
  const config = readFileSync(path.join(place.folder, "sallyport.config.mjs"), "utf8");
  expect(config).toContain('import { gateMiddleware } from "sallyport/langchain";');
  expect(readFileSync(file, "utf8")).toContain('    "name": "shop",\n');
  expect(JSON.parse(readFileSync(file, "utf8")).scripts).toEqual({
    gate: "sallyport serve --config sallyport.config.mjs",
  });
});

test("what init writes compiles, for every framework and as TypeScript or JavaScript", {
  timeout: 180_000,
}, async () => {
  const place = cliPlace();
  mkdirSync(path.join(place.folder, "node_modules"));
  symlinkSync(root, path.join(place.folder, "node_modules", "sallyport"));
  const files: string[] = [];
  for (const framework of ["ai", "langchain", "none"]) {
    for (const language of ["typescript", "javascript"]) {
      const dependencies = { [framework]: "*", [language]: "*" };
      const manifest = JSON.stringify({ type: "module", dependencies });
      writeFileSync(path.join(place.folder, "package.json"), manifest);
      await place.run("init");
      const end = language === "typescript" ? "ts" : "js";
      const file = `${framework}.${end}`;
      renameSync(path.join(place.folder, `sallyport.config.${end}`), path.join(place.folder, file));
      files.push(file);
    }
  }
  const compilerOptions = { rootDir: "/", allowJs: true, checkJs: true, noEmit: true, types: [] };
  const config = { extends: path.join(root, "tsconfig.json"), compilerOptions, files };
  writeFileSync(path.join(place.folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", place.folder], { encoding: "utf8" });
  // What is wrong in src itself is for `npm run check` to say.
  expect(stdout.split("\n").filter((line) => /^\w+\.[jt]s\(/.test(line))).toEqual([]);
});

test("init overwrites nothing: it says what it kept and what it would have done", async () => {
  const place = cliPlace();
  writeFileSync(path.join(place.folder, "sallyport.config.ts"), "mine");
  const manifest = '{ "type": "module", "scripts": { "gate": "open" } }';
  writeFileSync(path.join(place.folder, "package.json"), manifest);
  const { code, out } = await place.run("init");
  expect(code).toBe(0);
  expect(out).toContain("Kept sallyport.config.ts.");
  expect(out).toContain('which is "open"');
  expect(out).toContain("sallyport serve --config sallyport.config.ts");
  expect(readFileSync(path.join(place.folder, "sallyport.config.ts"), "utf8")).toBe("mine");
  expect(readFileSync(path.join(place.folder, "package.json"), "utf8")).toBe(manifest);
});

test("a configuration with a wrong or unknown field is refused with its name", () => {
  expect(defineConfig({ tools: [] })).toEqual({ tools: [] });
  const problem = (config: unknown) => {
    try {
      checkedConfig(config, "my.config.ts");
      return "";
    } catch (error) {
      return String(error);
    }
  };
  expect(problem({})).toContain("must be an object with `tools`");
  expect(problem({ tools: [], polcy: {} })).toContain("there is no field `polcy`");
  expect(problem({ tools: [], store: {} })).toContain("`store` must be a text");
  expect(problem({ tools: [], database: "x" })).toContain("`database` is named `store`");
  expect(problem({ tools: [], approvalMs: "1h" })).toContain("`approvalMs` must be a whole number");
  expect(problem({ tools: [], people: "ada" })).toContain("`people` must be a list");
});

test("interactions list fits 100 columns, says what would happen, and its short ids are accepted", async () => {
  const place = cliPlace();
  const server = await place.start("demo", "--every", "200", "--no-anchors");
  try {
    await vi.waitFor(async () => {
      const { out } = await place.run("interactions", "list");
      expect(out.split("\n").length).toBeGreaterThan(4);
    }, 60_000);
    const { out } = await place.run("interactions", "list");
    const [head = "", ...rows] = out.trimEnd().split("\n");
    expect(head.split(/\s+/)).toEqual(["#", "id", "tool", "summary", "agent", "age", "due"]);
    for (const row of rows) expect(row.length, row).toBeLessThanOrEqual(100);
    const short = rows[0]?.split(/\s+/)[1] ?? "";
    const got = await place.run("--json", "interactions", "get", short);
    expect(got.err).toBe("");
    expect(shortId(JSON.parse(got.out).id)).toBe(short);
    // All begin with the same time.
    const { items } = JSON.parse((await place.run("--json", "interactions", "list")).out);
    const many = await place.run("interactions", "get", items[0].id.slice(0, 4));
    expect([many.code, many.err]).toEqual([3, expect.stringContaining(items[1].id)]);
    expect((await place.run("interactions", "list", "--wide")).out).toContain("sessionId");
  } finally {
    await server.stop();
  }
}, 120_000);

test("interactions list works over the store alone, with its filters, and says what needs a server", async () => {
  const place = cliPlace();
  const none = await place.run("interactions", "list");
  expect([none.code, none.err]).toEqual([4, expect.stringContaining("No server runs")]);
  mkdirSync(place.data, { mode: 0o700 });
  await waitingRefunds(path.join(place.data, "sallyport.db"), 2);
  const { out, err } = await place.run("interactions", "list");
  const rows = out.trimEnd().split("\n");
  expect([rows.length, err]).toEqual([3, ""]);
  expect(rows[1]).toContain("INV-1");
  const listed = async (...args: readonly string[]) =>
    JSON.parse((await place.run("--json", "interactions", "list", ...args)).out).items.length;
  expect(await listed("--limit", "1")).toBe(1);
  expect(await listed("--status", "resolved")).toBe(0);
  const paged = await place.run("interactions", "list", "--cursor", "1");
  expect(paged.err).toContain("No server runs");
  const got = await place.run("interactions", "get", "0000");
  expect([got.code, got.err]).toEqual([4, expect.stringContaining("sallyport review")]);
});

test("a text of wide signs keeps the inbox within 100 columns", async () => {
  const clock = manualClock(Date.UTC(2026, 10, 15, 6));
  await using store = memoryStore({ clock });
  const gate = createGate({ store, clock });
  const session = gate.sessions.open({ agent: "agent:経理".repeat(4) });
  await session.ask({ callId: "c", text: "請求書を返金しますか".repeat(9), deadlineMs: 3_600_000 });
  const page = { items: await gate.interactions.list(), next: null };
  const [, row = ""] = inboxTable(page, { isWhole: true, now: clock.now() + 90 * 60_000 }).split(
    "\n",
  );
  const cells = [...row].reduce((sum, sign) => sum + (sign <= "\x7f" ? 1 : 2), 0);
  expect(cells).toBeLessThanOrEqual(100);
  expect(row).toMatch(/1h\s+overdue$/);
});

test("--store opens a file of any name for the commands that need no server, and creates none", async () => {
  const place = cliPlace();
  const file = path.join(place.folder, "kept.db");
  await waitingRefunds(file, 1);
  const checked = await place.run("--store", file, "store", "check");
  expect(checked.out).toContain("0 problems");
  const stopped = await place.run(
    "--json",
    "--store",
    file,
    "stop",
    "--direct",
    "prices are wrong",
  );
  expect(JSON.parse(stopped.out)).toMatchObject({ stopped: true, tenants: ["default"] });
  const missing = await place.run("--store", `${file}.missing`, "store", "check");
  expect([missing.code, missing.err]).toEqual([3, expect.stringContaining("There is no store")]);
  expect(existsSync(`${file}.missing`)).toBe(false);
  const twice = await place.run("--store", file, "store", "check", "--database", "postgres://x/y");
  expect(twice.err).toContain("Name the store once");
});

test("--store opens a PostgreSQL database by its URL for the list and the commands without a server", async () => {
  const { url, drop } = await freshDatabase(inject("pgUrl"));
  onTestFinished(drop);
  const pool = primaryPool(pg, url, { max: 4 });
  onTestFinished(async () => pool.end());
  await waitingRefunds(await postgresStore({ pool }), 2);
  const place = cliPlace();
  const { out, err } = await place.run("--store", url, "interactions", "list");
  expect(err).toBe("");
  expect(out.trimEnd().split("\n").slice(1).join()).toMatch(/INV-1.*INV-2/s);
  const checked = await place.run("--store", url, "store", "check");
  expect(checked.out).toContain("0 problems");
  // Only looked at: nothing was made beside it.
  expect(existsSync(place.data)).toBe(false);
});

test("interactions list shows one tenant of a store, by default `default`, and refuses to choose for a server", async () => {
  const place = cliPlace();
  mkdirSync(place.data, { mode: 0o700 });
  const file = path.join(place.data, "sallyport.db");
  await waitingRefunds(file, 1);
  await waitingRefunds(file, 2, "acme");
  const listed = async (...args: readonly string[]) =>
    JSON.parse((await place.run("--json", "interactions", "list", ...args)).out).items.length;
  expect([await listed(), await listed("--tenant", "acme")]).toEqual([1, 2]);
  const args = ["--url", "http://127.0.0.1:1", "--token", "t", "interactions", "list"];
  const served = await place.run(...args, "--tenant", "acme");
  expect(served.err).toContain("A server lists the tenant that it serves");
});

const SCRIPT = "/usr/bin/script";

// skip: a terminal for the test comes from script(1)
test.skipIf(!existsSync(SCRIPT))(
  "review works over the store alone in a terminal, and is refused without one",
  async () => {
    const place = cliPlace();
    mkdirSync(place.data, { mode: 0o700 });
    const file = path.join(place.data, "sallyport.db");
    await waitingRefunds(file, 1);
    const refused = await place.run("review");
    expect([refused.code, refused.err]).toEqual([3, expect.stringContaining("needs a terminal")]);

    const bin = path.join(root, "src/cli/bin.ts");
    const node = `${process.execPath} --conditions=sallyport-source --disable-warning=ExperimentalWarning`;
    const child = spawn(
      SCRIPT,
      ["-qec", `${node} ${bin} --data ${place.data} review`, "/dev/null"],
      {
        cwd: place.folder,
        env: { ...process.env, SALLYPORT_STATE: place.state, SALLYPORT_URL: undefined },
      },
    );
    let said = "";
    child.stdout.on("data", (piece) => (said += piece));
    const ended = new Promise((resolve) => child.once("close", resolve));
    await vi.waitFor(() => expect(said).toContain("a approve, r reject"), 60_000);
    expect(said).toContain("refunds invoice INV-1");
    child.stdin.write("a\n");
    expect(await ended, said).toBe(0);

    // The agent's process has the tool: it executes what was approved, once.
    await using store = sqliteStore({ file });
    const gate = createGate({ store, tools: [refund] });
    const [question] = await gate.interactions.list({ status: "resolved" });
    expect(question).toMatchObject({ outcome: "approved", answeredBy: "person:you" });
    await gate.executeAwaiting();
    const session = gate.sessions.open({ id: question?.sessionId ?? "", agent: "agent:billing" });
    expect(await session.resultOf("1")).toMatchObject({ answer: "done", text: "paid" });
  },
  120_000,
);
