import type { Timers } from "../../util/timers.ts";
import type { Cell, Comparison, Query, Row, Table } from "../engine.ts";
import { isComparison } from "../evaluate.ts";
import { asStoreError, type PgPool, type PgQuery, TYPES } from "./connection.ts";
import { byKey, nameOf } from "./statements.ts";

interface Asked {
  readonly id: string;
  resolve(row: Row | undefined): void;
  reject(error: unknown): void;
}

export interface ReaderOptions {
  readonly pool: PgPool;
  readonly schema: string;
  readonly timers: Timers;
  /** SQL for the current time in milliseconds. */
  readonly now: () => string;
}

const MAX_BATCH = 500;

/** Reads. Records asked for by key at the same time share one round trip. */
export class Reader {
  readonly #options: ReaderOptions;
  /** tenant and table → who waits for which id. */
  readonly #asked = new Map<string, { tenant: string; table: Table; waiting: Asked[] }>();

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Planned anew each time unless the plan cannot depend on what is stored: see byKey. */
  async query<R>(text: string, values: readonly unknown[], plan?: "planned once"): Promise<R[]> {
    const name = plan === undefined ? {} : { name: nameOf(text) };
    const query: PgQuery = { ...name, text, values, types: TYPES };
    try {
      return (await this.#options.pool.query<R>(query)).rows;
    } catch (error) {
      throw asStoreError(error);
    }
  }

  get(tenant: string, table: Table, id: string): Promise<Row | undefined> {
    const key = `${table.name}\n${tenant}`;
    return new Promise((resolve, reject) => {
      const asked = this.#asked.get(key);
      if (asked !== undefined && asked.waiting.length < MAX_BATCH) {
        asked.waiting.push({ id, resolve, reject });
        return;
      }
      const fresh = { tenant, table, waiting: [{ id, resolve, reject }] };
      this.#asked.set(key, fresh);
      this.#options.timers.soon(() => {
        if (this.#asked.get(key) === fresh) this.#asked.delete(key);
        void this.#read(fresh.tenant, fresh.table, fresh.waiting);
      });
    });
  }

  async #read(tenant: string, table: Table, waiting: readonly Asked[]): Promise<void> {
    try {
      const from = `${this.#options.schema}.${table.name} AS d`;
      const text = `SELECT * FROM ${from} WHERE ${byKey("d", "$1", "ANY($2)")}`;
      const ids = [...new Set(waiting.map(({ id }) => id))];
      const rows = await this.query<Row>(text, [tenant, ids], "planned once");
      const byId = new Map(rows.map((row) => [row["id"], row]));
      const taken = new Set<string>();
      for (const { id, resolve } of waiting) {
        // Two who asked for the same record must not share its bytes.
        const row = byId.get(id);
        resolve(row !== undefined && taken.has(id) ? structuredClone(row) : row);
        taken.add(id);
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }

  find(tenant: string, table: Table, query: Query): Promise<Row[]> {
    const values: unknown[] = [tenant];
    const tests = ["tenant = $1"];
    for (const [column, test] of Object.entries(query.where ?? {})) {
      tests.push(this.#condition(column, test, values));
    }
    if (query.afterOrd !== undefined) tests.push(`ord > $${values.push(query.afterOrd)}`);
    const limit = `$${values.push(query.limit)}`;
    const text = `SELECT * FROM ${this.#options.schema}.${table.name} WHERE ${tests.join(" AND ")} ORDER BY ord LIMIT ${limit}`;
    return this.query<Row>(text, values);
  }

  #condition(column: string, test: Cell | Comparison, values: unknown[]): string {
    if (test === null) return `${column} IS NULL`;
    if (!isComparison(test)) return `${column} = $${values.push(test)}`;
    if ("oneOf" in test) return `${column} = ANY($${values.push([...test.oneOf])})`;
    const [bound, sign] = "atLeast" in test ? [test.atLeast, ">="] : [test.atMost, "<="];
    if (typeof bound === "number") return `${column} ${sign} $${values.push(bound)}`;
    return `${column} ${sign} ${this.#options.now()} + $${values.push(bound.nowPlusMs)}::bigint`;
  }
}
