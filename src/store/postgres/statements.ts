import { sha256Hex } from "../../util/hash.ts";
import {
  type Cell,
  type Comparison,
  type Conditions,
  isComparison,
  isNowPlus,
  isPlus,
  type Row,
  resolveNumber,
  type SortOrder,
  type Step,
  type Table,
  type Values,
} from "../engine.ts";
import { type PgQuery, TYPES } from "./connection.ts";

// Steps as SQL: one statement for all steps of the same shape in a group.

/** One step of a waiting change. */
export interface TenantStep<S extends Step = Write> {
  readonly tenant: string;
  readonly step: S;
}

/** The setting in which the lock stores each tenant's time, for the statements that are sent together with it. */
export const TIMES = "sallyport.at";

/** SQL for the time of this transaction for a tenant, epoch milliseconds. */
function timeOf(tenant: string): string {
  return `(current_setting('${TIMES}')::json ->> ${tenant})::bigint`;
}

/** A subquery is evaluated once per statement, before the rows are searched, so that an index on a time can be used. */
function timeOnce(tenant: string): string {
  return `(SELECT ${timeOf(tenant)})`;
}

/** Every step but a take names the record it is about. */
export type Keyed = Exclude<Step, { op: "take" }>;
/** A step that changes the record it names. */
export type Write = Exclude<Keyed, { op: "require" }>;

/**
 * One statement for many steps of the same shape: the values are sent as one JSON parameter, so that the text depends only
 * on the shape and is parsed and planned once per connection. Column names come from the tables in code, never from
 * callers.
 */
export function batch(schema: string, shape: string, works: readonly TenantStep[]): PgQuery {
  const [first] = works;
  const tenant = first?.tenant ?? "";
  const isOfOne = works.every((work) => work.tenant === tenant);
  const key = `${schema} ${isOfOne} ${shape}`;
  let text = texts.get(key);
  if (text === undefined) {
    const time = isOfOne ? timeOnce("$2::text") : timeOf("x.t");
    text = first === undefined ? "" : sqlOf(schema, first.step, time);
    texts.set(key, text);
  }
  const rows = JSON.stringify(works.map(parameters));
  // The server refuses a parameter that the text does not use, because it has no type.
  const values = text.includes("$2") ? [rows, tenant] : [rows];
  return { name: statementName(text), text, values, types: TYPES };
}
const texts = new Map<string, string>();

/** Reads the records that these steps name. */
export function look(schema: string, table: Table, works: readonly TenantStep<Keyed>[]): PgQuery {
  const text = `SELECT ${columnsOf(table, "d")} FROM unnest($1::text[], $2::text[]) AS x(t, id) JOIN ${schema}.${table.name} AS d ON ${byKey("d", "x.t", "x.id")}`;
  const values = [works.map(({ tenant }) => tenant), works.map(({ step }) => step.id)];
  return { name: statementName(text), text, values, types: TYPES };
}

/**
 * Finds a record through its key and no other index. A plan is made once and kept while the table grows; made when the
 * table was small, it may use another index that starts with the tenant, and then read all the tenant's rows for each record
 * (measured: 50 ms instead of 2 for a group of 64). Written so, only the id can use an index.
 */
export function byKey(alias: string, tenant: string, id: string): string {
  return `${alias}.id = ${id} AND ${alias}.tenant || '' = ${tenant}`;
}

/**
 * The columns by name and never `*`: a newer version may add one while this process runs, and then the server refuses a
 * prepared statement whose result type has changed.
 */
export function columnsOf({ columns }: Table, alias?: string): string {
  // A table may list `ord` among its own columns.
  const names = new Set(["ord", "tenant", "id", ...Object.keys(columns)]);
  return [...names].map((name) => (alias === undefined ? name : `${alias}.${name}`)).join(", ");
}

/** Steps with the same shape can share a statement. */
export function shapeOf(step: Write): string {
  return step.op === "insert"
    ? `insert ${step.table.name} ${shapeOfSet(step.row)}`
    : `${step.op} ${step.table.name} ${step.op === "update" ? shapeOfSet(step.set) : ""} where ${shapeOfWhere(step.where)}`;
}

export function statementName(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `sp_${sha256Hex(text).slice(0, 24)}`;
    names.set(text, name);
  }
  return name;
}
const names = new Map<string, string>();

function shapeOfSet(set: Values): string {
  return Object.entries(set)
    .map(([column, value]) => `${column}${isPlus(value) ? "+" : ""}${isNowPlus(value) ? "@" : ""}`)
    .join(",");
}

function shapeOfWhere(where: Conditions): string {
  return Object.entries(where)
    .map(([column, test]) => `${column}${signOf(test)}${isByTime(test) ? "@" : ""}`)
    .join(",");
}

/** Whether the bound moves with the time of the transaction. */
function isByTime(test: Cell | Comparison): boolean {
  if (test === null || !isComparison(test) || "oneOf" in test) return false;
  return typeof ("atLeast" in test ? test.atLeast : test.atMost) !== "number";
}

function signOf(test: Cell | Comparison): string {
  if (test === null) return "null";
  if (!isComparison(test)) return "=";
  if ("oneOf" in test) return "in";
  return "atLeast" in test ? ">=" : "<=";
}

/** The shape of a step that names its record. */
export function shapeOfKeyed(step: Keyed): string {
  if (step.op !== "require") return shapeOf(step);
  return `require ${step.table.name} ${step.absent} ${shapeOfWhere(step.where)}`;
}

/** The statement of a write whose parameter rows are in `source`. An insert returns its keys alone: its row is known. */
export function keyedSql(schema: string, step: Write, time: string, source: string): string {
  return sqlOf(schema, step, time, source, step.op === "insert" ? "tenant, id, ord" : undefined);
}

/**
 * Reads the records that are required, for PL/pgSQL: those that are as they must be are counted, or, where a missing record
 * holds, those that are not.
 */
export function requireSql(
  schema: string,
  { table, where, absent }: Keyed & { readonly op: "require" },
  source: string,
): { readonly text: string; readonly expected: string } {
  const tests = Object.entries(where);
  const fields = tests.map(([column], i) => `w${i} ${wireType(table, column)}`);
  const wanted = `json_to_recordset(${source}) AS x(${["t text", "id text", ...fields].join(", ")})`;
  const met = tests.map(([column, test], i) => conditionOf(table, column, test, `x.w${i}`, ""));
  const filter = `(${met.join(" AND ") || "true"}) IS ${absent === "holds" ? "NOT TRUE" : "TRUE"}`;
  const found = `SELECT ${columnsOf(table, "d")}, ${filter} AS counts FROM ${wanted} JOIN ${schema}.${table.name} AS d ON ${byKey("d", "x.t", "x.id")}`;
  return {
    text: `SELECT count(*) FILTER (WHERE r.counts), json_agg(r) INTO v_count, v_left FROM (${found}) AS r;`,
    expected: absent === "holds" ? "0" : `json_array_length(${source})`,
  };
}

/** `time` is SQL for the transaction's time, `source` for the JSON of the parameter rows. */
function sqlOf(
  schema: string,
  step: Write,
  time: string,
  source = "$1::json",
  returned?: string,
): string {
  const { table } = step;
  const target = `${schema}.${table.name}`;
  if (step.op === "insert") {
    const columns = Object.keys(step.row);
    const values = columns.map((column, i) => sqlValue(table, step.row, column, i, time));
    return `INSERT INTO ${target} (tenant, id, ${columns.join(", ")})
SELECT x.t, x.id, ${values.join(", ")}
FROM json_to_recordset(${source}) AS x(t text, id text, ${setFields(table, step.row).join(", ")})
ON CONFLICT (id, tenant) DO NOTHING RETURNING ${returned ?? columnsOf(table)}`;
  }
  const tests = Object.entries(step.where);
  const fields = [
    ...setFields(table, step.op === "update" ? step.set : {}),
    ...tests.map(
      ([column, test], i) => `w${i} ${signOf(test) === "in" ? "json" : wireType(table, column)}`,
    ),
  ];
  const where = tests.map(([column, test], i) => conditionOf(table, column, test, `x.w${i}`, time));
  const wanted = `json_to_recordset(${source}) AS x(${["t text", "id text", ...fields].join(", ")})`;
  const match = [byKey("d", "x.t", "x.id"), ...where].join(" AND ");
  switch (step.op) {
    case "update":
      return `UPDATE ${target} AS d SET ${assignments(table, step.set, time)} FROM ${wanted} WHERE ${match} RETURNING ${columnsOf(table, "d")}`;
    case "delete":
      return `DELETE FROM ${target} AS d USING ${wanted} WHERE ${match} RETURNING ${columnsOf(table, "d")}`;
  }
}

/** The fields of a parameter row `x` that hold the values to set. */
function setFields(table: Table, set: Values): string[] {
  return Object.keys(set).map((column, i) => `v${i} ${wireType(table, column)}`);
}

/** `time` is SQL for the transaction's time. */
function assignments(table: Table, set: Values, time: string): string {
  const parts = Object.entries(set).map(([column, value], i) => {
    const before = isPlus(value) ? `d.${column} + ` : "";
    return `${column} = ${before}${sqlValue(table, set, column, i, time)}`;
  });
  return parts.join(", ");
}

function sqlValue(table: Table, set: Values, column: string, i: number, time: string): string {
  const wire = fromWire(table, column, `x.v${i}`);
  return isNowPlus(set[column] ?? null) ? `${time} + ${wire}` : wire;
}

const HIDDEN = { int: " + 0", text: " || ''", bytes: "" } as const;

function conditionOf(
  table: Table,
  column: string,
  test: Cell | Comparison,
  field: string,
  time: string,
): string {
  const sign = signOf(test);
  if (sign === "null") return `d.${column} IS NULL`;
  // Written so that no index can be used: see byKey.
  const cell = `d.${column}${HIDDEN[table.columns[column] ?? "text"]}`;
  if (sign === "in") return `${cell} IN (SELECT json_array_elements_text(${field}))`;
  const since = isByTime(test) ? `${time} + ` : "";
  return `${cell} ${sign} ${since}${fromWire(table, column, field)}`;
}

/** A step as a parameter row. */
export function parameters({ tenant, step }: TenantStep<Keyed>): Record<string, unknown> {
  const fields: Record<string, unknown> = { t: tenant, id: step.id };
  if (step.op === "insert") putValues(step.row, fields);
  if (step.op === "update") putValues(step.set, fields);
  if (step.op === "insert") return fields;
  for (const [i, test] of Object.values(step.where).entries()) fields[`w${i}`] = wireTest(test);
  return fields;
}

function putValues(values: Values, fields: Record<string, unknown>): void {
  for (const [i, value] of Object.values(values).entries()) {
    if (isNowPlus(value)) fields[`v${i}`] = value.nowPlusMs;
    else fields[`v${i}`] = isPlus(value) ? value.plus : wire(value);
  }
}

function wireTest(test: Cell | Comparison): unknown {
  if (!isComparison(test)) return wire(test);
  if ("oneOf" in test) return test.oneOf;
  // A bound relative to the time is sent as its distance from it.
  return resolveNumber("atLeast" in test ? test.atLeast : test.atMost, 0);
}

function wire(cell: Cell): string | number | null {
  return cell instanceof Uint8Array ? Buffer.from(cell).toString("base64") : cell;
}

function wireType(table: Table, column: string): string {
  return table.columns[column] === "int" ? "bigint" : "text";
}

function fromWire(table: Table, column: string, field: string): string {
  return table.columns[column] === "bytes" ? `decode(${field}, 'base64')` : field;
}

export type Take = TenantStep<Step & { op: "take" }>;

/** Takes that look for the same rows in the same order can share a statement, whatever they write into them. */
export function kindOf({ tenant, step }: Take): string {
  const { table, where, order, set } = step;
  const tests = Object.values(where).map(wireTest);
  return JSON.stringify([tenant, table.name, shapeOfWhere(where), tests, order, shapeOfSet(set)]);
}

/**
 * One statement for takes of one kind: the best rows for all of them together are numbered, and each take gets the rows of
 * its range. The lock on the tenant's chain excludes other processes; SKIP LOCKED only skips rows that were locked by hand.
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
  return { name: statementName(text), text, values, types: TYPES };
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

/** The sort order of the contract: NULL sorts first, text compares bytewise, ties go to the older row. */
function sorted(table: Table, order: SortOrder): string {
  const parts = order.map(({ column, down }) => {
    const cell = table.columns[column] === "text" ? `${column} COLLATE "C"` : column;
    return `${cell} ${down === true ? "DESC NULLS LAST" : "ASC NULLS FIRST"}`;
  });
  return [...parts, "ord"].join(", ");
}
