// `sallyport store backup` as an operator runs it beside a server that keeps writing.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { verifyStore } from "sallyport";
import { sqliteStore } from "sallyport/store/sqlite";
import { expect, onTestFinished, test } from "vitest";

const BIN = path.resolve(import.meta.dirname, "../../src/cli/bin.ts");
const FLAGS = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
const FILLED = 800;
/** Random, because the log deflates its entries: what repeats takes no room. */
const filler = () => randomBytes(48_000).toString("base64");

test("store backup: a copy completes while another process commits continuously, and it verifies [SH10]", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-backup-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const data = path.join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  const copy = path.join(folder, "copy.db");
  await using store = sqliteStore({ file: path.join(data, "sallyport.db") });
  const { refusals } = store.tenant("acme");
  const write = (n: number) =>
    refusals.record({
      callId: `c-${n}`,
      sessionId: "s",
      actor: "agent:x",
      data: { filler: filler(), n },
    });
  // Many portions of pages, so that commits come in between.
  await Promise.all(Array.from({ length: FILLED }, (_, n) => write(n)));

  const env = { ...process.env, SALLYPORT_STATE: path.join(folder, "state") };
  const args = [...FLAGS, BIN, "--data", data, "store", "backup", copy];
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  let told = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    told += text;
  });
  const ended = once(child, "exit");
  let isOver = false;
  const over = ended.then(() => {
    isOver = true;
  });
  const giveUp = setTimeout(() => child.kill("SIGKILL"), 20_000);
  let written = 0;
  while (!isOver) {
    await write(FILLED + written);
    written += 1;
  }
  clearTimeout(giveUp);
  await over;
  expect(await ended, "the backup did not end beside a writer").toEqual([0, null]);
  const steps = told.match(/\d+ of \d+ pages/g) ?? [];
  expect(new Set(steps).size, "void: one step copied it all").toBeGreaterThan(3);
  expect(written, "void: nobody wrote meanwhile").toBeGreaterThan(20);

  await using copied = sqliteStore({ file: copy });
  const { ok, entries } = await verifyStore(copied);
  expect(ok).toBe(true);
  expect(entries).toBeGreaterThanOrEqual(FILLED);
});
