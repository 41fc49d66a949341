import type { Cell, Comparison, Conditions, Query, Step, Table, Value, Values } from "../engine.ts";
import { isComparison, isNowPlus, isPlus, resolveNumber } from "../evaluate.ts";
import type { Database, Statement } from "./database.ts";

/** SQL with the values that go into it. The text depends only on the shape, so each shape is prepared once. */
export interface Prepared {
  readonly statement: Statement;
  readonly values: readonly Cell[];
}

type Take = Step & { op: "take" };

/** Turns steps and queries into statements. Column names come from the tables in code, never from callers. */
export class Statements {
  readonly #database: Database;
  readonly #cache = new Map<string, Statement>();

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

  step(step: Exclude<Step, { op: "take" }>, tenant: string, now: number): Prepared {
    if (step.op === "insert") return this.#insert(step, tenant, now);
    return step.op === "update" ? this.#update(step, tenant, now) : this.#byKey(step, tenant, now);
  }

  /** The `ord` of the best rows, best first. */
  best({ table, where, order, limit }: Take, tenant: string, now: number): Prepared {
    const values: Cell[] = [tenant];
    const tests = ["tenant = ?", ...conditions(where, values, now)].join(" AND ");
    const by = order.map(({ column, down }) => (down === true ? `${column} DESC` : column));
    values.push(limit);
    const sql = `SELECT ord FROM ${table.name} WHERE ${tests} ORDER BY ${[...by, "ord"].join(", ")} LIMIT ?`;
    return { statement: this.prepare(sql), values };
  }

  take({ table, set }: Take, ords: readonly number[], now: number): Prepared {
    const values: Cell[] = [];
    const sets = assignments(set, values, now);
    values.push(JSON.stringify(ords));
    const sql = `UPDATE ${table.name} SET ${sets} WHERE ord IN (SELECT value FROM json_each(?)) RETURNING *`;
    return { statement: this.prepare(sql), values };
  }

  get(table: Table): Statement {
    return this.prepare(`SELECT * FROM ${table.name} WHERE tenant = ? AND id = ?`);
  }

  find(tenant: string, table: Table, query: Query, now: number): Prepared {
    const values: Cell[] = [tenant];
    const tests = conditions(query.where ?? {}, values, now);
    if (query.afterOrd !== undefined) {
      tests.push("ord > ?");
      values.push(query.afterOrd);
    }
    values.push(query.limit);
    const where = ["tenant = ?", ...tests].join(" AND ");
    const sql = `SELECT * FROM ${table.name} WHERE ${where} ORDER BY ord LIMIT ?`;
    return { statement: this.prepare(sql), values };
  }

  #insert(step: Step & { op: "insert" }, tenant: string, now: number): Prepared {
    const columns = Object.keys(step.row);
    const values = [tenant, step.id, ...Object.values(step.row).map((value) => cellOf(value, now))];
    const marks = values.map(() => "?").join(", ");
    // A taken id is an answer, not an error: no row comes back.
    const sql = `INSERT INTO ${step.table.name} (tenant, id, ${columns.join(", ")}) VALUES (${marks}) ON CONFLICT (tenant, id) DO NOTHING RETURNING *`;
    return { statement: this.prepare(sql), values };
  }

  #byKey(step: Step & { op: "require" | "delete" }, tenant: string, now: number): Prepared {
    const values: Cell[] = [tenant, step.id];
    const where = ["tenant = ?", "id = ?", ...conditions(step.where, values, now)].join(" AND ");
    const sql =
      step.op === "delete"
        ? `DELETE FROM ${step.table.name} WHERE ${where} RETURNING *`
        : `SELECT * FROM ${step.table.name} WHERE ${where}`;
    return { statement: this.prepare(sql), values };
  }

  #update(step: Step & { op: "update" }, tenant: string, now: number): Prepared {
    const values: Cell[] = [];
    const set = assignments(step.set, values, now);
    values.push(tenant, step.id);
    const where = ["tenant = ?", "id = ?", ...conditions(step.where, values, now)].join(" AND ");
    const sql = `UPDATE ${step.table.name} SET ${set} WHERE ${where} RETURNING *`;
    return { statement: this.prepare(sql), values };
  }
}

function assignments(set: Values, values: Cell[], now: number): string {
  const parts = Object.entries(set).map(([column, value]) => {
    values.push(cellOf(value, now));
    return isPlus(value) ? `${column} = ${column} + ?` : `${column} = ?`;
  });
  return parts.join(", ");
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

function cellOf(value: Value, now: number): Cell {
  if (isNowPlus(value)) return now + value.nowPlusMs;
  if (isPlus(value)) return value.plus;
  return value;
}
