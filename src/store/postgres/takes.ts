import type { Cell, Comparison, Order, Row, Step, Table } from "../engine.ts";
import { type PgQuery, TYPES } from "./connection.ts";
import {
  assignments,
  byKey,
  columnsOf,
  fromWire,
  isByTime,
  nameOf,
  putValues,
  setFields,
  shapeOfSet,
  shapeOfWhere,
  signOf,
  timeOnce,
  type Work,
  wireTest,
  wireType,
} from "./statements.ts";

export type Take = Work<Step & { op: "take" }>;

/** Takes that look for the same rows in the same order can share a statement, whatever they write into them. */
export function kindOf({ tenant, step }: Take): string {
  const { table, where, order, set } = step;
  const tests = Object.values(where).map(wireTest);
  return JSON.stringify([tenant, table.name, shapeOfWhere(where), tests, order, shapeOfSet(set)]);
}

/**
 * One statement for takes of one kind: the best rows for all of them together are numbered, and each take gets those
 * between its two numbers. The turn on the tenant's chain keeps other processes away; SKIP LOCKED only sees to it that a
 * row which somebody holds by hand stops nobody.
 */
export function takeQuery(schema: string, takes: readonly Take[]): PgQuery {
  const [first] = takes;
  if (first === undefined) return { text: "" };
  const { table, where, order, set } = first.step;
  const values: unknown[] = [first.tenant];
  const tests = Object.entries(where).map(([column, test]) => {
    if (test !== null) values.push(wireTest(test));
    return condition(table, column, test, `$${values.length}`);
  });
  const shares = takes.map(({ step }, index) => {
    const share: Record<string, unknown> = { ...shareOf(takes, index) };
    putValues(step.set, share);
    return share;
  });
  const last = values.push(shareOf(takes, takes.length - 1).high, JSON.stringify(shares));
  const target = `${schema}.${table.name}`;
  const fields = ["low bigint", "high bigint", ...setFields(table, set)].join(", ");
  const text = `WITH best AS MATERIALIZED (
SELECT tenant, id, row_number() OVER (ORDER BY ${sorted(table, order)}) AS taken_nr FROM (
SELECT ${columnsOf(table)} FROM ${target} WHERE ${["tenant = $1", ...tests].join(" AND ")}
ORDER BY ${sorted(table, order)} LIMIT $${last - 1} FOR UPDATE SKIP LOCKED) AS free)
UPDATE ${target} AS d SET ${assignments(table, set, TIME)} FROM best, json_to_recordset($${last}::json) AS x(${fields})
WHERE ${byKey("d", "best.tenant", "best.id")} AND best.taken_nr > x.low AND best.taken_nr <= x.high RETURNING ${columnsOf(table, "d")}, best.taken_nr`;
  return { name: nameOf(text), text, values, types: TYPES };
}

/** What each of the takes got, best first. */
export function dealt(rows: readonly Row[], takes: readonly Take[]): Row[][] {
  const best = rows.toSorted((a, b) => Number(a["taken_nr"]) - Number(b["taken_nr"]));
  return takes.map((_, index) => {
    const { low, high } = shareOf(takes, index);
    return best.slice(low, high).map(({ taken_nr: _nr, ...row }) => row);
  });
}

const TIME = timeOnce("$1::text");

function shareOf(takes: readonly Take[], index: number): { low: number; high: number } {
  const low = takes.slice(0, index).reduce((sum, { step }) => sum + step.limit, 0);
  return { low, high: low + (takes[index]?.step.limit ?? 0) };
}

function condition(
  table: Table,
  column: string,
  test: Cell | Comparison,
  parameter: string,
): string {
  const sign = signOf(test);
  if (sign === "null") return `${column} IS NULL`;
  if (sign === "in") return `${column} = ANY(${parameter}::text[])`;
  const since = isByTime(test) ? `${TIME} + ` : "";
  return `${column} ${sign} ${since}${fromWire(table, column, `${parameter}::${wireType(table, column)}`)}`;
}

/** As the contract has it: nothing is less than anything, text goes by its bytes, of equals the older one is better. */
function sorted(table: Table, order: Order): string {
  const parts = order.map(({ column, down }) => {
    const cell = table.columns[column] === "text" ? `${column} COLLATE "C"` : column;
    return `${cell} ${down === true ? "DESC NULLS LAST" : "ASC NULLS FIRST"}`;
  });
  return [...parts, "ord"].join(", ");
}
