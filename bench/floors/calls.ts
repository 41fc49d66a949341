import Sqlite from "better-sqlite3";
import { MIGRATIONS } from "../../src/store/sqlite/database.ts";
import type { Work } from "../rounds.ts";
import { bodiesOf, ENTRY, HEAD, SQLITE_BLOCK } from "./rows.ts";

/** What a gated call leaves behind, written by hand: intent and outcome of an operation, each commit with the block of its entries. */
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
    "INSERT INTO operations (tenant, id, session_id, message_id, call_id, turn, tool, effect, definition_hash, input, working_directory, chain, decision_id, step, undo_of, executor, status, attempt, fence, lease_until, truncated, created_at, updated_at) VALUES ('bench', ?, ?, 'm-1', 'c-1', 1, 'stock.look', 'read', ?, '{\"sku\":\"A-17\"}', '\"\"', '[]', '', 0, '', '', 'started', 1, 1, ?, 0, ?, ?)",
  );
  const settle = db.prepare(
    "UPDATE operations SET status = 'success', output = '\"12 on stock\"', stored_path = '\"\"', state_version = '\"\"', updated_at = ? WHERE tenant = 'bench' AND id = ? AND fence = 1 AND status IN ('started', 'unknown')",
  );
  const block = db.prepare(SQLITE_BLOCK);
  const bodyOf = bodiesOf([ENTRY]);
  const { hash } = ENTRY;
  let ids = 0;
  let seq = 0;
  const log = (entries: number): void => {
    seq += entries;
    block.run(seq, Date.now(), HEAD, bodyOf(entries));
  };
  const newId = (): string => {
    ids += 1;
    return `019a8b00-0000-7000-8000-${String(ids).padStart(12, "0")}`;
  };
  const begin = (id: string, session: string): void => {
    const now = Date.now();
    start.run(id, session, hash, now + 30_000, now, now);
  };
  return {
    /** One durable commit, the unit that latency is compared with. */
    commit: () =>
      db.transaction(() => {
        begin(newId(), "solo");
        log(1);
      })(),
    group: (size, total) => async () => {
      for (let done = 0; done < total; done += size) {
        const group = Array.from({ length: size }, (_, n) => ({ id: newId(), session: `s-${n}` }));
        db.transaction(() => {
          for (const { id, session } of group) begin(id, session);
          log(size);
        })();
        db.transaction(() => {
          for (const { id } of group) settle.run(Date.now(), id);
          log(size);
        })();
      }
      return total;
    },
    close: () => db.close(),
  };
}
