import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Sqlite from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ErrorCode, SallyportError } from "../../model/errors.ts";
import { sha256Hex } from "../../util/hash.ts";
import type { Migration } from "../ddl.ts";
import { type Database, MIGRATIONS, openDatabase } from "./database.ts";

let folder: string;
const at = (name: string) => path.join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sallyport-database-"));
});
afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true, force: true });
});

describe("opening", () => {
  test("creates a file that is marked as ours, durable and at the newest schema", () => {
    const database = openDatabase(at("new.db"), 100);
    const pragma = (name: string) => database.pragma(name, { simple: true });
    expect(pragma("application_id")).toBe(0x53414c59);
    expect(pragma("user_version")).toBe(MIGRATIONS.at(-1)?.version);
    expect(pragma("journal_mode")).toBe("wal");
    expect(pragma("synchronous"), "FULL").toBe(2);
    expect(pragma("foreign_keys")).toBe(1);
    database.close();
  });

  test("syncs through the drive's cache where a plain sync would stop there [SL5]", () => {
    const database = openDatabase(at("synced.db"), 100);
    const pragma = (name: string) => database.pragma(name, { simple: true });
    expect([pragma("fullfsync"), pragma("checkpoint_fullfsync")]).toEqual([1, 1]);
    database.close();
  });

  test("a second time changes nothing", () => {
    openDatabase(at("twice.db"), 100).close();
    const before = readFileSync(at("twice.db"));
    openDatabase(at("twice.db"), 100).close();
    expect(readFileSync(at("twice.db")).equals(before)).toBe(true);
  });

  test("takes an empty file for a new one", () => {
    writeFileSync(at("empty.db"), "");
    openDatabase(at("empty.db"), 100).close();
    expect(readFileSync(at("empty.db")).length).toBeGreaterThan(0);
  });

  test("takes a store in memory, which is for experiments", () => {
    const database = openDatabase(":memory:", 100);
    expect(database.prepare("SELECT count(*) FROM decisions").pluck().get()).toBe(0);
    database.close();
  });
});

describe("a store of an earlier version", () => {
  const NEXT = {
    version: MIGRATIONS.length + 1,
    name: "next",
    sql: "ALTER TABLE grants ADD COLUMN extra TEXT",
  };
  const open = (...more: readonly Migration[]) =>
    openDatabase(at("old.db"), 100, undefined, [...MIGRATIONS, ...more]);
  const put = (database: Database) =>
    database.exec(
      "INSERT INTO switches (tenant, id, state, reason, updated_at) VALUES ('acme', 'kill', 'running', '\"\"', 7)",
    );

  test("runs only the migrations it lacks, and keeps its rows", () => {
    const before = open();
    put(before);
    before.close();
    const after = open(NEXT);
    expect(after.pragma("user_version", { simple: true })).toBe(NEXT.version);
    expect(after.prepare("SELECT extra FROM grants").all()).toEqual([]);
    expect(after.prepare("SELECT state FROM switches").pluck().all()).toEqual(["running"]);
    after.close();
    open(NEXT).close();
    expectRefused("old.db", "store_incompatible", /newer version.*upgrade/);
  });

  test("stays as it was when a migration fails", () => {
    open().close();
    const broken = {
      version: NEXT.version,
      name: "broken",
      sql: `${NEXT.sql}; DROP TABLE nothing`,
    };
    expect(() => open(broken)).toThrow();
    const after = open();
    expect(after.pragma("user_version", { simple: true })).toBe(MIGRATIONS.at(-1)?.version);
    expect(() => after.prepare("SELECT extra FROM grants")).toThrow(/no such column/);
    after.close();
  });

  test("finds decisions that nobody was asked about by an index [SL6]", () => {
    const database = open();
    const query =
      "SELECT * FROM decisions WHERE tenant = ? AND unasked <= ? AND updated_at <= ? AND ord > ? ORDER BY ord LIMIT ?";
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${query}`).all("acme", 9, 9, 0, 200);
    expect(JSON.stringify(plan)).toContain("decisions_unasked");
    database.close();
  });
});

describe("what is refused, and left as it was", () => {
  test("a file that is no database", () => {
    writeFileSync(at("notes.txt"), "These are my notes, and nobody's database. ".repeat(40));
    expectRefused("notes.txt", "store_incompatible", /not a database/);
  });

  test("a file of a single byte, which SQLite itself takes for an empty one", () => {
    writeFileSync(at("scrap.db"), "S");
    expectRefused("scrap.db", "store_incompatible", /another program/);
  });

  test("another program's database", () => {
    const other = new Sqlite(at("other.db"));
    other.exec("CREATE TABLE songs (title TEXT)");
    other.close();
    expectRefused("other.db", "store_incompatible", /another program/);
  });

  test("another program's database without tables, but with a mark of its own", () => {
    const other = new Sqlite(at("marked.db"));
    other.pragma("application_id = 1234");
    other.close();
    expectRefused("marked.db", "store_incompatible", /another program/);
  });

  test.each(["WAL", "DELETE"])("a store of a newer version, in journal mode %s", (mode) => {
    openDatabase(at("newer.db"), 100).close();
    const future = new Sqlite(at("newer.db"));
    future.pragma("user_version = 9999");
    // A copy made with VACUUM INTO or from a backup is not in WAL mode.
    future.pragma(`journal_mode = ${mode}`);
    future.close();
    const error = expectRefused("newer.db", "store_incompatible", /newer version.*upgrade/);
    expect(error.details).toMatchObject({ schema: 9999, known: MIGRATIONS.at(-1)?.version });
  });

  test("a file cut off in the middle", () => {
    openDatabase(at("whole.db"), 100).close();
    const whole = readFileSync(at("whole.db"));
    writeFileSync(at("cut.db"), whole.subarray(0, 3_000));
    const error = expectRefused("cut.db", undefined, /./);
    expect(["store_incompatible", "store_unavailable"]).toContain(error.code);
  });

  test("a folder that does not exist", () => {
    const error = expectRefused("missing/store.db", "store_unavailable", /folder exists/);
    expect(error.details["file"]).toBe(at("missing/store.db"));
    expect(readdirSync(folder)).toEqual([]);
  });

  test("a folder in place of a file", () => {
    mkdirSync(at("folder.db"));
    expectRefused("folder.db", "store_unavailable", /folder/);
  });

  test("a store that may only be read", () => {
    openDatabase(at("mine.db"), 100).close();
    const bytes = readFileSync(at("mine.db"));
    chmodSync(at("mine.db"), 0o444);
    chmodSync(folder, 0o555);
    asNobody(() => expectRefused("mine.db", "store_unavailable", /writable/));
    expect(readFileSync(at("mine.db")).equals(bytes)).toBe(true);
    expect(readdirSync(folder)).toEqual(["mine.db"]);
  });

  test("a store that another process does not let go of is busy, not broken", () => {
    openDatabase(at("held.db"), 100).close();
    const holder = new Sqlite(at("held.db"));
    holder.pragma("locking_mode = EXCLUSIVE");
    holder.exec("BEGIN EXCLUSIVE; CREATE TABLE unfinished (x)");
    const started = performance.now();
    const error = thrown(() => openDatabase(at("held.db"), 20));
    expect(error).toMatchObject({ code: "store_busy", retry: "safe" });
    expect(performance.now() - started, "it waits as long as it was told to").toBeLessThan(2_000);
    holder.exec("ROLLBACK");
    holder.close();
  });
});

/** Opens, and expects a refusal that says what to do and leaves the file and its folder as they were. */
function expectRefused(name: string, code: ErrorCode | undefined, hint: RegExp): SallyportError {
  const before = contents(at(name));
  const error = thrown(() => openDatabase(at(name), 20));
  expect(error).toBeInstanceOf(SallyportError);
  const refusal = error as SallyportError;
  if (code !== undefined) expect(refusal.code).toBe(code);
  expect(refusal.details.hint).toMatch(hint);
  expect(contents(at(name))).toEqual(before);
  for (const left of ["-wal", "-shm", "-journal"])
    expect(contents(at(name) + left)).toBeUndefined();
  return refusal;
}

/** A short stand-in for what is in a file; undefined when there is none that could be read. */
function contents(file: string): string | undefined {
  try {
    return sha256Hex(readFileSync(file));
  } catch {
    return undefined;
  }
}

function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("it should have thrown");
}

/** File permissions do not apply to root, and containers run as root: so the call runs as another user. */
function asNobody(call: () => void): void {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    call();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}
