import type { Query, Row, Step } from "../engine.ts";
import { holds, inOrder } from "../evaluate.ts";

/** Rows by id in order of insertion, with a look-up per indexed column, so that reading does not grow with what is stored. */
export class MemoryTable {
  readonly #rows = new Map<string, Row>();
  readonly #indexed: readonly string[];
  /** column and value → ids with it. */
  readonly #index = new Map<string, Set<string>>();
  #ord = 0;

  constructor(indexed: readonly string[]) {
    this.#indexed = indexed;
  }

  get(id: string): Row | undefined {
    return this.#rows.get(id);
  }

  put(id: string, row: Row): Row {
    const before = this.#rows.get(id);
    for (const column of this.#indexed) {
      if (before !== undefined) this.#index.get(keyOf(column, before[column]))?.delete(id);
      const key = keyOf(column, row[column]);
      const ids = this.#index.get(key) ?? new Set();
      this.#index.set(key, ids.add(id));
    }
    if (before === undefined) this.#ord += 1;
    const stored = { ...row, ord: before?.["ord"] ?? this.#ord };
    this.#rows.set(id, stored);
    return stored;
  }

  /** Gives back what was there. */
  delete(id: string, row: Row): Row {
    for (const column of this.#indexed) this.#index.get(keyOf(column, row[column]))?.delete(id);
    this.#rows.delete(id);
    return row;
  }

  /** Best first. */
  best({ where, order, limit }: Step & { op: "take" }, now: number): readonly Row[] {
    const found = this.#candidates(where).filter((row) => holds(row, where, now));
    return found.sort(inOrder(order)).slice(0, limit);
  }

  /** Oldest first unless the query says otherwise. */
  find(query: Query, now: number): readonly Row[] {
    const { where = {}, afterOrd = 0, beforeOrd = Infinity, newestFirst, limit } = query;
    const found = this.#candidates(where).filter((row) => {
      const ord = Number(row["ord"]);
      return ord > afterOrd && ord < beforeOrd && holds(row, where, now);
    });
    const sign = newestFirst === true ? -1 : 1;
    return found.sort((a, b) => sign * (Number(a["ord"]) - Number(b["ord"]))).slice(0, limit);
  }

  #candidates(where: NonNullable<Query["where"]>): Row[] {
    for (const column of this.#indexed) {
      const test = where[column];
      if (typeof test !== "string") continue;
      const ids = [...(this.#index.get(keyOf(column, test)) ?? [])];
      return ids.map((id) => this.#rows.get(id)).filter((row) => row !== undefined);
    }
    return [...this.#rows.values()];
  }
}

function keyOf(column: string, value: unknown): string {
  return `${column}\n${String(value)}`;
}
