// The log in blocks: stores that began with the first format, blocks that somebody changed in the file, and proofs for
// single entries.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Sqlite from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { checkProof, type InclusionProof, proveEntry } from "../../src/audit/proof.ts";
import { exportStore, readExport } from "../../src/audit/trail.ts";
import { verifyStore, verifyTrail } from "../../src/audit/verify.ts";
import {
  type AuditEntry,
  type ChainHead,
  emptyHead,
  entryHash,
  GENESIS,
  headAfter,
  packBlock,
  sealEntry,
  unpackBlock,
} from "../../src/model/audit-entry.ts";
import { MIGRATIONS, openDatabase } from "../../src/store/sqlite/database.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { anchorsFor, codesOf, PUBLIC_KEYS } from "./fixtures.ts";

function newFile(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-blocks-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return path.join(folder, "store.db");
}

const AT = Date.UTC(2026, 10, 15, 6);

/** Entries as the first version wrote them. */
function oldTrail(tenant: string, count: number): AuditEntry[] {
  const trail: AuditEntry[] = [];
  let head: ChainHead = emptyHead(tenant);
  for (let n = 1; n <= count; n += 1) {
    const draft = { type: "decision.staged", subject: `d-${n}`, session: "s", actor: "a" };
    const sealed = sealEntry(
      head,
      { ...draft, data: { n } },
      new Date(AT).toISOString(),
      `salt-${n}`,
    );
    const entry = { ...sealed, v: 1 } as const;
    trail.push({ ...entry, hash: entryHash(entry) });
    head = headAfter(trail.at(-1) as AuditEntry);
  }
  return trail;
}

/** A store file as the first version left it. */
function oldStore(file: string, trails: readonly (readonly AuditEntry[])[]): void {
  const database = openDatabase(file, 1_000, 1_000, MIGRATIONS.slice(0, 1));
  const insert = database.prepare(
    "INSERT INTO audit (ord, at, type, subject, session, actor, data, salt, hash) VALUES ((? << 32) | ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  for (const [index, trail] of trails.entries()) {
    database
      .prepare("INSERT INTO chains (nr, tenant) VALUES (?, ?)")
      .run(index + 1, trail[0]?.tenant);
    for (const { seq, type, subject, session, actor, data, salt, hash } of trail) {
      insert.run(index + 1, seq, AT, type, subject, session, actor, data, salt, hash);
    }
  }
  database.close();
}

async function exported(store: ReturnType<typeof sqliteStore>): Promise<AuditEntry[]> {
  const lines: string[] = [];
  for await (const line of exportStore(store)) lines.push(line);
  const entries: AuditEntry[] = [];
  for await (const entry of readExport([lines.join("")])) entries.push(entry);
  return entries;
}

test("a store of the first format is continued in blocks; store and export verify across the change, with anchors from before [I17]", async () => {
  const file = newFile();
  const old = [oldTrail("acme", 7), oldTrail("bolt", 1)];
  oldStore(file, old);
  const store = sqliteStore({ file });
  onTestFinished(() => store.close());
  const anchors = await anchorsFor(old.map((trail) => headAfter(trail.at(-1) as AuditEntry)));
  const { killSwitch, audit } = store.tenant("acme");
  await killSwitch.stop("drill", { actor: "person:ada" });
  await killSwitch.resume("over", { actor: "person:ada" });
  const entries = await audit.read({ after: 0, limit: 100 });
  expect(entries.map(({ v }) => v)).toEqual([1, 1, 1, 1, 1, 1, 1, 2, 2]);
  expect(entries.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(entries[7]?.prev).toBe(entries[6]?.hash);
  for (let after = 0; after < 9; after += 1) {
    expect(await audit.read({ after, limit: 2 })).toEqual(entries.slice(after, after + 2));
  }
  expect(await audit.head()).toEqual(headAfter(entries[8] as AuditEntry));
  expect((await store.heads()).map(({ tenant, seq }) => [tenant, seq])).toEqual([
    ["acme", 9],
    ["bolt", 1],
  ]);
  const terms = { anchors, publicKeys: PUBLIC_KEYS };
  expect(await verifyStore(store, { ...terms, pageSize: 3 })).toMatchObject({
    ok: true,
    entries: 10,
  });
  expect(await verifyTrail(await exported(store), terms)).toMatchObject({ ok: true, entries: 10 });
  await expect(proveEntry(audit, 3)).rejects.toMatchObject({ code: "invalid_input" });
});

test("a process of the earlier version cannot write a store that was brought up", () => {
  const file = newFile();
  oldStore(file, [oldTrail("acme", 1)]);
  const old = new Sqlite(file);
  onTestFinished(() => void old.close());
  const insert = old.prepare(
    "INSERT INTO audit (ord, at, type, subject, session, actor, hash) VALUES (?, 1, '', '', '', '', '')",
  );
  openDatabase(file, 1_000).close();
  expect(() => insert.run((1n << 32n) | 2n)).toThrow(/no such table/);
});

interface StoredBlock {
  readonly ord: number;
  readonly last: number;
  readonly at: number;
  readonly head: string;
  readonly body: Uint8Array;
}

type Tampering = (database: Sqlite.Database, blocks: readonly StoredBlock[]) => void;

const update = (database: Sqlite.Database, ord: number, set: string, value: unknown) =>
  database.prepare(`UPDATE audit_blocks SET ${set} WHERE ord = ?`).run(value, ord);

/** A change of the entries of one block, of the second unless told, hashed again as far as told. */
function forge(change: Partial<AuditEntry>, isSealedAgain: boolean, at = 1): Tampering {
  return (database, blocks) => {
    const [before, block] = [blocks.at(at - 1), blocks.at(at)];
    const entries = unpackBlock("acme", block as StoredBlock, before?.head ?? GENESIS);
    const forged = entries.map((entry) => ({ ...entry, ...change }));
    const body = packBlock(forged);
    update(database, block?.ord ?? 0, "body = ?", body);
    if (!isSealedAgain) return;
    const again = unpackBlock("acme", { ...(block as StoredBlock), body }, before?.head ?? GENESIS);
    const head = Buffer.from(entryHash(again.at(-1) as AuditEntry), "hex");
    update(database, block?.ord ?? 0, "head = ?", head);
  };
}

const TAMPERINGS: Readonly<Record<string, Tampering>> = {
  "an actor": forge({ actor: "human:boss" }, false),
  "an actor in the last block": forge({ actor: "human:boss" }, false, -1),
  "data with its salt": forge({ data: "{}", salt: "x" }, false),
  "an actor, with the block sealed again": forge({ actor: "human:boss" }, true),
  "a subject, with the block sealed again": forge({ subject: "else" }, true),
  "an erased salt": forge({ salt: null }, false),
  "the time": (database, blocks) => update(database, blocks[1]?.ord ?? 0, "at = at + ?", 5),
  "the head": (database, blocks) =>
    update(database, blocks[1]?.ord ?? 0, "head = ?", Buffer.alloc(32)),
  "a bit of the body": (database, blocks) => {
    const body = Buffer.from(blocks[1]?.body ?? []);
    body[9] = (body[9] ?? 0) ^ 1;
    update(database, blocks[1]?.ord ?? 0, "body = ?", body);
  },
  "a block deleted": (database, blocks) =>
    database.prepare("DELETE FROM audit_blocks WHERE ord = ?").run(blocks[1]?.ord),
  "the first block deleted": (database, blocks) =>
    database.prepare("DELETE FROM audit_blocks WHERE ord = ?").run(blocks[0]?.ord),
  "the last block deleted": (database, blocks) =>
    database.prepare("DELETE FROM audit_blocks WHERE ord = ?").run(blocks.at(-1)?.ord),
  "two blocks swapped": (database, blocks) => {
    for (const [one, other] of [
      [1, 2],
      [2, 1],
    ] as const) {
      update(database, blocks[one]?.ord ?? 0, "body = ?", blocks[other]?.body);
    }
  },
  "an entry more in a block": (database, [first, second]) => {
    const entries = unpackBlock("acme", second as StoredBlock, first?.head ?? GENESIS);
    update(database, second?.ord ?? 0, "body = ?", packBlock([...entries, ...entries]));
  },
  "everything deleted": (database) => database.exec("DELETE FROM audit_blocks"),
};

test("a block that somebody changed in the file is found, whatever was changed [T35]", async () => {
  const missed: string[] = [];
  const onlyByAnchor: string[] = [];
  for (const [what, tamper] of Object.entries(TAMPERINGS)) {
    const file = newFile();
    const store = sqliteStore({ file });
    const { killSwitch, audit } = store.tenant("acme");
    for (let n = 0; n < 4; n += 1) await killSwitch.stop(`drill ${n}`, { actor: "person:ada" });
    const anchors = await anchorsFor([await audit.head()]);
    await store.close();
    const database = new Sqlite(file);
    const blocks = database
      .prepare(
        "SELECT ord, last, at, lower(hex(head)) AS head, body FROM audit_blocks ORDER BY ord",
      )
      .all() as StoredBlock[];
    expect(blocks.length).toBeGreaterThan(2);
    tamper(database, blocks);
    database.close();
    const changed = sqliteStore({ file });
    const report = await verifyStore(changed, { anchors, publicKeys: PUBLIC_KEYS, pageSize: 2 });
    const alone = await verifyStore(changed, { pageSize: 2 });
    await changed.close();
    if (report.ok || codesOf(report).length === 0) missed.push(what);
    if (alone.ok) onlyByAnchor.push(what);
  }
  expect(missed).toEqual([]);
  // The heads of the blocks show every other change by themselves.
  expect(onlyByAnchor).toEqual(["the last block deleted", "everything deleted"]);
});

test("the export of a store whose last block somebody changed in the file does not verify by itself: what was stored is exported, not what would fit [T35]", async () => {
  const file = newFile();
  const store = sqliteStore({ file });
  const { killSwitch } = store.tenant("acme");
  for (let n = 0; n < 4; n += 1) await killSwitch.stop(`drill ${n}`, { actor: "person:ada" });
  expect(await verifyTrail(await exported(store), {})).toMatchObject({ ok: true });
  await store.close();
  const database = new Sqlite(file);
  const query =
    "SELECT ord, last, at, lower(hex(head)) AS head, body FROM audit_blocks ORDER BY ord";
  const blocks = database.prepare(query).all() as StoredBlock[];
  TAMPERINGS["an actor in the last block"]?.(database, blocks);
  database.close();
  const changed = sqliteStore({ file });
  onTestFinished(() => changed.close());
  expect(await verifyTrail(await exported(changed), {})).toMatchObject({ ok: false });
});

test("a proof shows that one entry is in the trail, without the others and without the store", async () => {
  const store = sqliteStore({ file: newFile() });
  onTestFinished(() => store.close());
  const { killSwitch, audit } = store.tenant("acme");
  for (let n = 0; n < 9; n += 1) await killSwitch.stop(`drill ${n}`, { actor: "person:ada" });
  const head = await audit.head();
  const anchors = await anchorsFor([head]);
  await killSwitch.stop("after the anchor", { actor: "person:ada" });
  for (let seq = 1; seq <= head.seq; seq += 1) {
    const proof = JSON.parse(
      JSON.stringify(await proveEntry(audit, seq, anchors)),
    ) as InclusionProof;
    expect(JSON.stringify(proof.links)).not.toContain("drill");
    expect(checkProof(proof, PUBLIC_KEYS)).toMatchObject({ ok: true, isAnchored: true });
    expect(checkProof(proof)).toMatchObject({ ok: true, isAnchored: false });
  }
  const proof = await proveEntry(audit, 3, anchors);
  const { entry, links, anchor } = proof;
  const forgeries: readonly InclusionProof[] = [
    { ...proof, entry: { ...entry, actor: "human:boss" } },
    { ...proof, entry: { ...entry, data: "{}" } },
    { ...proof, entry: { ...entry, seq: 4 } },
    { ...proof, links: links.slice(1) },
    { ...proof, links: links.toReversed().concat(links) },
    { ...proof, links: links.map((link) => ({ ...link, leaf: `${link.leaf}"` })) },
    { ...proof, links: links.map((link) => ({ ...link, leaf: GENESIS })) },
    { ...proof, head: { ...proof.head, hash: GENESIS } },
    { ...proof, head: { ...proof.head, tenant: "bolt" } },
    { ...proof, anchor: { ...(anchor as NonNullable<typeof anchor>), sig: "AAAA" } },
    { ...proof, anchor: { ...(anchor as NonNullable<typeof anchor>), seq: 1 } },
    {} as InclusionProof,
  ];
  for (const forged of forgeries) {
    expect(checkProof(forged, PUBLIC_KEYS), JSON.stringify(forged).slice(0, 200)).toMatchObject({
      ok: false,
    });
  }
  await expect(proveEntry(audit, 99)).rejects.toMatchObject({ code: "not_found" });
});
