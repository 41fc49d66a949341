import { type FSWatcher, watch } from "node:fs";
import { createRedactor } from "../../audit/redact.ts";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import { type Clock, stopwatch, systemClock } from "../../util/clock.ts";
import { createIds } from "../../util/ids.ts";
import { type Random, systemRandom } from "../../util/random.ts";
import { systemTimers, type Timers } from "../../util/timers.ts";
import {
  type Cell,
  CommitListeners,
  type Engine,
  isUrgent,
  type Query,
  type Row,
  type Table,
} from "../engine.ts";
import { GroupCommit, type Waiting } from "../group-commit.ts";
import { createStore, type Store } from "../store.ts";
import type { Redact } from "../tenant-engine.ts";
import { ClockWatch, trustedTime } from "../turn.ts";
import { epochFile, watchedEngine } from "../watched-engine.ts";
import { sqliteCallIndexes } from "./call-index.ts";
import {
  asStoreError,
  type Database,
  isBusy,
  openDatabase,
  type Statement,
  WRITING_CACHE_KIB,
} from "./database.ts";
import {
  type Answer,
  addTests,
  type Cells,
  columnNames,
  resultOf,
  rowOf,
  sqlTest,
  type WriteOrder,
  writeOrderOf,
} from "./orders.ts";
import { startWriteThread, type WriteThread } from "./write-thread.ts";
import { databaseClock, Writer } from "./writer.ts";

// The SQLite engine: groups changes, decides which thread writes a group, waits for other processes, and reads.

/**
 * Which thread writes: `when busy` sends large groups to a thread of their own once there have been many, `always` and
 * `never` are for tests. Where no thread can be started the main thread writes everything.
 */
export type ThreadMode = "when busy" | "always" | "never";

export interface SqliteEngineOptions {
  /** Created when missing; its folder must exist. */
  readonly file: string;
  /** Only for tests that move the clock; otherwise the database's own decides. */
  readonly clock?: Clock;
  /** Compares the clock with monotonic time. Default: unless a test moves the clock. */
  readonly clockWatch?: ClockWatch;
  readonly random: Random;
  readonly timers: Timers;
  /** How long a write waits for another process before it answers store_busy. */
  readonly patienceMs: number;
  /** Which thread writes; `when busy` when left out. */
  readonly thread?: ThreadMode;
}

export interface SqliteStoreOptions
  extends Omit<SqliteEngineOptions, "random" | "timers" | "patienceMs"> {
  readonly random?: Random;
  readonly timers?: Timers;
  /** How long a write waits for another process before it answers store_busy; 10 seconds when left out. */
  readonly patienceMs?: number;
  readonly redact?: Redact;
  /**
   * A file that is not part of a backup: it shows when an older copy of the store was put in place, and then nothing is
   * executed. One per store, shared by its processes on this machine.
   */
  readonly epochFile?: string;
}

/** The default store: one file, every acknowledged write on disk. */
export function sqliteStore(options: SqliteStoreOptions): Store {
  const { redact = createRedactor({}), epochFile: file, ...rest } = options;
  const engine = sqliteEngine({
    random: systemRandom,
    timers: systemTimers,
    patienceMs: 10_000,
    ...rest,
  });
  const watched = file === undefined ? engine : watchedEngine(engine, epochFile(file));
  return createStore(watched, { redact });
}

/** A waiting change with its order. */
interface Ready {
  readonly one: Waiting;
  readonly order: WriteOrder;
}

/** The longest pause between two attempts to get the lock of the file. */
const LONGEST_PAUSE_MS = 4;
/** Smaller groups are written sooner without the hop between the threads, which takes about 20 µs. */
const BUSY_GROUP = 24;
/** The thread is started after this many changes in large groups: for a short burst it would come too late. */
const START_AFTER = 1_000;
/** While a group takes less than this, a second flush costs less than waiting for the whole group. */
const QUICK_MS = 3;

function ordersOf(group: readonly Ready[]): readonly WriteOrder[] {
  return group.map(({ order }) => order);
}

/** One file, durable. Several processes may write it, though one writer with many callers is far faster. */
export function sqliteEngine(options: SqliteEngineOptions): Engine {
  const { file, random, timers, patienceMs } = options;
  const database = openDatabase(file, patienceMs);
  const clock = options.clock ?? databaseClock(database);
  const statements = new Statements(database);
  const clockWatch = options.clockWatch ?? (options.clock ? undefined : new ClockWatch());
  const writer = writerOf(file, { database, random, clockWatch });
  // Takes the clock's first reading now, which a thread that is started later continues from.
  clockWatch?.jumpOf(clock.now());
  const now = () => options.clock?.now();
  const ids = createIds({ clock: options.clock ?? systemClock, random });
  const wakeUps = new WakeUps(database, file);
  const calls = sqliteCallIndexes(file, patienceMs);
  let mode: ThreadMode = file === ":memory:" ? "never" : (options.thread ?? "when busy");
  let thread: WriteThread | undefined;
  /** How many changes have come in large groups. */
  let busyChanges = 0;
  /** What the main thread is writing or waiting to write. */
  let behind: Promise<void> | undefined;
  const group = new GroupCommit({
    write: (members) => writeGroup(members.flatMap(ready)),
    timers,
    // The thread writes one group while the answers to the other are used.
    lanes: () => (thread?.state === "ready" ? 2 : 1),
    // With a slow disk one flush for all is better.
    split: (waiting) =>
      thread?.state === "ready" && waiting >= 2 * BUSY_GROUP && thread.tookMs < QUICK_MS,
  });

  /** A change that cannot be made ready is rejected and holds up no other. */
  function ready(one: Waiting): Ready[] {
    try {
      return [{ one, order: writeOrderOf(one.tenant, one.change, random) }];
    } catch (error) {
      one.reject(asStoreError(error, file));
      return [];
    }
  }

  function writeGroup(group: readonly Ready[]): Promise<void> {
    const thread = behind === undefined ? threadFor(group.length) : undefined;
    return thread === undefined ? inTurn(() => writeHere(group)) : writeByThread(thread, group);
  }

  /** The thread that is to write a group of this size; undefined for the main thread. */
  function threadFor(changes: number): WriteThread | undefined {
    if (mode === "never") return undefined;
    if (mode === "when busy") {
      // While the thread writes, every group goes through it, or the two would wait for each other's lock.
      if (changes < BUSY_GROUP) return thread?.isWriting ? thread : undefined;
      busyChanges += changes;
      if (busyChanges < START_AFTER) return undefined;
    }
    thread ??= startThread();
    return mode === "always" || thread?.state === "ready" ? thread : undefined;
  }

  function startThread(): WriteThread | undefined {
    const started = startWriteThread({ file, patienceMs, watched: clockWatch?.trusted });
    if (started === undefined) mode = "never";
    // Each commit of another connection empties this one's cache, which takes longer the larger it is.
    else database.pragma(`cache_size = -${WRITING_CACHE_KIB}`);
    return started;
  }

  async function writeByThread(thread: WriteThread, group: readonly Ready[]): Promise<void> {
    try {
      const answers = await thread.write(ordersOf(group), now);
      if (answers !== undefined) return settleAll(group, answers);
    } catch (error) {
      return failed(group, error);
    }
    return inTurn(() => writeHere(group));
  }

  /**
   * One after the other on the main thread. Later groups queue behind this one, so that two changes submitted in order,
   * without waiting for the first, are written in that order.
   */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const turn = (behind ?? Promise.resolve()).then(work).finally(() => {
      if (behind === turn) behind = undefined;
    });
    behind = turn;
    return turn;
  }

  async function writeHere(group: readonly Ready[], pace?: "urgent"): Promise<void> {
    try {
      settleAll(group, await patiently(() => writer.write(ordersOf(group), now(), pace)));
    } catch (error) {
      await failed(group, error);
    }
  }

  function settleAll(group: readonly Ready[], answers: readonly Answer[]): void {
    for (const [index, { one }] of group.entries()) {
      const answer = answers[index];
      if (answer === undefined) one.reject(new SallyportError("commit_unknown"));
      else one.resolve(resultOf(one.change, answer));
    }
    wakeUps.tell();
  }

  async function failed(group: readonly Ready[], error: unknown): Promise<void> {
    // One member failed the whole group: each gets a transaction of its own, so that it fails alone.
    if (group.length > 1 && !isSallyportError(error, "commit_unknown")) {
      for (const one of group) await writeHere([one]);
      return;
    }
    // Urgent changes do not wait for a correct clock either.
    const isUntimely = isSallyportError(error, "clock_wrong") && group.length === 1;
    if (isUntimely && group.every(({ one }) => isUrgent(one.change))) {
      return writeHere(group, "urgent");
    }
    for (const { one } of group) one.reject(asStoreError(error, file));
  }

  /**
   * Waits for other processes without blocking the event loop; jitter keeps two waiters from retrying in step. SQLite has no
   * queue for its lock, so it pays to ask often: with pauses of up to 16 ms the p99 of two processes that write as fast as
   * they can was two to three times as long.
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
      reading(() => statements.find(tenant, table, query, clock.now())),
    entries: (tenant, part) => reading(() => writer.entries(tenant, part)),
    head: (tenant) => reading(() => writer.head(tenant)),
    heads: () => reading(() => writer.chains.heads()),
    now: () => reading(() => trustedTime(clock.now(), clockWatch)),
    onCommit: (listener) => wakeUps.add(listener),
    backdate: (tenant, table, id, column, at) =>
      reading(() => {
        const sql = `UPDATE ${table.name} SET ${column} = ? WHERE tenant = ? AND id = ?`;
        statements.prepare(sql).run(at, tenant, id);
      }),
    callIndex: (tenant) => calls.of(tenant),
    async close() {
      calls.close();
      await group.close();
      await thread?.close();
      wakeUps.close();
      if (database.open) database.close();
    },
  };
}

/** Commits come in bursts, and each writes several times: one look answers for all of them. */
const AFTER_WRITE_MS = 5;

/**
 * Tells listeners of commits: of this process immediately, of others soon. While there is a listener, it watches the file
 * that every commit of every process is appended to, which costs nothing while nothing is written. Where files cannot be
 * watched there are no hints from other processes: listeners poll as well, only later.
 */
class WakeUps {
  readonly #listeners = new CommitListeners();
  readonly #log: string;
  /** A number that changes with each commit of another connection. */
  readonly #version: Statement;
  #count = 0;
  #seen: unknown;
  #watcher: FSWatcher | undefined;
  #cancel: (() => void) | undefined;

  constructor(database: Database, file: string) {
    this.#log = `${file}-wal`;
    this.#version = (database.prepare("PRAGMA data_version") as Statement).pluck();
  }

  add(listener: () => void): () => void {
    const forget = this.#listeners.add(listener);
    this.#count += 1;
    if (this.#count === 1) this.#watch();
    let isForgotten = false;
    return () => {
      if (isForgotten) return;
      isForgotten = true;
      forget();
      this.#count -= 1;
      if (this.#count === 0) this.close();
    };
  }

  tell(): void {
    this.#listeners.tell();
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #watch(): void {
    this.#seen = this.#look();
    try {
      this.#watcher = watch(this.#log, { persistent: false }, () => this.#lookSoon());
      this.#watcher.on("error", () => this.close());
    } catch {
      // In memory, or not possible here.
    }
  }

  /** In real time, also where a test moves the timers: other processes do not wait for it. */
  #lookSoon(): void {
    this.#cancel ??= systemTimers.after(AFTER_WRITE_MS, () => {
      this.#cancel = undefined;
      const version = this.#look();
      if (version !== this.#seen) this.#listeners.tell();
      this.#seen = version;
    });
  }

  #look(): unknown {
    try {
      return this.#version.get();
    } catch {
      // Locked or closed. A hint may be missing, and the next look finds the same.
      return this.#seen;
    }
  }
}

/** A writer prepares its statements when it is made, which finds tables that do not fit them. */
function writerOf(file: string, parts: ConstructorParameters<typeof Writer>[0]): Writer {
  try {
    return new Writer(parts);
  } catch (cause) {
    parts.database.close();
    const hint = "Its tables are damaged, or not of this version: restore a backup.";
    throw new SallyportError("store_incompatible", { file, hint }, cause);
  }
}

/** Turns reads into statements, each of which is prepared once. Column names come from the tables in code, never from callers. */
class Statements {
  readonly #database: Database;
  readonly #byText = new Map<string, Statement>();
  readonly #byTable = new Map<Table, Statement>();

  constructor(database: Database) {
    this.#database = database;
  }

  prepare(sql: string): Statement {
    let statement = this.#byText.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#byText.set(sql, statement);
    }
    return statement;
  }

  /** By tenant and id; its rows come as cells. */
  get(table: Table): Statement {
    let statement = this.#byTable.get(table);
    if (statement === undefined) {
      const sql = `SELECT ${columnNames(table).join(", ")} FROM ${table.name} WHERE tenant = ? AND id = ?`;
      statement = (this.#database.prepare(sql) as Statement).raw();
      this.#byTable.set(table, statement);
    }
    return statement;
  }

  find(tenant: string, table: Table, query: Query, now: number): readonly Row[] {
    const { where = {}, afterOrd, beforeOrd, newestFirst, limit } = query;
    const values: Cell[] = [tenant];
    const times: number[] = [];
    addTests(where, values, times);
    for (const index of times) values[index] = now + (values[index] as number);
    const tests = ["tenant = ?"];
    for (const [column, test] of Object.entries(where)) tests.push(sqlTest(column, test));
    if (afterOrd !== undefined) {
      tests.push("ord > ?");
      values.push(afterOrd);
    }
    if (beforeOrd !== undefined) {
      tests.push("ord < ?");
      values.push(beforeOrd);
    }
    const order = newestFirst === true ? "ord DESC" : "ord";
    const sql = `SELECT * FROM ${table.name} WHERE ${tests.join(" AND ")} ORDER BY ${order} LIMIT ?`;
    return this.prepare(sql).all(...values, limit) as Row[];
  }
}
