// The kill switch when no server answers: real processes that write the store themselves.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import path from "node:path";
import pg from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { endPool } from "../support/postgres-connections.ts";
import { freshDatabase } from "../support/postgres-database.ts";

const root = path.dirname(path.dirname(import.meta.dirname));
const bin = [
  "--conditions=sallyport-source",
  "--disable-warning=ExperimentalWarning",
  path.join(root, "src/cli/bin.ts"),
];
const me = `cli:${userInfo().username}`;

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), "sallyport-stop-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

function sallyport(cwd: string, ...args: readonly string[]) {
  const child = spawn(process.execPath, [...bin, "--json", ...args], { cwd });
  let [out, err] = ["", ""];
  child.stdout.on("data", (piece) => (out += piece));
  child.stderr.on("data", (piece) => (err += piece));
  return new Promise<{ code: number | null; out: string; err: string }>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
}

async function serving(cwd: string): Promise<ChildProcess> {
  const server = spawn(process.execPath, [...bin, "serve"], { cwd });
  let said = "";
  server.stdout.on("data", (piece) => (said += piece));
  onTestFinished(async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const closed = new Promise((resolve) => server.once("close", resolve));
    server.kill("SIGKILL");
    await closed;
  });
  await vi.waitFor(() => expect(said).toContain("/signin?link="), { timeout: 100_000 });
  return server;
}

async function lastSwitch(store: ReturnType<typeof sqliteStore>, tenant = "default") {
  const entries = await store.tenant(tenant).audit.read({ after: 0, limit: 1_000 });
  return entries.filter(({ type }) => type.startsWith("switch.")).at(-1);
}

test("stop and resume: without a server they write the store, and the trail names who did it [H5]", {
  timeout: 100_000,
}, async () => {
  const cwd = folder();
  const data = path.join(cwd, "data");
  const made = await sallyport(cwd, "store", "migrate", "--data", data);
  expect(made.code).toBe(0);
  const store = sqliteStore({ file: path.join(data, "sallyport.db") });
  onTestFinished(() => store.close());
  await store.tenant("default").killSwitch.resume("begin", { actor: "test" });
  const stopped = await sallyport(cwd, "stop", "fire", "--data", data);
  expect(stopped).toMatchObject({ code: 0 });
  expect(JSON.parse(stopped.out)).toEqual({ stopped: true, tenants: ["default"], by: me });
  expect(await store.tenant("default").killSwitch.isStopped()).toBe(true);
  expect(await lastSwitch(store)).toMatchObject({ type: "switch.stopped", actor: me });
  const resumed = await sallyport(cwd, "resume", "out", "--data", data);
  expect(JSON.parse(resumed.out)).toMatchObject({ stopped: false });
  expect(await store.tenant("default").killSwitch.isStopped()).toBe(false);
  expect(await lastSwitch(store)).toMatchObject({ type: "switch.resumed", actor: me });
});

test("stop: --direct writes the store beside a running server, which then starts no effect [H5]", {
  timeout: 100_000,
}, async () => {
  const cwd = folder();
  await serving(cwd);
  const stopped = await sallyport(cwd, "stop", "--direct", "fire");
  expect(stopped).toMatchObject({ code: 0, err: "" });
  expect(JSON.parse(stopped.out)).toMatchObject({ stopped: true, by: me });
  const status = await sallyport(cwd, "status");
  expect(JSON.parse(status.out)).toMatchObject({ switch: { stopped: true } });
});

test("stop: a server that does not answer is bypassed, unless it was named [H5]", {
  timeout: 100_000,
}, async () => {
  const cwd = folder();
  const server = await serving(cwd);
  // It holds all its connections and answers none.
  server.kill("SIGSTOP");
  const stopped = await sallyport(cwd, "stop", "hung");
  expect(stopped.code).toBe(0);
  expect(stopped.err).toContain("Writing to the store directly");
  expect(JSON.parse(stopped.out)).toMatchObject({ stopped: true, by: me });
  const named = await sallyport(cwd, "stop", "--url", "http://127.0.0.1:9", "--token", "t");
  expect(named.code).not.toBe(0);
  expect(named.out).toBe("");
  server.kill("SIGCONT");
});

test("stop: no store is created, and with several tenants resume needs a name [H5]", {
  timeout: 100_000,
}, async () => {
  const cwd = folder();
  const none = await sallyport(cwd, "stop", "--direct");
  expect(none.code).toBe(3);
  expect(none.err).toContain("not_found");
  const data = path.join(cwd, ".sallyport");
  await sallyport(cwd, "store", "migrate");
  writeFileSync(path.join(data, "note"), "");
  const store = sqliteStore({ file: path.join(data, "sallyport.db") });
  onTestFinished(() => store.close());
  for (const tenant of ["one", "two"]) {
    await store.tenant(tenant).killSwitch.resume("begin", { actor: "test" });
  }
  expect(JSON.parse((await sallyport(cwd, "stop")).out)).toMatchObject({ tenants: ["one", "two"] });
  expect((await sallyport(cwd, "resume")).err).toContain("--tenant");
  expect((await sallyport(cwd, "resume", "--tenant", "one")).code).toBe(0);
  expect(await store.tenant("one").killSwitch.isStopped()).toBe(false);
  expect(await store.tenant("two").killSwitch.isStopped()).toBe(true);
});

test("stop: --database writes a PostgreSQL store without a server [H5]", {
  timeout: 100_000,
}, async () => {
  const cwd = folder();
  const fresh = await freshDatabase(inject("pgUrl"));
  const pool = new pg.Pool({ connectionString: fresh.url, max: 3 });
  const store = await postgresStore({ pool });
  await store.tenant("default").killSwitch.resume("begin", { actor: "test" });
  const stopped = await sallyport(cwd, "stop", "fire", "--database", fresh.url);
  expect(stopped).toMatchObject({ code: 0, err: "" });
  expect(await store.tenant("default").killSwitch.isStopped()).toBe(true);
  await store.close();
  await endPool(pool);
  await fresh.drop();
});
