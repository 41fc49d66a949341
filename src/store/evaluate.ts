import type { Cell, Comparison, Conditions, NowPlus, Order, Row, Value, Values } from "./engine.ts";

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
