import { dataHash, type SealedData } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { canonicalJson, canonicalParts } from "../../util/canonical-json.ts";
import type { Random } from "../../util/random.ts";
import type {
  Cell,
  Change,
  ChangeResult,
  Comparison,
  Conditions,
  EventPlan,
  Left,
  Row,
  Step,
  Table,
  Value,
  Values,
} from "../engine.ts";
import { isComparison, isNowPlus } from "../evaluate.ts";
import { newSalt } from "../turn.ts";
import { columnsOf, type Shapes } from "./shapes.ts";

/** A change made ready for the writer, in whatever thread that is: shapes by number, values in a list, data as text. */
export interface Order {
  readonly tenant: string;
  readonly steps: readonly StepOrder[];
  readonly events: readonly EventOrder[];
}

export interface StepOrder {
  /** The number of its shape. */
  readonly shape: number;
  readonly id: string;
  readonly values: readonly Cell[];
  /** Which of the values count from the transaction's time. */
  readonly times: readonly number[];
}

export interface EventOrder {
  readonly type: string;
  readonly subject: string | Place;
  readonly session: string | Place;
  readonly actor: string;
  /** Canonical, in parts: between two of them comes a fact. None when it is sealed. */
  readonly parts: readonly string[];
  readonly facts: readonly Place[];
  /** Ready to be chained when it holds no facts and is told once; otherwise the writer seals it. */
  readonly sealed: SealedData | undefined;
  readonly each: boolean;
}

/** A cell of the row that a step leaves behind. */
export interface Place {
  readonly step: number;
  readonly cell: number;
}

export type Cells = readonly Cell[];

/** What the writer answers to an order; a required record that may be missing, and is, leaves no cells. */
export type Answer =
  | { readonly at: number; readonly seq: number; readonly rows: readonly Cells[] }
  | { readonly step: number; readonly current: Cells | undefined };

/** Throws invalid_input when an event cannot be put into the trail, or when there is none. */
export function orderOf(tenant: string, change: Change, shapes: Shapes, random: Random): Order {
  const steps = change.steps.map((step) => stepOrder(tenant, step, shapes));
  try {
    const events = change.events.map((plan) => eventOrder(plan, change.steps, random));
    if (events.length > 0) return { tenant, steps, events };
  } catch (cause) {
    const hint = "What happened could not be put into the trail, so nothing was written.";
    throw new SallyportError("invalid_input", { what: "event", hint }, cause);
  }
  const hint = "No state changes without an entry in the trail: give the change an event.";
  throw new SallyportError("invalid_input", { what: "change", hint });
}

function stepOrder(tenant: string, step: Step, shapes: Shapes): StepOrder {
  const values: Cell[] = [];
  const times: number[] = [];
  if (step.op === "update") {
    addValues(step.set, values, times);
    // Where the row is will be found when it is written.
    values.push(null);
  } else {
    values.push(tenant);
    if (step.op !== "take") values.push(step.id);
  }
  if (step.op === "insert") addRow(step, values, times);
  else addTests(step.where, values, times);
  if (step.op === "take") {
    values.push(step.limit);
    addValues(step.set, values, times);
  }
  return { shape: shapes.of(step).nr, id: step.op === "take" ? "" : step.id, values, times };
}

/** Every column has its place, whether it was given or not. */
function addRow({ table, row }: Step & { op: "insert" }, values: Cell[], times: number[]): void {
  let given = 0;
  for (const column in table.columns) {
    const value = row[column];
    if (value !== undefined) given += 1;
    addValue(value ?? null, values, times);
  }
  if (given === Object.keys(row).length) return;
  throw new TypeError(`a row for ${table.name} names a column that is not there`);
}

function addValues(set: Values, values: Cell[], times: number[]): void {
  for (const column in set) addValue(set[column] as Value, values, times);
}

function addValue(value: Value, values: Cell[], times: number[]): void {
  if (value === null || typeof value !== "object") values.push(value);
  // A copy: what is written and handed back is not to share memory with what the caller holds.
  else if (value instanceof Uint8Array) values.push(new Uint8Array(value));
  else if (isNowPlus(value)) {
    times.push(values.length);
    values.push(value.nowPlusMs);
  } else values.push(value.plus);
}

function addTests(where: Conditions, values: Cell[], times: number[]): void {
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
  const cell = table === undefined ? -1 : columnsOf(table).indexOf(left);
  if (cell === -1) throw new TypeError(`step ${step} leaves no column ${left} behind`);
  return { step, cell };
}

/** The answer in the words of the contract. */
export function resultOf({ steps }: Change, answer: Answer): ChangeResult {
  if ("step" in answer) {
    const { step, current } = answer;
    const table = steps[step]?.table;
    const row = current && table ? rowOf(table, current) : undefined;
    return { committed: false, step, current: row };
  }
  const { at, seq } = answer;
  // A take is alone in its change, so all rows are of the first step's table.
  const rows = answer.rows.map((cells, index) => {
    const table = (steps[index] ?? steps[0])?.table;
    return table === undefined ? {} : rowOf(table, cells);
  });
  return { committed: true, at, rows, seq };
}

/** A copy of a row that has all columns already: putting them in one by one costs several times as much. */
export function rowOf(table: Table, cells: Cells): Row {
  const columns = columnsOf(table);
  if (cells.length === 0) return {};
  const row: Record<string, Cell> = { ...blankOf(table) };
  for (let index = 0; index < cells.length; index += 1) {
    row[columns[index] as string] = cells[index] as Cell;
  }
  return row;
}

function blankOf(table: Table): Row {
  let blank = blanks.get(table);
  if (blank === undefined) {
    blank = Object.fromEntries(columnsOf(table).map((column) => [column, null]));
    blanks.set(table, blank);
  }
  return blank;
}
const blanks = new WeakMap<Table, Row>();
