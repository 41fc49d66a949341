import { SallyportError } from "../../model/errors.ts";
import { type Clock, stopwatch } from "../../util/clock.ts";
import { createIds } from "../../util/ids.ts";
import type { Random } from "../../util/random.ts";
import type { Timers } from "../../util/timers.ts";
import { type AuditRow, entriesOf } from "../audit-rows.ts";
import { CommitListeners } from "../commit-listeners.ts";
import type { Engine, Row } from "../engine.ts";
import { GroupCommit, type Waiting } from "../group-commit.ts";
import { asStoreError, isBusy, openDatabase } from "./database.ts";
import { type Answer, orderOf, resultOf } from "./orders.ts";
import { Shapes } from "./shapes.ts";
import { Statements } from "./statements.ts";
import { Writer } from "./writer.ts";

export interface SqliteEngineOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
  /** How long a write waits for another process before it answers store_busy. */
  readonly patienceMs: number;
}

/** One file, durable; several processes may write it, though one writer with many callers is far faster. */
export function sqliteEngine(options: SqliteEngineOptions): Engine {
  const { file, clock, random, timers, patienceMs } = options;
  const database = openDatabase(file, patienceMs);
  const statements = new Statements(database);
  const shapes = new Shapes();
  const writer = new Writer({ database, shapes: shapes.all, clock, random });
  const ids = createIds({ clock, random });
  const listeners = new CommitListeners();
  const group = new GroupCommit({ write: writeGroup, timers });

  async function writeGroup(members: readonly Waiting[]): Promise<void> {
    try {
      const orders = members.map(({ tenant, change }) => orderOf(tenant, change, shapes, random));
      const answers = await patiently(() => writer.write(orders));
      for (const [index, one] of members.entries()) settle(one, answers[index]);
      listeners.tell();
    } catch (error) {
      const [only] = members;
      if (members.length === 1 && only !== undefined) return only.reject(asStoreError(error, file));
      // One member failed and took the group with it: each gets a transaction of its own, so it fails alone.
      for (const one of members) await writeGroup([one]);
    }
  }

  /** Waits for other processes without blocking the event loop; a jitter keeps two waiters from stepping in time. */
  async function patiently<T>(work: () => T): Promise<T> {
    const deadline = stopwatch.now() + patienceMs;
    for (let pause = 1; ; pause = Math.min(pause * 2, 16)) {
      try {
        return work();
      } catch (error) {
        if (!isBusy(error) || stopwatch.now() >= deadline) throw error;
        const jitter = (random.bytes(1)[0] ?? 0) / 255;
        await timers.sleep(pause * (0.5 + jitter));
      }
    }
  }

  async function reading<T>(work: () => T): Promise<T> {
    if (!database.open) throw new SallyportError("store_closed");
    try {
      return await patiently(work);
    } catch (error) {
      throw asStoreError(error, file);
    }
  }

  /** Jumps from tenant to tenant along the key, so the work grows with tenants and not with entries. */
  function tenants(): string[] {
    return statements
      .prepare(
        `WITH RECURSIVE t(name) AS (SELECT min(tenant) FROM audit
UNION ALL SELECT (SELECT min(tenant) FROM audit WHERE tenant > t.name) FROM t WHERE t.name IS NOT NULL)
SELECT name FROM t WHERE name IS NOT NULL`,
      )
      .pluck()
      .all() as string[];
  }

  return {
    name: "sqlite",
    capabilities: { durable: file !== ":memory:", manyProcesses: file !== ":memory:" },
    newId: () => ids.next(),
    commit: (tenant, change) => group.submit(tenant, change),
    get: (tenant, table, id) =>
      reading(() => statements.get(table).get(tenant, id) as Row | undefined),
    find: (tenant, table, query) =>
      reading(() => {
        const { statement, values } = statements.find(tenant, table, query, clock.now());
        return statement.all(...values) as Row[];
      }),
    entries: (tenant, { after, limit }) =>
      reading(() => {
        const rows = statements
          .prepare("SELECT * FROM audit WHERE tenant = ? AND seq >= ? ORDER BY seq LIMIT ?")
          // One more in front: an entry's `prev` is the hash of the row before it.
          .all(tenant, after, limit + 1) as AuditRow[];
        return entriesOf(rows, after, limit);
      }),
    head: (tenant) => reading(() => writer.head(tenant)),
    heads: () => reading(() => tenants().map((tenant) => writer.head(tenant))),
    now: async () => clock.now(),
    onCommit: (listener) => listeners.add(listener),
    backdate: (tenant, table, id, column, at) =>
      reading(() => {
        const sql = `UPDATE ${table.name} SET ${column} = ? WHERE tenant = ? AND id = ?`;
        statements.prepare(sql).run(at, tenant, id);
      }),
    async close() {
      await group.close();
      if (database.open) database.close();
    },
  };
}

function settle(one: Waiting, answer: Answer | undefined): void {
  if (answer === undefined) one.reject(new SallyportError("commit_unknown"));
  else one.resolve(resultOf(one.change, answer));
}
