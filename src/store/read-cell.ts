import { SallyportError } from "../model/errors.ts";
import type { Instant } from "../model/instant.ts";
import { toIso } from "../util/clock.ts";
import { decodeValue } from "../util/value-codec.ts";
import type { Row } from "./engine.ts";

/** The value that was encoded into a cell. Throws damaged_record. */
export function decoded<Shape>(row: Row, column: string): Shape {
  const cell = row[column];
  if (typeof cell !== "string") throw damaged(row, column);
  try {
    return decodeValue(cell) as Shape;
  } catch (cause) {
    throw damaged(row, column, cause);
  }
}

/** A cell that holds one of these names. Throws damaged_record. */
export function oneOf<Name extends string>(row: Row, column: string, names: readonly Name[]): Name {
  const name = names.find((known) => known === row[column]);
  if (name === undefined) throw damaged(row, column);
  return name;
}

/** A cell that holds a time. Throws damaged_record. */
export function instantIn(row: Row, column: string): Instant {
  try {
    return toIso(Number(row[column]));
  } catch (cause) {
    throw damaged(row, column, cause);
  }
}

export function damaged(row: Row, column: string, cause?: unknown): SallyportError {
  const hint = "Run a store check and compare with the audit trail before you trust this store.";
  return new SallyportError("damaged_record", { id: String(row["id"]), column, hint }, cause);
}
