// What `doctor` says about a PostgreSQL server, as a real process.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { runApart } from "../fuzz/cli-run.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { isWanted } from "../support/stores.ts";

// skip: STORES names the stores to test, and postgres is not one of them
test.skipIf(!isWanted("postgres"))(
  "doctor reports settings that lose acknowledged writes, and creates nothing in the database [SH2 SM9]",
  { timeout: 120_000 },
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sallyport-doctor-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { url, drop } = await freshDatabase(inject("pgUrl"));
    onTestFinished(drop);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    const { fsync } = (await client.query("SHOW fsync")).rows[0];
    const told = async () => {
      const args = ["--json", "--data", path.join(folder, "data"), "doctor", "--database", url];
      const { code, out } = await runApart(args, folder);
      const findings: { what: string; ok: boolean; text: string }[] = JSON.parse(out);
      return { code, of: (what: string) => findings.find((one) => one.what === what) };
    };
    const before = await told();
    expect(before.of("store")?.text).toMatch(/store migrate/);
    expect(before.of("postgres durability")?.ok).toBe(fsync === "on");
    expect(before.of("postgres collation")?.ok).toBe(true);
    const { rows } = await client.query("SELECT 1 FROM pg_namespace WHERE nspname = 'sallyport'");
    expect(rows, "looking makes nothing").toEqual([]);
    const data = path.join(folder, "data");
    await runApart(["--data", data, "store", "migrate", "--database", url], folder);
    expect((await told()).of("store")).toMatchObject({ ok: true, text: "postgres, 0 tenants" });
  },
);
