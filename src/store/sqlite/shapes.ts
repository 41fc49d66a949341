import type { Cell, Comparison, Conditions, Step, Table, Values } from "../engine.ts";
import { isComparison, isPlus } from "../evaluate.ts";

/**
 * The SQL of a step, without its values: many steps share a shape, and each shape is prepared once. Plain data, so that
 * another thread can prepare it too. Column names come from the tables in code, never from callers.
 */
export interface Shape {
  readonly nr: number;
  readonly op: Step["op"];
  readonly sql: string;
  /** What is there, by tenant and id: asked when the step did not hold. */
  readonly look: string;
  /** A required record may be missing. */
  readonly mayBeAbsent: boolean;
  /** Of an update: the cells of the row that its first values go into, so that nobody has to read what was just written. */
  readonly sets?: readonly SetCell[];
  /** The second half of a take: `sql` finds the best, with the first so many values, and this changes them with the rest. */
  readonly change?: { readonly sql: string; readonly after: number };
}

export interface SetCell {
  readonly cell: number;
  /** The value is added to what is there. */
  readonly plus: boolean;
}

/** The cells of a row in the order in which they travel. */
export function columnsOf(table: Table): readonly string[] {
  let columns = known.get(table);
  if (columns === undefined) {
    columns = ["ord", "tenant", "id", ...Object.keys(table.columns)];
    known.set(table, columns);
  }
  return columns;
}
const known = new WeakMap<Table, readonly string[]>();

/** A shape with what a step must look like to have it. */
interface Candidate {
  readonly shape: Shape;
  readonly set: readonly string[];
  readonly where: readonly string[];
}

/** All shapes met so far. Found by comparing, because writing the SQL to look it up costs as much as running it. */
export class Shapes {
  readonly all: Shape[] = [];
  readonly #candidates = new Map<string, Candidate[]>();

  of(step: Step): Shape {
    const key = step.op === "require" ? `${step.absent} ${step.table.name}` : step.table.name;
    const same = this.#candidates.get(key);
    for (const candidate of same ?? []) if (fits(candidate, step)) return candidate.shape;
    const made = candidateOf(step, this.all.length);
    this.all.push(made.shape);
    if (same === undefined) this.#candidates.set(key, [made]);
    else same.push(made);
    return made.shape;
  }
}

function fits({ shape, set, where }: Candidate, step: Step): boolean {
  if (shape.op !== step.op) return false;
  if (step.op === "insert") return true;
  if (!sameKeys(where, step.where, signOf)) return false;
  if (step.op === "take" && !shape.sql.includes(orderBy(step))) return false;
  return step.op === "update" || step.op === "take" ? sameKeys(set, step.set, kindOf) : true;
}

/** `known` is a flat list of names and kinds. */
function sameKeys<Given>(
  names: readonly string[],
  given: Readonly<Record<string, Given>>,
  kind: (one: Given) => string,
): boolean {
  let index = 0;
  for (const name in given) {
    if (names[index] !== name || names[index + 1] !== kind(given[name] as Given)) return false;
    index += 2;
  }
  return index === names.length;
}

function candidateOf(step: Step, nr: number): Candidate {
  const { op, table } = step;
  const columns = columnsOf(table).join(", ");
  const look = `SELECT ${columns} FROM ${table.name} WHERE tenant = ? AND id = ?`;
  const base = { nr, op, look, mayBeAbsent: op === "require" && step.absent === "holds" };
  if (step.op === "insert") {
    const names = columnsOf(table).slice(1);
    const marks = names.map(() => "?").join(", ");
    // A taken id is an answer, not an error: nothing is changed.
    const sql = `INSERT INTO ${table.name} (${names.join(", ")}) VALUES (${marks}) ON CONFLICT (tenant, id) DO NOTHING`;
    return { shape: { ...base, sql }, set: [], where: [] };
  }
  const where = named(step.where, signOf);
  const tests = Object.entries(step.where).map(([column, test]) => `AND ${sqlTest(column, test)}`);
  const byKey = ["WHERE tenant = ? AND id = ?", ...tests].join(" ");
  if (step.op === "require") {
    const sql = `SELECT ${columns} FROM ${table.name} ${byKey}`;
    return { shape: { ...base, sql }, set: [], where };
  }
  if (step.op === "delete") {
    const sql = `DELETE FROM ${table.name} ${byKey} RETURNING ${columns}`;
    return { shape: { ...base, sql }, set: [], where };
  }
  const set = named(step.set, kindOf);
  const change = `UPDATE ${table.name} SET ${assignments(step.set)}`;
  if (step.op === "update") {
    // The row is looked at before, by its key; RETURNING would build a table of its own for it.
    const sql = [`${change} WHERE ord = ?`, ...tests].join(" ");
    return { shape: { ...base, sql, sets: setCells(table, step.set) }, set, where };
  }
  const best = ["WHERE tenant = ?", ...tests].join(" ");
  const sql = `SELECT ord FROM ${table.name} ${best} ${orderBy(step)}`;
  const rows = "WHERE ord IN (SELECT value FROM json_each(?))";
  const second = { sql: `${change} ${rows} RETURNING ${columns}`, after: marksIn(sql) };
  return { shape: { ...base, sql, change: second }, set, where };
}

function orderBy({ order }: Step & { op: "take" }): string {
  const by = order.map(({ column, down }) => (down === true ? `${column} DESC` : column));
  return `ORDER BY ${[...by, "ord"].join(", ")} LIMIT ?`;
}

function marksIn(sql: string): number {
  return sql.split("?").length - 1;
}

function assignments(set: Values): string {
  const parts = Object.entries(set).map(([column, value]) =>
    isPlus(value) ? `${column} = ${column} + ?` : `${column} = ?`,
  );
  return parts.join(", ");
}

function setCells(table: Table, set: Values): SetCell[] {
  const columns = columnsOf(table);
  return Object.entries(set).map(([column, value]) => ({
    cell: columns.indexOf(column),
    plus: isPlus(value),
  }));
}

function named<Given>(
  given: Readonly<Record<string, Given>>,
  kind: (one: Given) => string,
): string[] {
  return Object.entries(given).flatMap(([name, one]) => [name, kind(one)]);
}

function kindOf(value: Values[string]): string {
  return isPlus(value) ? "+" : "=";
}

function signOf(test: Cell | Comparison): string {
  if (!isComparison(test)) return "IS";
  if ("oneOf" in test) return `IN ${test.oneOf.length}`;
  return "atLeast" in test ? ">=" : "<=";
}

function sqlTest(column: string, test: Conditions[string]): string {
  if (isComparison(test) && "oneOf" in test) {
    return `${column} IN (${test.oneOf.map(() => "?").join(", ")})`;
  }
  return `${column} ${signOf(test)} ?`;
}
