// What a bad disk leaves behind: a log that ends early, and rows that say something else. Both are noticed by default.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Sqlite from "better-sqlite3";
import { expect, onTestFinished, test, vi } from "vitest";
import { openStore, storeFile } from "../../src/cli/open-store.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import type { Store } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const BIN = path.resolve(import.meta.dirname, "../../src/cli/bin.ts");
const FLAGS = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];

function scene() {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-damaged-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const state = path.join(folder, "state");
  vi.stubEnv("SALLYPORT_STATE", state);
  onTestFinished(() => void vi.unstubAllEnvs());
  const paid: string[] = [];
  const pay = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute({ input }) {
      paid.push(JSON.stringify(input));
      return "paid";
    },
  });
  const portOver = (store: Store) =>
    createGate({
      store,
      tenant: "default",
      tools: [pay],
      validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
      guard: allowAlways,
      policy: { version: "1", rules: [{ id: "a", effect: "allow", tool: "bank.*", reason: "t" }] },
    });
  return { data: path.join(folder, "data"), state, paid, portOver };
}

async function verify(data: string, state: string) {
  const child = spawn(process.execPath, [...FLAGS, BIN, "--data", data, "audit", "verify"], {
    env: { ...process.env, SALLYPORT_STATE: state },
  });
  let out = "";
  child.stdout.on("data", (piece) => (out += piece));
  const [code] = await once(child, "exit");
  return { code, out };
}

test("a store whose log is truncated by a damaged frame executes nothing, and verify reports it [O1]", async () => {
  const { data, state, paid, portOver } = scene();
  const file = storeFile({ data: data });
  const store = await openStore({ data });
  const session = portOver(store).sessions.open({ id: "s", agent: "agent:x" });
  for (const n of [1, 2, 3, 4]) {
    const key = `k-${n}`;
    await session.call({ callId: key, key, tool: "bank.pay", input: { n } });
  }
  const copies = [file, `${file}-wal`].map((from) => [`${from}.copy`, from] as const);
  for (const [copy, from] of copies) copyFileSync(from, copy);
  await store.close();
  for (const [copy, from] of copies) copyFileSync(copy, from);
  const log = readFileSync(`${file}-wal`);
  const middle = Math.floor(log.length / 2);
  log[middle] = (log[middle] ?? 0) ^ 1;
  writeFileSync(`${file}-wal`, log);
  rmSync(`${file}-shm`, { force: true });

  const back = await openStore({ data });
  const again = portOver(back).sessions.open({ id: "s", agent: "agent:x" });
  const repeated = again.call({ callId: "k-4", key: "k-4", tool: "bank.pay", input: { n: 4 } });
  await expect(repeated).rejects.toMatchObject({ code: "store_rolled_back" });
  await back.close();
  expect(paid).toHaveLength(4);
  expect(await verify(data, state)).toMatchObject({ code: 6 });
});

test("verify compares the records with the log, and a changed row is reported [O2]", async () => {
  const { data, state, portOver } = scene();
  const store = await openStore({ data });
  const session = portOver(store).sessions.open({ id: "s", agent: "agent:x" });
  await session.call({ callId: "c", tool: "bank.pay", input: { n: 1 } });
  await store.close();
  expect((await verify(data, state)).code).not.toBe(6);
  const direct = new Sqlite(storeFile({ data: data }));
  direct.prepare("UPDATE operations SET tool = 'bank.qay'").run();
  direct.close();
  const { code, out } = await verify(data, state);
  expect(code).toBe(6);
  expect(out).toContain("do not agree with the trail");
});
