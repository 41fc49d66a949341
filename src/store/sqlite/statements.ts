import type { Cell, Comparison, Conditions, Query, Table } from "../engine.ts";
import { isComparison, resolveNumber } from "../evaluate.ts";
import type { Database, Statement } from "./database.ts";
import { columnsOf } from "./shapes.ts";

/** SQL with the values that go into it. The text depends only on the shape, so each shape is prepared once. */
export interface Prepared {
  readonly statement: Statement;
  readonly values: readonly Cell[];
}

/** Turns queries into statements. Column names come from the tables in code, never from callers. */
export class Statements {
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
