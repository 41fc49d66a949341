// Options of the built-in tools, each with what it changes. Further ones are shown beside the tools.

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { createGate } from "sallyport";
import { memoryStore } from "sallyport/store/memory";
import {
  fileTools,
  postgresDatabase,
  sampleCall,
  shellRun,
  sqlQuery,
  type Tool,
} from "sallyport/tools";
import { expect, inject, onTestFinished, test, vi } from "vitest";

function newFolder(): string {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-options-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Calls these tools through a gate that lets everything in the folder run. */
function caller(tools: readonly Tool[], folder: string) {
  const rules = tools.map(({ name }) => ({
    id: name,
    effect: "allow" as const,
    tool: name,
    reason: "test",
  }));
  const fileRoots = [{ path: folder, access: "write" as const }];
  const policy = { version: "1", rules };
  const gate = createGate({ store: memoryStore(), tools: [...tools], fileRoots, policy });
  const session = gate.sessions.open({ agent: "agent:x", workingDirectory: folder });
  return async (tool: string, input: object) => {
    const { answer, text } = await session.call({ tool, input: input as never });
    return `${answer}: ${text}`;
  };
}

type ShellOptions = Parameters<typeof shellRun>[0];

async function inShell(options: ShellOptions, input: { command: string; timeoutMs?: number }) {
  const call = sampleCall(input, { workingDirectory: newFolder() });
  return (await shellRun(options).execute(call)).text;
}

test("shellRun: environment is set, inheritEnvironment replaces what is passed on", async () => {
  vi.stubEnv("SEEN", "inherited");
  onTestFinished(() => void vi.unstubAllEnvs());
  const shown = await inShell({ environment: { GIVEN: "yes" } }, { command: "env" });
  expect(shown).toContain("GIVEN=yes");
  expect(shown).not.toContain("SEEN=");
  const own = await inShell({ inheritEnvironment: ["PATH", "SEEN"] }, { command: "env" });
  expect(own).toContain("SEEN=inherited");
  expect(own).not.toContain("HOME=");
});

test("shellRun: maxTimeoutMs limits what a call may ask for, and its default; maxOutputBytes what is kept", async () => {
  const short = { maxTimeoutMs: 300 };
  const [issue] = problems(shellRun(short), { command: "true", timeoutMs: 301 });
  expect(issue).toContain("300");
  expect(problems(shellRun(short), { command: "true", timeoutMs: 300 })).toEqual([]);
  expect(await inShell(short, { command: "sleep 60" })).toContain("300 ms");
  const long = `echo ${"a".repeat(500)}`;
  expect(await inShell({ maxOutputBytes: 20 }, { command: long })).not.toContain("a".repeat(21));
  expect(await inShell({}, { command: long })).toContain("a".repeat(500));
});

function problems(tool: Tool, input: object): readonly string[] {
  const parsed = tool.parseInput(input as never);
  return parsed.ok ? [] : parsed.issues.map(({ message }) => message);
}

test("fileTools: maxBytes limits a file that is changed, maxReadBytes one that is read", async () => {
  const folder = newFolder();
  writeFileSync(path.join(folder, "long"), "a".repeat(30));
  const call = caller(fileTools({ maxBytes: 10, maxReadBytes: 20 }), folder);
  expect(await call("files.read", { path: "long" })).toMatch(/^failed: .*20/);
  expect(await call("files.write", { path: "new", content: "a".repeat(11) })).toMatch(
    /^failed: .*10/,
  );
  const wide = caller(fileTools({ maxReadBytes: 40 }), folder);
  expect(await wide("files.read", { path: "long" })).toMatch(/^done/);
});

test("postgresDatabase: statementTimeoutMs ends a query that takes longer", async () => {
  const pool = new pg.Pool({ connectionString: inject("pgUrl"), max: 1 });
  onTestFinished(() => pool.end());
  const database = postgresDatabase({ name: "shop", pool, statementTimeoutMs: 50 });
  const query = sqlQuery({ database, permissionClass: "readonly" });
  const call = caller([query], newFolder());
  expect(await call("sql.query", { sql: "SELECT 1 AS one" })).toMatch(/^done/);
  expect(await call("sql.query", { sql: "SELECT pg_sleep(60)" })).toMatch(
    /^failed: .*statement timeout/,
  );
});
