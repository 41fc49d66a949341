import { OPERATIONS } from "../model/operation.ts";
import { EPOCH, SWITCHES } from "../model/switch.ts";
import type { JsonValue } from "../util/json.ts";
import type {
  Cell,
  Change,
  Comparison,
  Conditions,
  NowPlus,
  Order,
  Row,
  Step,
  Value,
  Values,
} from "./engine.ts";

/** The meaning of conditions and values in plain code: the memory engine runs on it, the SQL engines must agree with it. */
export function holds(row: Row, where: Conditions, now: number): boolean {
  return Object.entries(where).every(([column, test]) => holdsFor(row[column] ?? null, test, now));
}

function holdsFor(cell: Cell, test: Cell | Comparison, now: number): boolean {
  if (test instanceof Uint8Array) return cell instanceof Uint8Array && sameBytes(cell, test);
  if (!isComparison(test)) return cell === test;
  if ("oneOf" in test) return typeof cell === "string" && test.oneOf.includes(cell);
  if (typeof cell !== "number") return false;
  return "atLeast" in test
    ? cell >= resolveNumber(test.atLeast, now)
    : cell <= resolveNumber(test.atMost, now);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

export function isComparison(test: Cell | Comparison): test is Comparison {
  return typeof test === "object" && test !== null && !(test instanceof Uint8Array);
}

export function resolveNumber(value: number | NowPlus, now: number): number {
  return typeof value === "number" ? value : now + value.nowPlusMs;
}

/** The row that `set` leaves behind. Columns that `set` does not name stay as they are. */
export function applied(row: Row, set: Values, now: number): Row {
  const next: Record<string, Cell> = { ...row };
  for (const [column, value] of Object.entries(set)) {
    next[column] = resolveValue(value, now, row[column] ?? null);
  }
  return next;
}

function resolveValue(value: Value, now: number, before: Cell): Cell {
  if (isNowPlus(value)) return now + value.nowPlusMs;
  // As in SQL, nothing plus a number is still nothing.
  if (isPlus(value)) return typeof before === "number" ? before + value.plus : null;
  return value;
}

export function isNowPlus(value: Value): value is NowPlus {
  return (
    typeof value === "object" &&
    value !== null &&
    !(value instanceof Uint8Array) &&
    "nowPlusMs" in value
  );
}

export function isPlus(value: Value): value is { readonly plus: number } {
  return (
    typeof value === "object" && value !== null && !(value instanceof Uint8Array) && "plus" in value
  );
}

/** Compares rows, best first: nothing is less than anything, text goes by its bytes, and of equals the older one is better. */
export function inOrder(order: Order): (a: Row, b: Row) => number {
  return (a, b) => {
    for (const { column, down } of order) {
      const sign = compared(a[column] ?? null, b[column] ?? null);
      if (sign !== 0) return down === true ? -sign : sign;
    }
    return compared(a["ord"] ?? null, b["ord"] ?? null);
  };
}

function compared(a: Cell, b: Cell): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return Buffer.compare(Buffer.from(a as string), Buffer.from(b as string));
}

/** The beginning of an operation, or of another attempt at one. */
export function isEffect({ steps }: Change): boolean {
  return steps.some(
    (step) =>
      step.table.name === OPERATIONS.name &&
      (step.op === "insert" || (step.op === "update" && step.set["status"] === "started")),
  );
}

/**
 * What must not wait behind ordinary work and is never refused because a queue is full: the kill switch, because every
 * change it waits for may begin an effect, and the outcome of an operation, because the tool was called already.
 */
export function isUrgent({ steps }: Change): boolean {
  return steps.some(isSwitching) || steps.some(isSettling);
}

function isSwitching(step: Step): boolean {
  return (step.op === "insert" || step.op === "update") && step.table.name === SWITCHES.name;
}

function isSettling(step: Step): boolean {
  if (step.op !== "update" || step.table.name !== OPERATIONS.name) return false;
  const status = step.set["status"];
  return status !== undefined && status !== "started";
}

/** The epoch that a change begins, if it begins one. */
export function epochOf({ steps }: Change): string | undefined {
  for (const step of steps) {
    if (!isSwitching(step) || !("id" in step) || step.id !== EPOCH) continue;
    const state = (step.op === "insert" ? step.row : step.op === "update" ? step.set : {})["state"];
    if (typeof state === "string") return state;
  }
  return undefined;
}

/** About how many bytes a change is when it is sent: long texts and bytes count, the rest is an allowance. */
export function sizeOf({ steps, events }: Change): number {
  let size = 0;
  for (const step of steps) {
    size += STEP_BYTES;
    if (step.op === "insert") size += sizeOfValues(step.row);
    else if (step.op === "update" || step.op === "take") size += sizeOfValues(step.set);
  }
  for (const { data } of events) size += STEP_BYTES + sizeOfJson(data);
  return size;
}
const STEP_BYTES = 200;

function sizeOfValues(values: Values): number {
  let size = 0;
  for (const column in values) size += sizeOfValue(values[column] ?? null);
  return size;
}

function sizeOfValue(value: Value | Cell): number {
  return typeof value === "string" || value instanceof Uint8Array ? value.length : 0;
}

function sizeOfJson(value: JsonValue): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  let size = 0;
  for (const one of Object.values(value)) size += sizeOfJson(one);
  return size;
}
