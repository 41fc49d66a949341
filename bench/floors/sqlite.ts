import Sqlite from "better-sqlite3";
import { MIGRATIONS } from "../../src/store/sqlite/database.ts";
import type { Work } from "../rounds.ts";
import { bodiesOf, DECISION, ENTRY, HEAD, SQLITE_BLOCK, STEPS } from "./rows.ts";

/** Plain better-sqlite3 over the same tables and indexes, with the same durability, and none of our code. */
export function sqliteFloors(file: string): {
  raw(total: number): Work;
  rawWithEntry(total: number): Work;
  group(size: number, total: number): Work;
  close(): void;
} {
  const db = new Sqlite(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  for (const { sql } of MIGRATIONS) db.exec(sql);
  const insert = db.prepare(
    "INSERT INTO decisions (tenant, id, session_id, state, source_tool, raw, diff_metadata, asked, created_at, updated_at) VALUES ('bench', ?, ?, 'pending_tech', ?, ?, ?, 0, ?, ?)",
  );
  const updates = STEPS.map(([column, from, to, value]) => ({
    statement: db.prepare(
      `UPDATE decisions SET ${column} = ?, state = '${to}', updated_at = ? WHERE tenant = 'bench' AND id = ? AND state = '${from}'`,
    ),
    value,
  }));
  const block = db.prepare(SQLITE_BLOCK);
  const bodyOf = bodiesOf([ENTRY]);
  const { tool, raw, metadata } = DECISION;
  let ids = 0;
  let seq = 0;
  let sessions = 0;
  const newIds = (count: number): string[] =>
    Array.from({ length: count }, () => {
      ids += 1;
      return `019a8b00-0000-7000-8000-${String(ids).padStart(12, "0")}`;
    });
  const newSession = (): string => {
    sessions += 1;
    return `session-1-${sessions}`;
  };
  const stage = (id: string, session: string): void => {
    const now = Date.now();
    insert.run(id, session, tool, raw, metadata, now, now);
  };
  const log = (entries: number): void => {
    seq += entries;
    block.run(seq, Date.now(), HEAD, bodyOf(entries));
  };
  return {
    /** One row, one commit per transition. */
    raw: (total) => async () => {
      const session = newSession();
      for (const id of newIds(total)) {
        stage(id, session);
        for (const { statement, value } of updates) statement.run(value, Date.now(), id);
      }
      return total;
    },
    /** The same, with the block of one entry that the product writes beside each row. */
    rawWithEntry: (total) => async () => {
      const session = newSession();
      for (const id of newIds(total)) {
        db.transaction(() => {
          stage(id, session);
          log(1);
        })();
        for (const { statement, value } of updates) {
          db.transaction(() => {
            statement.run(value, Date.now(), id);
            log(1);
          })();
        }
      }
      return total;
    },
    /** The same writes as the product's, `size` transitions with the block of their entries per commit. */
    group: (size, total) => async () => {
      const sessions = Array.from({ length: size }, newSession);
      for (let done = 0; done < total; done += size) {
        const ids = newIds(size);
        const group = sessions.map((session, n) => ({ id: ids[n] ?? "", session }));
        db.transaction(() => {
          for (const { id, session } of group) stage(id, session);
          log(size);
        })();
        for (const { statement, value } of updates) {
          db.transaction(() => {
            for (const { id } of group) statement.run(value, Date.now(), id);
            log(size);
          })();
        }
      }
      return total;
    },
    close: () => db.close(),
  };
}
