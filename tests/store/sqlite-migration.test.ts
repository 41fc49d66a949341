import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyStore } from "../../src/audit/verify.ts";
import { type ChainHead, emptyHead, headAfter, sealEntry } from "../../src/model/audit-entry.ts";
import { newDraft } from "../../src/model/decision.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations/index.ts";
import { toIso } from "../../src/util/clock.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sallyport-migration-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const START = Date.parse("2026-11-15T06:00:00.000Z");
const TENANTS = ["globex", "acme"];
const EACH = 40;

/** A store as it was before chains had numbers: two tenants, whose entries were written in turns. */
function oldStore(file: string): Map<string, ChainHead> {
  const database = new Sqlite(file);
  for (const { sql, version } of MIGRATIONS) if (version <= 10) database.exec(sql);
  const insert = database.prepare(
    "INSERT INTO audit (tenant, seq, at, type, subject, session, actor, data, salt, data_hash, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const heads = new Map(TENANTS.map((tenant) => [tenant, emptyHead(tenant)]));
  for (let n = 1; n <= EACH; n += 1) {
    for (const [tenant, head] of heads) {
      const draft = { type: "t", subject: `s-${n}`, session: "x", actor: "a", data: { n } };
      const entry = sealEntry(head, draft, toIso(START + n), `salt-${n}`);
      // Every third one was erased: of its data only the hash is left.
      const isErased = n % 3 === 0;
      const kept = isErased ? [null, null, entry.dataHash] : [entry.data, entry.salt, null];
      const { seq, type, subject, session, actor, hash } = entry;
      insert.run(tenant, seq, START + n, type, subject, session, actor, ...kept, hash);
      heads.set(tenant, headAfter(entry));
    }
  }
  database.pragma("user_version = 10");
  database.pragma(`application_id = ${0x53414c59}`);
  database.close();
  return heads;
}

describe("a store of an earlier schema", () => {
  test("keeps every chain as it was, and goes on where each ended", async () => {
    const file = path.join(folder, "old.db");
    const heads = oldStore(file);
    const store = sqliteStore({ file });
    for (const tenant of TENANTS) {
      const { audit, decisions } = store.tenant(tenant);
      expect(await audit.head()).toEqual(heads.get(tenant));
      const raw = new TextEncoder().encode("{}");
      const diff = { sourceTool: "t", raw, metadata: {} };
      await decisions.stage(newDraft("session", diff, toIso(START)));
    }
    const report = await verifyStore(store);
    expect(report.problems).toEqual([]);
    const erased = Math.floor(EACH / 3);
    expect(report.tenants.map((one) => [one.tenant, one.entries, one.erased])).toEqual([
      ["acme", EACH + 1, erased],
      ["globex", EACH + 1, erased],
    ]);
    await store.close();
  });
});
