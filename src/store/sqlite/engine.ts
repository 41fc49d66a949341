import type { AuditEntry } from "../../model/audit-entry.ts";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import { type Clock, stopwatch, systemClock } from "../../util/clock.ts";
import { createIds } from "../../util/ids.ts";
import type { Random } from "../../util/random.ts";
import type { Timers } from "../../util/timers.ts";
import { ClockWatch } from "../clock-watch.ts";
import {
  type Cell,
  CommitListeners,
  type Comparison,
  type Conditions,
  type Engine,
  type Query,
  type Row,
  type Table,
} from "../engine.ts";
import { isComparison, isUrgent, resolveNumber } from "../evaluate.ts";
import { GroupCommit, type Waiting } from "../group-commit.ts";
import { type AuditRow, entriesOf } from "../tenant-engine.ts";
import {
  asStoreError,
  type Database,
  databaseClock,
  isBusy,
  openDatabase,
  type Statement,
  WRITING_CACHE_KIB,
} from "./database.ts";
import { type Answer, type Cells, type Order, orderOf, resultOf, rowOf } from "./orders.ts";
import { columnsOf, Shapes } from "./shapes.ts";
import { ThreadedWriter, type ThreadMode } from "./threaded-writer.ts";
import { Writer } from "./writer.ts";

export interface SqliteEngineOptions {
  readonly file: string;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
  /** Compares the clock with time that nobody can set; left out, it is done unless a test moves the clock. */
  readonly clockWatch?: ClockWatch;
  readonly random: Random;
  readonly timers: Timers;
  /** How long a write waits for another process before it answers store_busy. */
  readonly patienceMs: number;
  /** Which thread writes; `when busy` unless told otherwise. */
  readonly thread?: ThreadMode;
}

interface Ready {
  readonly one: Waiting;
  readonly order: Order;
}

const LONGEST_PAUSE_MS = 4;

function ordersOf(group: readonly Ready[]): readonly Order[] {
  return group.map(({ order }) => order);
}

/** One member failed and took the group with it: each gets a transaction of its own, so it fails alone. */
function isOneByOne(group: readonly Ready[], error: unknown): boolean {
  return group.length > 1 && !isSallyportError(error, "commit_unknown");
}

/** One file, durable; several processes may write it, though one writer with many callers is far faster. */
export function sqliteEngine(options: SqliteEngineOptions): Engine {
  const { file, random, timers, patienceMs } = options;
  const database = openDatabase(file, patienceMs);
  const clock = options.clock ?? databaseClock(database);
  const statements = new Statements(database);
  const shapes = new Shapes();
  const clockWatch = options.clockWatch ?? (options.clock ? undefined : new ClockWatch());
  const writer = writerOf(file, { database, shapes: shapes.all, random, clockWatch });
  // Begins with what the clock says now: a thread that writes later goes on from there.
  clockWatch?.jumpOf(clock.now());
  const now = () => options.clock?.now();
  const ids = createIds({ clock: options.clock ?? systemClock, random });
  const listeners = new CommitListeners();
  let keepsLess = false;
  let behind: Promise<void> | undefined;
  const thread = new ThreadedWriter({
    file,
    patienceMs,
    mode: file === ":memory:" ? "never" : (options.thread ?? "when busy"),
    shapes: shapes.all,
    clockWatch,
  });
  const group = new GroupCommit({
    write: (members) => writeGroup(members.flatMap(ready)),
    timers,
    loneRun: 8,
    lanes: () => thread.lanes,
    split: (waiting) => thread.isWorthSplitting(waiting),
  });

  /** A change that cannot be made ready is answered at once and keeps nobody waiting. */
  function ready(one: Waiting): Ready[] {
    try {
      return [{ one, order: orderOf(one.tenant, one.change, shapes, random) }];
    } catch (error) {
      one.reject(asStoreError(error, file));
      return [];
    }
  }

  /** Done at once unless the thread has to be asked or another process to be waited for: a lone caller pays for no promise. */
  function writeGroup(group: readonly Ready[]): Promise<void> | undefined {
    if (behind !== undefined) return inTurn(() => patientlyWrite(group));
    if (thread.wants(group.length)) return writeByThread(group);
    try {
      settleAll(group, writer.write(ordersOf(group), now()));
      return undefined;
    } catch (error) {
      if (isBusy(error)) return inTurn(() => patientlyWrite(group));
      return isOneByOne(group, error) ? inTurn(() => failed(group, error)) : failed(group, error);
    }
  }

  async function writeByThread(group: readonly Ready[]): Promise<void> {
    try {
      keepLess();
      const answers = await thread.write(ordersOf(group), now);
      if (answers !== undefined) return settleAll(group, answers);
    } catch (error) {
      return failed(group, error);
    }
    return inTurn(() => patientlyWrite(group));
  }

  /**
   * What this thread could not write at once: everything asked for later waits behind it, so that two changes asked for in
   * order, without waiting for the first, are made in that order.
   */
  function inTurn(work: () => Promise<void> | undefined): Promise<void> {
    const turn = (behind ?? Promise.resolve()).then(work).finally(() => {
      if (behind === turn) behind = undefined;
    });
    behind = turn;
    return turn;
  }

  async function patientlyWrite(group: readonly Ready[], pace?: "urgent"): Promise<void> {
    try {
      settleAll(group, await patiently(() => writer.write(ordersOf(group), now(), pace)));
    } catch (error) {
      await failed(group, error);
    }
  }

  /** What another connection writes empties this one's cache each time; the larger it is, the longer that takes. */
  function keepLess(): void {
    if (keepsLess) return;
    keepsLess = true;
    database.pragma(`cache_size = -${WRITING_CACHE_KIB}`);
  }

  function settleAll(group: readonly Ready[], answers: readonly Answer[]): void {
    for (let index = 0; index < group.length; index += 1) {
      settle((group[index] as Ready).one, answers[index]);
    }
    listeners.tell();
  }

  async function failed(group: readonly Ready[], error: unknown): Promise<void> {
    if (isOneByOne(group, error)) {
      for (const one of group) await patientlyWrite([one]);
      return;
    }
    // What must not wait does not wait for a clock either.
    const isUntimely = isSallyportError(error, "clock_wrong") && group.length === 1;
    if (isUntimely && group.every(({ one }) => isUrgent(one.change))) {
      return patientlyWrite(group, "urgent");
    }
    for (const { one } of group) one.reject(asStoreError(error, file));
  }

  /**
   * Waits for other processes without blocking the event loop; a jitter keeps two waiters from stepping in time. SQLite has
   * no queue for its lock: whoever asks often finds it free. With pauses of up to 16 ms the p99 of two processes that write
   * as fast as they can was two to three times as long.
   */
  async function patiently<T>(work: () => T): Promise<T> {
    const deadline = stopwatch.now() + patienceMs;
    for (let pause = 1; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        return work();
      } catch (error) {
        if (!isBusy(error) || stopwatch.now() >= deadline) throw error;
        const jitter = (random.bytes(1)[0] ?? 0) / 255;
        await timers.sleep(pause * (0.5 + jitter));
      }
    }
  }

  function reading<T>(work: () => T): Promise<T> {
    if (!database.open) return Promise.reject(new SallyportError("store_closed"));
    try {
      return Promise.resolve(work());
    } catch (error) {
      if (!isBusy(error)) return Promise.reject(asStoreError(error, file));
      return patiently(work).catch((late) => {
        throw asStoreError(late, file);
      });
    }
  }

  function entries(tenant: string, after: number, limit: number): AuditEntry[] {
    const chain = writer.chains.find(tenant);
    if (chain === undefined) return [];
    const rows = statements
      .prepare(
        `SELECT ? AS tenant, seq, at, type, subject, session, actor, data, salt, data_hash, hash
FROM audit WHERE ord >= (? << 32) | ? AND ord < (? + 1) << 32 ORDER BY ord LIMIT ?`,
      )
      // One more in front: an entry's `prev` is the hash of the row before it.
      .all(tenant, chain, after, chain, limit + 1) as AuditRow[];
    return entriesOf(rows, after, limit);
  }

  return {
    name: "sqlite",
    capabilities: { durable: file !== ":memory:", manyProcesses: file !== ":memory:" },
    newId: () => ids.next(),
    commit: (tenant, change) => group.submit(tenant, change),
    get: (tenant, table, id) =>
      reading(() => {
        const cells = statements.get(table).get(tenant, id) as Cells | undefined;
        return cells && rowOf(table, cells);
      }),
    find: (tenant, table, query) =>
      reading(() => {
        const { statement, values } = statements.find(tenant, table, query, clock.now());
        return statement.all(...values) as Row[];
      }),
    entries: (tenant, { after, limit }) => reading(() => entries(tenant, after, limit)),
    head: (tenant) => reading(() => writer.head(tenant)),
    heads: () => reading(() => writer.chains.heads()),
    now: () => reading(() => clock.now()),
    onCommit: (listener) => listeners.add(listener),
    backdate: (tenant, table, id, column, at) =>
      reading(() => {
        const sql = `UPDATE ${table.name} SET ${column} = ? WHERE tenant = ? AND id = ?`;
        statements.prepare(sql).run(at, tenant, id);
      }),
    async close() {
      await group.close();
      await thread.close();
      if (database.open) database.close();
    },
  };
}

function settle(one: Waiting, answer: Answer | undefined): void {
  if (answer === undefined) one.reject(new SallyportError("commit_unknown"));
  else one.resolve(resultOf(one.change, answer));
}

/** It prepares its statements at once; tables that do not fit them are found here. */
function writerOf(file: string, parts: ConstructorParameters<typeof Writer>[0]): Writer {
  try {
    return new Writer(parts);
  } catch (cause) {
    parts.database.close();
    const hint = "Its tables are damaged, or not of this version: restore a backup.";
    throw new SallyportError("store_incompatible", { file, hint }, cause);
  }
}

/** SQL with the values that go into it. The text depends only on the shape, so each shape is prepared once. */
export interface Prepared {
  readonly statement: Statement;
  readonly values: readonly Cell[];
}

/** Turns queries into statements. Column names come from the tables in code, never from callers. */
class Statements {
  readonly #database: Database;
  readonly #cache = new Map<string, Statement>();
  readonly #gets = new Map<Table, Statement>();

  constructor(database: Database) {
    this.#database = database;
  }

  prepare(sql: string): Statement {
    let statement = this.#cache.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#cache.set(sql, statement);
    }
    return statement;
  }

  /** Its rows come as cells. */
  get(table: Table): Statement {
    let statement = this.#gets.get(table);
    if (statement === undefined) {
      const sql = `SELECT ${columnsOf(table).join(", ")} FROM ${table.name} WHERE tenant = ? AND id = ?`;
      statement = (this.#database.prepare(sql) as Statement).raw();
      this.#gets.set(table, statement);
    }
    return statement;
  }

  find(tenant: string, table: Table, query: Query, now: number): Prepared {
    const values: Cell[] = [tenant];
    const tests = conditions(query.where ?? {}, values, now);
    if (query.afterOrd !== undefined) {
      tests.push("ord > ?");
      values.push(query.afterOrd);
    }
    if (query.beforeOrd !== undefined) {
      tests.push("ord < ?");
      values.push(query.beforeOrd);
    }
    values.push(query.limit);
    const where = ["tenant = ?", ...tests].join(" AND ");
    const order = query.newestFirst === true ? "ord DESC" : "ord";
    const sql = `SELECT * FROM ${table.name} WHERE ${where} ORDER BY ${order} LIMIT ?`;
    return { statement: this.prepare(sql), values };
  }
}

/** Tests as SQL; their values are appended in the same order. */
function conditions(where: Conditions, values: Cell[], now: number): string[] {
  return Object.entries(where).map(([column, test]) => condition(column, test, values, now));
}

function condition(column: string, test: Cell | Comparison, values: Cell[], now: number): string {
  if (!isComparison(test)) {
    values.push(test);
    return `${column} IS ?`;
  }
  if ("oneOf" in test) {
    values.push(...test.oneOf);
    return `${column} IN (${test.oneOf.map(() => "?").join(", ")})`;
  }
  const [bound, sign] = "atLeast" in test ? [test.atLeast, ">="] : [test.atMost, "<="];
  values.push(resolveNumber(bound, now));
  return `${column} ${sign} ?`;
}
