import { dataHash, type SealedData } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { canonicalJson, canonicalParts } from "../../util/canonical-json.ts";
import type { Random } from "../../util/random.ts";
import {
  type Cell,
  type Change,
  type ChangeResult,
  type Comparison,
  type Conditions,
  type EventPlan,
  isComparison,
  isNowPlus,
  isPlus,
  type Left,
  type Row,
  type Step,
  type Table,
  type Value,
  type Values,
} from "../engine.ts";
import { newSalt } from "../turn.ts";

// From a change to what the writer executes, and back from its answer to the result. An order is plain data without
// functions, so that either thread can execute it.

/** A change prepared for the writer: statements with their values in a list, event data as canonical text. */
export interface WriteOrder {
  readonly tenant: string;
  readonly steps: readonly StepOrder[];
  readonly events: readonly EventOrder[];
}

export interface StepOrder {
  readonly statement: StepStatement;
  readonly id: string;
  readonly values: readonly Cell[];
  /** Indexes of the values that are added to the transaction's time. */
  readonly times: readonly number[];
}

/** The SQL of a step without its values. Steps that differ only in values share one, so that it is prepared once. */
export interface StepStatement {
  readonly op: Step["op"];
  readonly sql: string;
  /** Reads the record by tenant and id, for the answer to a step that did not hold. */
  readonly look: string;
  /** A required record may be missing. */
  readonly mayBeAbsent: boolean;
  /** Second half of a take: `sql` finds the best rows with the first `after` values, this changes them with the rest. */
  readonly change?: { readonly sql: string; readonly after: number };
}

export interface EventOrder {
  readonly type: string;
  readonly subject: string | Place;
  readonly session: string | Place;
  readonly actor: string;
  /** Canonical JSON in parts; a fact goes between two of them. Empty when `sealed` is set. */
  readonly parts: readonly string[];
  readonly facts: readonly Place[];
  /** Set when the data does not depend on rows; otherwise the writer seals the data. */
  readonly sealed: SealedData | undefined;
  /** One entry for each row that the step took. */
  readonly each: boolean;
}

/** A cell of the row that a step leaves behind. */
export interface Place {
  readonly step: number;
  readonly cell: number;
}

export type Cells = readonly Cell[];

/** The writer's answer to an order. A required record that may be absent, and is, has no cells. */
export type Answer =
  | { readonly at: number; readonly seq: number; readonly rows: readonly Cells[] }
  | { readonly step: number; readonly current: Cells | undefined };

/** Throws invalid_input when an event cannot be recorded in the trail, or when the change has no event. */
export function writeOrderOf(tenant: string, change: Change, random: Random): WriteOrder {
  const steps = change.steps.map((step) => stepOrder(tenant, step));
  try {
    const events = change.events.map((plan) => eventOrder(plan, change.steps, random));
    if (events.length > 0) return { tenant, steps, events };
  } catch (cause) {
    const hint = "The event could not be recorded in the trail, so nothing was written.";
    throw new SallyportError("invalid_input", { what: "event", hint }, cause);
  }
  const hint = "A change needs at least one event, because every change of state is audited.";
  throw new SallyportError("invalid_input", { what: "change", hint });
}

/** Collects the values in the order of the placeholders in the statement. */
function stepOrder(tenant: string, step: Step): StepOrder {
  const values: Cell[] = [];
  const times: number[] = [];
  if (step.op === "update") addValues(step.set, values, times);
  values.push(tenant);
  if (step.op !== "take") values.push(step.id);
  if (step.op === "insert") addRow(step, values, times);
  else addTests(step.where, values, times);
  if (step.op === "take") {
    values.push(step.limit);
    addValues(step.set, values, times);
  }
  const id = step.op === "take" ? "" : step.id;
  return { statement: statementOf(step), id, values, times };
}

/** The values of a step with the transaction's time added to those that depend on it. */
export function timed({ values, times }: StepOrder, at: number): readonly Cell[] {
  if (times.length === 0) return values;
  const own = values.slice();
  for (const index of times) own[index] = at + (own[index] as number);
  return own;
}

/** The row that an insert leaves behind: its values are those of all columns after its number. */
export function cellsOfInsert(number: Cell, step: StepOrder, at: number): Cells {
  return [number, ...timed(step, at)];
}

/** A value for every column of the table, NULL where the row gives none. */
function addRow({ table, row }: Step & { op: "insert" }, values: Cell[], times: number[]): void {
  let given = 0;
  for (const column in table.columns) {
    const value = row[column];
    if (value !== undefined) given += 1;
    addValue(value ?? null, values, times);
  }
  if (given === Object.keys(row).length) return;
  throw new TypeError(`a row for ${table.name} names a column that the table does not have`);
}

function addValues(set: Values, values: Cell[], times: number[]): void {
  for (const column in set) addValue(set[column] as Value, values, times);
}

function addValue(value: Value, values: Cell[], times: number[]): void {
  if (value === null || typeof value !== "object") values.push(value);
  // A copy: what is written and returned must not share memory with what the caller holds.
  else if (value instanceof Uint8Array) values.push(new Uint8Array(value));
  else if (isNowPlus(value)) {
    times.push(values.length);
    values.push(value.nowPlusMs);
  } else values.push(value.plus);
}

/** The values of the tests that `sqlTest` spells, in the same order. */
export function addTests(where: Conditions, values: Cell[], times: number[]): void {
  for (const column in where) {
    const test = where[column] as Cell | Comparison;
    if (!isComparison(test)) values.push(test);
    else if ("oneOf" in test) values.push(...test.oneOf);
    else addValue("atLeast" in test ? test.atLeast : test.atMost, values, times);
  }
}

function eventOrder(plan: EventPlan, steps: readonly Step[], random: Random): EventOrder {
  const { type, subject, session, actor, facts, each = false } = plan;
  const order = {
    type,
    subject: typeof subject === "string" ? subject : placeOf(subject, steps),
    session: typeof session === "string" ? session : placeOf(session, steps),
    actor,
    each,
  };
  if (facts === undefined) {
    const data = canonicalJson(plan.data);
    if (each) return { ...order, parts: [data], facts: [], sealed: undefined };
    return { ...order, parts: [], facts: [], sealed: seal(data, random) };
  }
  const { parts, gaps } = canonicalParts(plan.data, Object.keys(facts));
  const places = gaps.map((name) => placeOf(facts[name] as Left, steps));
  return { ...order, parts, facts: places, sealed: undefined };
}

export function seal(data: string, random: Random): SealedData {
  const salt = newSalt(random);
  return { data, salt, dataHash: dataHash(salt, data) };
}

function placeOf({ left, step = 0 }: Left, steps: readonly Step[]): Place {
  const table = steps[step]?.table;
  const cell = table === undefined ? -1 : columnNames(table).indexOf(left);
  if (cell === -1) throw new TypeError(`step ${step} leaves no column ${left} behind`);
  return { step, cell };
}

/** The writer's answer as the result that the engine contract asks for. */
export function resultOf({ steps }: Change, answer: Answer): ChangeResult {
  if ("step" in answer) {
    const { step, current } = answer;
    const table = steps[step]?.table;
    const row = current && table ? rowOf(table, current) : undefined;
    return { committed: false, step, current: row };
  }
  const { at, seq } = answer;
  // A take is alone in its change, so all its rows are of the first step's table.
  const rows = answer.rows.map((cells, index) => {
    const table = (steps[index] ?? steps[0])?.table;
    return table === undefined ? {} : rowOf(table, cells);
  });
  return { committed: true, at, rows, seq };
}

/** Starts from a copy of a row that has all columns: adding them one by one costs several times as much. */
export function rowOf(table: Table, cells: Cells): Row {
  if (cells.length === 0) return {};
  const { columns, blank } = layoutOf(table);
  const row: Record<string, Cell> = { ...blank };
  for (let index = 0; index < cells.length; index += 1) {
    row[columns[index] as string] = cells[index] as Cell;
  }
  return row;
}

/** The columns in the order in which the cells of a row come. */
export function columnNames(table: Table): readonly string[] {
  return layoutOf(table).columns;
}

interface Layout {
  readonly columns: readonly string[];
  /** A row with all columns, each of them NULL. */
  readonly blank: Row;
  readonly statements: Map<string, StepStatement>;
}

function layoutOf(table: Table): Layout {
  let layout = layouts.get(table);
  if (layout === undefined) {
    const columns = ["ord", "tenant", "id", ...Object.keys(table.columns)];
    const blank = Object.fromEntries(columns.map((column) => [column, null]));
    layout = { columns, blank, statements: new Map() };
    layouts.set(table, layout);
  }
  return layout;
}
const layouts = new WeakMap<Table, Layout>();

/** Column names come from the tables in code, never from callers. */
function statementOf(step: Step): StepStatement {
  const { statements } = layoutOf(step.table);
  const shape = shapeOf(step);
  let statement = statements.get(shape);
  if (statement === undefined) {
    statement = newStatement(step);
    statements.set(shape, statement);
  }
  return statement;
}

/** Steps of one table that have the same shape share a statement. */
function shapeOf(step: Step): string {
  if (step.op === "insert") return "insert";
  let shape: string = step.op === "require" ? step.op + step.absent : step.op;
  for (const column in step.where) shape += ` ${column}${signOf(step.where[column] as Cell)}`;
  if (step.op !== "update" && step.op !== "take") return shape;
  shape += ":";
  for (const column in step.set)
    shape += isPlus(step.set[column] as Value) ? ` ${column}+` : ` ${column}`;
  return step.op === "take" ? shape + orderBy(step) : shape;
}

function newStatement(step: Step): StepStatement {
  const { op, table } = step;
  const columns = columnNames(table).join(", ");
  const look = `SELECT ${columns} FROM ${table.name} WHERE tenant = ? AND id = ?`;
  const base = { op, look, mayBeAbsent: op === "require" && step.absent === "holds" };
  if (step.op === "insert") {
    const names = columnNames(table).slice(1);
    const marks = names.map(() => "?").join(", ");
    // An id that is taken is an answer and not an error: nothing changes.
    const sql = `INSERT INTO ${table.name} (${names.join(", ")}) VALUES (${marks}) ON CONFLICT (tenant, id) DO NOTHING`;
    return { ...base, sql };
  }
  const tests = Object.entries(step.where).map(([column, test]) => `AND ${sqlTest(column, test)}`);
  const byKey = ["WHERE tenant = ? AND id = ?", ...tests].join(" ");
  if (step.op === "require")
    return { ...base, sql: `SELECT ${columns} FROM ${table.name} ${byKey}` };
  if (step.op === "delete") {
    return { ...base, sql: `DELETE FROM ${table.name} ${byKey} RETURNING ${columns}` };
  }
  const update = `UPDATE ${table.name} SET ${assignments(step.set)}`;
  if (step.op === "update") return { ...base, sql: `${update} ${byKey} RETURNING ${columns}` };
  // Finds first and changes then: the rows that RETURNING gives come in no order.
  const best = ["WHERE tenant = ?", ...tests].join(" ");
  const sql = `SELECT ord FROM ${table.name} ${best} ${orderBy(step)}`;
  const rows = "WHERE ord IN (SELECT value FROM json_each(?))";
  const change = {
    sql: `${update} ${rows} RETURNING ${columns}`,
    after: sql.split("?").length - 1,
  };
  return { ...base, sql, change };
}

function orderBy({ order }: Step & { op: "take" }): string {
  const by = order.map(({ column, down }) => (down === true ? `${column} DESC` : column));
  return `ORDER BY ${[...by, "ord"].join(", ")} LIMIT ?`;
}

function assignments(set: Values): string {
  const parts = Object.entries(set).map(([column, value]) =>
    isPlus(value) ? `${column} = ${column} + ?` : `${column} = ?`,
  );
  return parts.join(", ");
}

function signOf(test: Cell | Comparison): string {
  if (!isComparison(test)) return "IS";
  if ("oneOf" in test) return `IN ${test.oneOf.length}`;
  return "atLeast" in test ? ">=" : "<=";
}

/** One test of a condition as SQL. */
export function sqlTest(column: string, test: Conditions[string]): string {
  if (isComparison(test) && "oneOf" in test) {
    return `${column} IN (${test.oneOf.map(() => "?").join(", ")})`;
  }
  return `${column} ${signOf(test)} ?`;
}
