import { createRedactor } from "../../audit/redact.ts";
import { type AuditEntry, type ChainHead, emptyHead, headAfter } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { CLOCK, SWITCHES } from "../../model/switch.ts";
import { type Clock, systemClock } from "../../util/clock.ts";
import { type Random, systemRandom } from "../../util/random.ts";
import {
  applied,
  type Change,
  type ChangeResult,
  CommitListeners,
  checkTake,
  type Engine,
  holds,
  inOrder,
  isUrgent,
  type Query,
  type Row,
  type Step,
  type Table,
} from "../engine.ts";
import { createStore, type Store } from "../store.ts";
import type { Redact } from "../tenant-engine.ts";
import { ClockWatch, Turn, trustedTime } from "../turn.ts";

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly redact?: Redact;
}

/**
 * For tests and demos only: it outlives neither a restart nor a crash and shares nothing between processes. Its ids count
 * upward and mean nothing after a restart.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { clock = systemClock, random = systemRandom, redact = createRedactor({}) } = options;
  const clockWatch = options.clock === undefined ? new ClockWatch() : undefined;
  return createStore(memoryEngine({ clock, random, ...(clockWatch && { clockWatch }) }), {
    redact,
  });
}

export interface MemoryEngineOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Compares the clock with monotonic time. */
  readonly clockWatch?: Pick<ClockWatch, "jumpOf">;
}

export interface MemoryEngine extends Engine {
  /** An engine with the same records and trails. From then on each of the two changes by itself. */
  copy(options: MemoryEngineOptions): MemoryEngine;
}

/** What an engine holds. */
interface Contents {
  readonly tables: Map<string, MemoryTable>;
  readonly chains: Map<string, AuditEntry[]>;
  readonly ids: number;
}

/** The engine in its simplest form. The SQL engines must agree with it. */
export function memoryEngine(options: MemoryEngineOptions): MemoryEngine {
  return engineOver({ tables: new Map(), chains: new Map(), ids: 0 }, options);
}

function engineOver(contents: Contents, options: MemoryEngineOptions): MemoryEngine {
  const { tables, chains } = contents;
  const { clock, random, clockWatch } = options;
  const listeners = new CommitListeners();
  let { ids } = contents;
  let closed = false;

  const tableOf = (tenant: string, table: Table): MemoryTable => {
    const key = `${tenant}\n${table.name}`;
    let found = tables.get(key);
    if (found === undefined) {
      found = new MemoryTable(table.indexed);
      tables.set(key, found);
    }
    return found;
  };
  const chainOf = (tenant: string): AuditEntry[] => {
    const chain = chains.get(tenant) ?? [];
    chains.set(tenant, chain);
    return chain;
  };
  const headOf = (tenant: string): ChainHead => {
    const last = chains.get(tenant)?.at(-1);
    return last === undefined ? emptyHead(tenant) : headAfter(last);
  };
  const assertOpen = (): void => {
    if (closed) throw new SallyportError("store_closed");
  };

  /** Synchronous from the first read to the last write, so nothing can come between. */
  function write(tenant: string, change: Change): ChangeResult {
    const accepted = () => String(tableOf(tenant, SWITCHES).get(CLOCK)?.["state"] ?? "");
    const turn = new Turn(headOf(tenant), clock.now(), random, { watch: clockWatch, accepted });
    if (turn.clockTrouble !== undefined && !isUrgent(change)) throw turn.clockTrouble;
    const effects: Effect[] = [];
    for (const [index, step] of change.steps.entries()) {
      const table = tableOf(tenant, step.table);
      const made = step.op === "take" ? taken(step, table, turn.now) : [];
      const current = step.op === "take" ? undefined : table.get(step.id);
      if (step.op !== "take") made.push(...stepped(step, table, current, tenant, turn.now));
      if (made.length === 0) return { committed: false, step: index, current: copied(current) };
      effects.push(...made);
    }
    turn.append(
      change,
      effects.map(({ row }) => copiedRow(row)),
    );
    // Nothing below can throw.
    const stored = effects.map(({ store }) => store());
    chainOf(tenant).push(...turn.entries);
    const { seq, hash } = turn.head;
    return { committed: true, at: turn.now, rows: stored.map(copiedRow), seq, hash };
  }

  return {
    name: "memory",
    capabilities: { durable: false, manyProcesses: false },
    newId() {
      ids += 1;
      return String(ids);
    },
    async commit(tenant, change) {
      assertOpen();
      checkTake(change);
      const result = write(tenant, change);
      if (result.committed) listeners.tell();
      return result;
    },
    async get(tenant, table, id) {
      assertOpen();
      return copied(tableOf(tenant, table).get(id));
    },
    async find(tenant, table, query: Query) {
      assertOpen();
      return tableOf(tenant, table).find(query, clock.now()).map(copiedRow);
    },
    async entries(tenant, { after, limit }) {
      assertOpen();
      return (chains.get(tenant) ?? []).slice(after, after + limit);
    },
    async head(tenant) {
      assertOpen();
      return headOf(tenant);
    },
    async heads() {
      assertOpen();
      return [...chains.keys()].sort().map(headOf);
    },
    now: async () => trustedTime(clock.now(), clockWatch),
    onCommit: (listener) => listeners.add(listener),
    async backdate(tenant, table, id, column, at) {
      const row = tableOf(tenant, table).get(id);
      if (row !== undefined) tableOf(tenant, table).put(id, { ...row, [column]: at });
    },
    copy(own) {
      const copied: Contents = { tables: new Map(), chains: new Map(), ids };
      for (const [key, table] of tables) copied.tables.set(key, table.copy());
      for (const [tenant, chain] of chains) copied.chains.set(tenant, [...chain]);
      return engineOver(copied, own);
    },
    async close() {
      closed = true;
    },
  };
}

/** The row after a step, and how it is written once all steps hold. */
interface Effect {
  readonly row: Row;
  store(): Row;
}

/** One effect, or none when the step does not hold. */
function stepped(
  step: Exclude<Step, { op: "take" }>,
  table: MemoryTable,
  current: Row | undefined,
  tenant: string,
  at: number,
): Effect[] {
  const putting = (row: Row): Effect[] => [{ row, store: () => table.put(step.id, row) }];
  if (step.op === "insert") {
    return current === undefined ? putting(applied({ tenant, id: step.id }, step.row, at)) : [];
  }
  if (current === undefined) {
    const isFine = step.op === "require" && step.absent === "holds";
    return isFine ? [{ row: {}, store: () => ({}) }] : [];
  }
  if (!holds(current, step.where, at)) return [];
  if (step.op === "update") return putting(applied(current, step.set, at));
  const store = () => (step.op === "delete" ? table.delete(step.id, current) : current);
  return [{ row: current, store }];
}

function taken(step: Step & { op: "take" }, table: MemoryTable, at: number): Effect[] {
  return table.best(step, at).map((before) => {
    const row = applied(before, step.set, at);
    return { row, store: () => table.put(String(before["id"]), row) };
  });
}

function copied(row: Row | undefined): Row | undefined {
  return row === undefined ? undefined : copiedRow(row);
}

/** Cells are immutable except for bytes. */
function copiedRow(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([column, cell]) => [
      column,
      cell instanceof Uint8Array ? new Uint8Array(cell) : cell,
    ]),
  );
}

/** Rows by id in order of insertion, with a look-up per indexed column, so that reading does not grow with what is stored. */
class MemoryTable {
  #rows = new Map<string, Row>();
  readonly #indexed: readonly string[];
  /** column and value → ids with it. */
  #index = new Map<string, Set<string>>();
  #ord = 0;
  #isShared = false;

  constructor(indexed: readonly string[]) {
    this.#indexed = indexed;
  }

  /** Shares everything with the original until one of them is written. */
  copy(): MemoryTable {
    const copy = new MemoryTable(this.#indexed);
    copy.#rows = this.#rows;
    copy.#index = this.#index;
    copy.#ord = this.#ord;
    this.#isShared = true;
    copy.#isShared = true;
    return copy;
  }

  #own(): void {
    if (!this.#isShared) return;
    this.#rows = new Map(this.#rows);
    this.#index = new Map([...this.#index].map(([key, ids]) => [key, new Set(ids)]));
    this.#isShared = false;
  }

  get(id: string): Row | undefined {
    return this.#rows.get(id);
  }

  put(id: string, row: Row): Row {
    this.#own();
    const before = this.#rows.get(id);
    for (const column of this.#indexed) {
      if (before !== undefined) this.#index.get(keyOf(column, before[column]))?.delete(id);
      const key = keyOf(column, row[column]);
      const ids = this.#index.get(key) ?? new Set();
      this.#index.set(key, ids.add(id));
    }
    if (before === undefined) this.#ord += 1;
    const stored = { ...row, ord: before?.["ord"] ?? this.#ord };
    this.#rows.set(id, stored);
    return stored;
  }

  /** Returns the removed row. */
  delete(id: string, row: Row): Row {
    this.#own();
    for (const column of this.#indexed) this.#index.get(keyOf(column, row[column]))?.delete(id);
    this.#rows.delete(id);
    return row;
  }

  /** Best first. */
  best({ where, order, limit }: Step & { op: "take" }, now: number): readonly Row[] {
    const found = this.#candidates(where).filter((row) => holds(row, where, now));
    return found.sort(inOrder(order)).slice(0, limit);
  }

  /** Oldest first unless the query says otherwise. */
  find(query: Query, now: number): readonly Row[] {
    const { where = {}, afterOrd = 0, beforeOrd = Infinity, newestFirst, limit } = query;
    const found = this.#candidates(where).filter((row) => {
      const ord = Number(row["ord"]);
      return ord > afterOrd && ord < beforeOrd && holds(row, where, now);
    });
    const sign = newestFirst === true ? -1 : 1;
    return found.sort((a, b) => sign * (Number(a["ord"]) - Number(b["ord"]))).slice(0, limit);
  }

  #candidates(where: NonNullable<Query["where"]>): Row[] {
    for (const column of this.#indexed) {
      const test = where[column];
      if (typeof test !== "string") continue;
      const ids = [...(this.#index.get(keyOf(column, test)) ?? [])];
      return ids.map((id) => this.#rows.get(id)).filter((row) => row !== undefined);
    }
    return [...this.#rows.values()];
  }
}

function keyOf(column: string, value: unknown): string {
  return `${column}\n${String(value)}`;
}
