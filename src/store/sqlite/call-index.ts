import Sqlite from "better-sqlite3";
import { fromIso, toIso } from "../../util/clock.ts";
import { createPrivateFile } from "../../util/files.ts";
import {
  bucketMs,
  byCountKey,
  type CallCount,
  type CallDocument,
  type CallFilter,
  type CallIndex,
  type CallOutcome,
  type CountBy,
  type IndexedCall,
  memoryCallIndex,
  searchedWords,
} from "../call-index.ts";
import { asStoreError } from "./database.ts";

// The index of calls in a file of its own beside the store: it takes no turn from the writers, and may be deleted.

const TABLES = `
CREATE TABLE IF NOT EXISTS calls (
  row INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, seq INTEGER NOT NULL,
  at INTEGER NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL, title TEXT NOT NULL,
  outcome TEXT NOT NULL, decided_by TEXT NOT NULL, reason TEXT NOT NULL, wait_ms INTEGER, words TEXT NOT NULL,
  UNIQUE (tenant, id)
) STRICT;
CREATE INDEX IF NOT EXISTS calls_by_time ON calls (tenant, at, id);
CREATE INDEX IF NOT EXISTS calls_by_outcome ON calls (tenant, outcome, at, id);
CREATE INDEX IF NOT EXISTS calls_by_agent ON calls (tenant, agent, at, id);
CREATE INDEX IF NOT EXISTS calls_by_tool ON calls (tenant, tool, at, id);
CREATE TABLE IF NOT EXISTS places (tenant TEXT PRIMARY KEY, seq INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE VIRTUAL TABLE IF NOT EXISTS call_words USING fts5 (
  words, content='calls', content_rowid='row', tokenize='unicode61 remove_diacritics 0', prefix='2 3', detail=none
);
CREATE TRIGGER IF NOT EXISTS calls_added AFTER INSERT ON calls BEGIN
  INSERT INTO call_words (rowid, words) VALUES (new.row, new.words);
END;
CREATE TRIGGER IF NOT EXISTS calls_removed AFTER DELETE ON calls BEGIN
  INSERT INTO call_words (call_words, rowid, words) VALUES ('delete', old.row, old.words);
END;
CREATE TRIGGER IF NOT EXISTS calls_changed AFTER UPDATE OF words ON calls BEGIN
  INSERT INTO call_words (call_words, rowid, words) VALUES ('delete', old.row, old.words);
  INSERT INTO call_words (rowid, words) VALUES (new.row, new.words);
END;`;

const PUT = `INSERT INTO calls (tenant, id, kind, seq, at, session_id, agent, tool, title, outcome, decided_by, reason, wait_ms, words)
VALUES (@tenant, @id, @kind, @seq, @at, @sessionId, @agent, @tool, @title, @outcome, @by, @reason, @waitMs, @words)
ON CONFLICT (tenant, id) DO UPDATE SET kind = excluded.kind, seq = excluded.seq, at = excluded.at,
  session_id = excluded.session_id, agent = excluded.agent, tool = excluded.tool, title = excluded.title,
  outcome = excluded.outcome, decided_by = excluded.decided_by, reason = excluded.reason,
  wait_ms = excluded.wait_ms, words = excluded.words WHERE excluded.seq >= calls.seq`;

export interface SqliteCallIndexes {
  of(tenant: string): CallIndex;
  close(): void;
}

/** Opened with its first use. A store in memory has its index in memory. */
export function sqliteCallIndexes(file: string, patienceMs: number): SqliteCallIndexes {
  let database: Sqlite.Database | undefined;
  const inMemory = new Map<string, CallIndex>();
  const use = () => {
    if (database !== undefined) return database;
    const place = `${file}.calls`;
    createPrivateFile(place);
    database = new Sqlite(place, { timeout: patienceMs });
    database.pragma("journal_mode = WAL");
    // It can be built again: a lost commit costs a second reading of some entries.
    database.pragma("synchronous = NORMAL");
    database.exec(TABLES);
    return database;
  };
  return {
    of(tenant) {
      if (file !== ":memory:") return indexOf(tenant, file, use);
      const known = inMemory.get(tenant) ?? memoryCallIndex();
      inMemory.set(tenant, known);
      return known;
    },
    close: () => void database?.close(),
  };
}

function indexOf(tenant: string, file: string, use: () => Sqlite.Database): CallIndex {
  async function asked<Answer>(work: (database: Sqlite.Database) => Answer): Promise<Answer> {
    try {
      return work(use());
    } catch (error) {
      throw asStoreError(error, file);
    }
  }
  return {
    place: () =>
      asked((database) => {
        const text = "SELECT seq, hash FROM places WHERE tenant = ?";
        return database.prepare(text).get(tenant) as { seq: number; hash: string } | undefined;
      }),
    put: (calls, { seq, hash }) =>
      asked((database) =>
        database
          .transaction((all: readonly CallDocument[]) => {
            const put = database.prepare(PUT);
            for (const call of all) put.run({ ...call, tenant, at: fromIso(call.at) });
            database
              .prepare(
                "INSERT INTO places VALUES (?, ?, ?) ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash WHERE excluded.seq >= places.seq",
              )
              .run(tenant, seq, hash);
          })
          .immediate(calls),
      ),
    clear: () =>
      asked((database) =>
        database
          .transaction(() => {
            database.prepare("DELETE FROM calls WHERE tenant = ?").run(tenant);
            database.prepare("DELETE FROM places WHERE tenant = ?").run(tenant);
          })
          .immediate(),
      ),
    find: (filter, { limit, after }) =>
      asked((database) => {
        const { tests, values } = testsOf(tenant, filter);
        if (after !== undefined) {
          tests.push("(at, id) < (?, ?)");
          values.push(fromIso(after.at), after.id);
        }
        const sql = `SELECT id, kind, at, session_id AS sessionId, agent, tool, title, outcome, decided_by AS "by", reason, wait_ms AS waitMs FROM calls WHERE ${tests.join(" AND ")} ORDER BY at DESC, id DESC LIMIT ?`;
        const rows = database.prepare(sql).all(...values, limit) as (IndexedCall & {
          at: unknown;
        })[];
        return rows.map((row) => ({ ...row, at: toIso(Number(row.at)) }));
      }),
    count: (filter, by) =>
      asked((database) => {
        const { tests, values } = testsOf(tenant, filter);
        const sql = `SELECT ${keyOf(by)} AS key, outcome, count(*) AS count FROM calls WHERE ${tests.join(" AND ")} GROUP BY 1, 2`;
        const rows = database.prepare(sql).all(...values) as {
          key: string | number;
          outcome: CallOutcome;
          count: number;
        }[];
        return rows
          .map((row) => ({ ...row, key: keyText(row.key, by) }))
          .sort(byCountKey) as CallCount[];
      }),
    waits: (filter) =>
      asked((database) => {
        const { tests, values } = testsOf(tenant, filter);
        const sql = `SELECT wait_ms FROM calls WHERE ${tests.join(" AND ")} AND wait_ms IS NOT NULL ORDER BY wait_ms`;
        return database
          .prepare(sql)
          .pluck()
          .all(...values) as number[];
      }),
  };
}

function keyOf(by: CountBy): string {
  if (by === "by") return "decided_by";
  if (by === "agent" || by === "tool") return by;
  const size = bucketMs(by);
  return `at / ${size} * ${size}`;
}

function keyText(key: string | number, by: CountBy): string {
  return by === "hour" || by === "day" ? toIso(Number(key)) : String(key);
}

function testsOf(tenant: string, filter: CallFilter) {
  const tests = ["tenant = ?"];
  const values: (string | number)[] = [tenant];
  const add = (test: string, ...given: readonly (string | number)[]) => {
    tests.push(test);
    values.push(...given);
  };
  const { text = "", agent, tool, by, sessionId, outcomes, from, to } = filter;
  const words = searchedWords(text);
  if (words.length > 0) {
    const match = words.map((word) => `"${word}"*`).join(" ");
    add("row IN (SELECT rowid FROM call_words WHERE call_words MATCH ?)", match);
  }
  if (agent !== undefined) add("agent = ?", agent);
  if (tool !== undefined) add("tool = ?", tool);
  if (by !== undefined) add("decided_by = ?", by);
  if (sessionId !== undefined) add("session_id = ?", sessionId);
  if (outcomes !== undefined) {
    add(`outcome IN (${outcomes.map(() => "?").join(", ") || "NULL"})`, ...outcomes);
  }
  if (from !== undefined) add("at >= ?", fromIso(from));
  if (to !== undefined) add("at < ?", fromIso(to));
  return { tests, values };
}
