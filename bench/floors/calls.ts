import Sqlite from "better-sqlite3";
import { MIGRATIONS } from "../../src/store/sqlite/database.ts";
import type { Work } from "../rounds.ts";
import { ENTRY, SQLITE_ENTRY } from "./rows.ts";

/** What a gated call leaves behind, written by hand: intent and outcome of an operation, each with its entry. */
export function callFloors(file: string): {
  commit(): void;
  group(size: number, total: number): Work;
  close(): void;
} {
  const db = new Sqlite(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  for (const { sql } of MIGRATIONS) db.exec(sql);
  const start = db.prepare(
    "INSERT INTO operations (tenant, id, session_id, message_id, call_id, turn, tool, effect, definition_hash, input, working_directory, chain, decision_id, step, undo_of, status, attempt, fence, lease_until, truncated, created_at, updated_at) VALUES ('bench', ?, ?, 'm-1', 'c-1', 1, 'stock.look', 'read', ?, '{\"sku\":\"A-17\"}', '\"\"', '[]', '', 0, '', 'started', 1, 1, ?, 0, ?, ?)",
  );
  const settle = db.prepare(
    "UPDATE operations SET status = 'success', output = '\"12 on stock\"', stored_path = '\"\"', state_version = '\"\"', updated_at = ? WHERE tenant = 'bench' AND id = ? AND fence = 1 AND status IN ('started', 'unknown')",
  );
  const entry = db.prepare(SQLITE_ENTRY);
  const { actor, data, salt, hash } = ENTRY;
  let ids = 0;
  let seq = 0;
  const log = (type: string, id: string, session: string): void => {
    seq += 1;
    entry.run(seq, Date.now(), type, id, session, actor, data, salt, hash);
  };
  const newId = (): string => {
    ids += 1;
    return `019a8b00-0000-7000-8000-${String(ids).padStart(12, "0")}`;
  };
  const begin = (id: string, session: string): void => {
    const now = Date.now();
    start.run(id, session, hash, now + 30_000, now, now);
    log("operation.started", id, session);
  };
  return {
    /** One durable commit, the unit that latency is compared with. */
    commit: () => db.transaction(() => begin(newId(), "solo"))(),
    group: (size, total) => async () => {
      for (let done = 0; done < total; done += size) {
        const group = Array.from({ length: size }, (_, n) => ({ id: newId(), session: `s-${n}` }));
        db.transaction(() => {
          for (const { id, session } of group) begin(id, session);
        })();
        db.transaction(() => {
          for (const { id, session } of group) {
            settle.run(Date.now(), id);
            log("operation.succeeded", id, session);
          }
        })();
      }
      return total;
    },
    close: () => db.close(),
  };
}
