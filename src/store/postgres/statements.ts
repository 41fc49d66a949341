import { sha256Hex } from "../../util/hash.ts";
import type { Cell, Comparison, Conditions, Row, Step, Table, Value, Values } from "../engine.ts";
import { isComparison, isNowPlus, isPlus, resolveNumber } from "../evaluate.ts";
import { arrayText } from "./arrays.ts";
import { type PgQuery, TYPES } from "./connection.ts";

/** One step of a waiting change. */
export interface Work<S extends Step = Keyed> {
  readonly tenant: string;
  /** The time for this tenant, epoch milliseconds. */
  readonly at: number;
  readonly step: S;
}

/** Every step but a take names the record it is about. */
export type Keyed = Exclude<Step, { op: "take" }>;

/**
 * One statement for many steps of the same shape: the values travel as one array per column, so that the text depends
 * only on the shape and is parsed and planned once per connection. Column names come from the tables in code, never from
 * callers.
 */
export function batch(schema: string, works: readonly Work[]): PgQuery {
  const [first] = works;
  if (first === undefined) return { text: "" };
  const text = sqlOf(schema, first.step);
  const rows = works.map(parameters);
  const values = (rows[0] ?? []).map((_, field) =>
    arrayText(rows.map((row) => row[field] ?? null)),
  );
  return { name: nameOf(text), text, values, types: TYPES };
}

/** The row that a step leaves behind: what was handed in is known, so only the rest comes from the server. */
export function rowAfter({ tenant, at, step }: Work, found: Row): Row {
  if (step.op === "require" || step.op === "delete") return found;
  const row: Record<string, Cell> = { ...found, tenant, id: step.id };
  if (step.op === "insert") for (const column in step.table.columns) row[column] = null;
  const given = step.op === "insert" ? step.row : step.set;
  for (const column in given) {
    const value = given[column] as Value;
    if (!isPlus(value)) row[column] = cellOf(value, at);
  }
  return row;
}

/** What the server has to tell: the key, and what the step does not know by itself. */
function told(step: Keyed): string {
  if (step.op === "insert") return "tenant, id, ord";
  const columns = Object.keys(step.table.columns);
  const set = step.op === "update" ? step.set : {};
  const unknown = columns.filter((column) => set[column] === undefined || isPlus(set[column]));
  return ["tenant", "id", "ord", ...unknown].map((column) => `d.${column}`).join(", ");
}

/**
 * Finds a record by its key, and by nothing else. A plan is made once and kept while the table grows; made when the table
 * was small, it may well go through another index that starts with the tenant, and then read all the tenant's rows for
 * each record (seen: 50 ms instead of 2 for a group of 64). So only the id is left for an index to use.
 */
export function byKey(alias: string, tenant: string, id: string): string {
  return `${alias}.id = ${id} AND ${alias}.tenant || '' = ${tenant}`;
}

/** Steps with the same shape can share a statement. */
export function shapeOf(step: Keyed): string {
  return step.op === "insert"
    ? `insert ${step.table.name} ${Object.keys(step.row).join(",")}`
    : `${step.op} ${step.table.name} ${step.op === "update" ? shapeOfSet(step.set) : ""} where ${shapeOfWhere(step.where)}`;
}

export function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `sp_${sha256Hex(text).slice(0, 24)}`;
    names.set(text, name);
  }
  return name;
}
const names = new Map<string, string>();

export function shapeOfSet(set: Values): string {
  return Object.entries(set)
    .map(([column, value]) => (isPlus(value) ? `${column}+` : column))
    .join(",");
}

export function shapeOfWhere(where: Conditions): string {
  return Object.entries(where)
    .map(([column, test]) => `${column}${signOf(test)}`)
    .join(",");
}

export function signOf(test: Cell | Comparison): string {
  if (test === null) return "null";
  if (!isComparison(test)) return "=";
  if ("oneOf" in test) return "in";
  return "atLeast" in test ? ">=" : "<=";
}

function sqlOf(schema: string, step: Keyed): string {
  const { table } = step;
  const target = `${schema}.${table.name}`;
  if (step.op === "insert") {
    const columns = Object.keys(step.row);
    const wanted = parameterRows(columns.map((column, i) => [`v${i}`, arrayType(table, column)]));
    const values = columns.map((_, i) => `x.v${i}`);
    return `INSERT INTO ${target} (tenant, id, ${columns.join(", ")})
SELECT x.t, x.id, ${values.join(", ")} FROM ${wanted}
ON CONFLICT (id, tenant) DO NOTHING RETURNING ${told(step)}`;
  }
  const sets = step.op === "update" ? Object.keys(step.set) : [];
  const tests = Object.entries(step.where);
  const wanted = parameterRows([
    ...sets.map((column, i): Field => [`v${i}`, arrayType(table, column)]),
    ...tests.map(
      ([column, test], i): Field => [
        `w${i}`,
        signOf(test) === "in" ? "text" : arrayType(table, column),
      ],
    ),
  ]);
  const where = tests.map(([column, test], i) => conditionOf(table, column, test, `x.w${i}`));
  const match = [byKey("d", "x.t", "x.id"), ...where].join(" AND ");
  switch (step.op) {
    case "update":
      return `UPDATE ${target} AS d SET ${assignments(step.set)} FROM ${wanted} WHERE ${match} RETURNING ${told(step)}`;
    case "delete":
      return `DELETE FROM ${target} AS d USING ${wanted} WHERE ${match} RETURNING ${told(step)}`;
    case "require":
      return `SELECT ${told(step)} FROM ${wanted}, ${target} AS d WHERE ${match}`;
  }
}

type Field = readonly [name: string, type: string];

function parameterRows(fields: readonly Field[]): string {
  const all: Field[] = [["t", "text"], ["id", "text"], ...fields];
  const arrays = all.map(([, type], i) => `$${i + 1}::${type}[]`);
  return `unnest(${arrays.join(", ")}) AS x(${all.map(([name]) => name).join(", ")})`;
}

/** Made from the fields v0, v1, … of a parameter row `x`. */
export function assignments(set: Values): string {
  const parts = Object.entries(set).map(
    ([column, value], i) => `${column} = ${isPlus(value) ? `d.${column} + ` : ""}x.v${i}`,
  );
  return parts.join(", ");
}

const HIDDEN = { int: " + 0", text: " || ''", bytes: "" } as const;

function conditionOf(table: Table, column: string, test: Cell | Comparison, field: string): string {
  const sign = signOf(test);
  if (sign === "null") return `d.${column} IS NULL`;
  // Spelled so that no index offers itself: see byKey.
  const cell = `d.${column}${HIDDEN[table.columns[column] ?? "text"]}`;
  if (sign === "in") return `${cell} IN (SELECT json_array_elements_text(${field}::json))`;
  return `${cell} ${sign} ${field}`;
}

/** The fields of one parameter row, in the order of `parameterRows`. */
function parameters({ tenant, at: now, step }: Work): Cell[] {
  const fields: Cell[] = [tenant, step.id];
  if (step.op === "insert") return fields.concat(cellsOf(step.row, now));
  if (step.op === "update") fields.push(...cellsOf(step.set, now));
  for (const test of Object.values(step.where)) fields.push(boundOf(test, now));
  return fields;
}

export function cellsOf(values: Values, now: number): Cell[] {
  return Object.values(values).map((value) => cellOf(value, now));
}

function cellOf(value: Value, now: number): Cell {
  if (isNowPlus(value)) return now + value.nowPlusMs;
  if (isPlus(value)) return value.plus;
  // A copy: what is handed back is not to share memory with what the caller holds.
  return value instanceof Uint8Array ? new Uint8Array(value) : value;
}

function boundOf(test: Cell | Comparison, now: number): Cell {
  if (!isComparison(test)) return test;
  if ("oneOf" in test) return JSON.stringify(test.oneOf);
  return resolveNumber("atLeast" in test ? test.atLeast : test.atMost, now);
}

export function arrayType(table: Table, column: string): string {
  return { int: "bigint", text: "text", bytes: "bytea" }[table.columns[column] ?? "text"];
}

export function boundIn(test: Cell | Comparison, now: number): unknown {
  return isComparison(test) && "oneOf" in test ? test.oneOf : boundOf(test, now);
}
