import Sqlite from "better-sqlite3";
import { MIGRATIONS } from "../src/store/sqlite/database.ts";
import { bodiesOf, ENTRY, HEAD, SQLITE_BLOCK } from "./floors/rows.ts";
import type { Work } from "./rounds.ts";
import { CLAIM_MS, FACTS, RESULT } from "./tasks-rows.ts";

/** Plain better-sqlite3 over the same tables and indexes, with the same durability, and none of our code. */
export function sqliteTaskFloors(
  file: string,
  backlog: number,
): {
  raw(total: number): Work;
  group(size: number, total: number): Work;
  close(): void;
} {
  const db = new Sqlite(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  for (const { sql } of MIGRATIONS) db.exec(sql);
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${backlog})`;
  const id = "printf('019a8b00-0000-7000-8000-%012d', i)";
  db.prepare(
    `${numbers} INSERT INTO tasks (tenant, id, status, facts, version) SELECT 'bench', ${id}, 'pending', ?, 1 FROM n`,
  ).run(FACTS);
  db.exec(
    `${numbers} INSERT INTO task_queue (tenant, id, lane, role, priority, session_id, fence, version, facts_version, waits, dependents)
SELECT 'bench', ${id}, 'ready', '', 0, '', 1, 1, 1, 0, 0 FROM n`,
  );
  const claim = db.prepare(
    `UPDATE task_queue SET lane = 'leased', claimer = ?, claimed_at = ?, lease_until = ?, fence = fence + 1, version = version + 1
WHERE ord IN (SELECT ord FROM task_queue WHERE tenant = 'bench' AND lane = 'ready' AND role = '' ORDER BY priority DESC, ord LIMIT ?) RETURNING id`,
  );
  const remove = db.prepare(
    "DELETE FROM task_queue WHERE tenant = 'bench' AND id = ? AND fence = 2",
  );
  const close = db.prepare(
    "UPDATE tasks SET status = 'completed', claimer = ?, claimed_at = ?, completed_at = ?, result = ?, fence = 2, version = 3 WHERE tenant = 'bench' AND id = ?",
  );
  const block = db.prepare(SQLITE_BLOCK);
  const bodyOf = bodiesOf([ENTRY]);
  let seq = 0;
  const log = (entries: number): void => {
    seq += entries;
    block.run(seq, Date.now(), HEAD, bodyOf(entries));
  };
  const take = (count: number): string[] =>
    (claim.all("worker", Date.now(), Date.now() + CLAIM_MS, count) as { id: string }[]).map(
      (row) => row.id,
    );
  const finish = (one: string): void => {
    remove.run(one);
    close.run("worker", Date.now(), Date.now(), RESULT, one);
  };
  return {
    /** One task per commit, without a trail. */
    raw: (total) => async () => {
      for (let n = 0; n < total; n += 1) {
        const [one = ""] = take(1);
        db.transaction(() => finish(one))();
      }
      return total;
    },
    /** The same writes as the product's, `size` tasks with the block of their entries per commit. */
    group: (size, total) => async () => {
      for (let done = 0; done < total; done += size) {
        let ids: string[] = [];
        db.transaction(() => {
          ids = take(size);
          log(ids.length);
        })();
        db.transaction(() => {
          for (const one of ids) finish(one);
          log(ids.length);
        })();
      }
      return total;
    },
    close: () => db.close(),
  };
}
