// The rows of docs/spec, which is the only place where they are written down.

import { tableRows } from "../support/source-files.ts";

/** A part of the specification; its rows are numbered from 1 without gaps. */
export interface Part {
  readonly id: string;
  /** The page of docs/spec that has its rows. */
  readonly page: string;
  readonly rows: number;
}

const PAGES = {
  S0: "staging",
  S1: "interactions",
  S2: "tools",
  S3: "delegation",
  S4: "tasks",
  I: "modules",
};

export const PARTS: readonly Part[] = Object.entries(PAGES).map(([id, page]) => ({
  id,
  page,
  rows: specRows(page).length,
}));

/** What must hold, by row id. */
export const TEXTS: ReadonlyMap<string, string> = new Map(
  PARTS.flatMap(({ page }) => specRows(page)).map((row) => [
    row["row"] ?? "",
    row["what holds"] ?? "",
  ]),
);

/** The rows of one page in order, as objects by column. */
export function specRows(page: string): readonly Readonly<Record<string, string>>[] {
  return tableRows(`docs/spec/${page}.md`, "row");
}

/** The row ids of a part in order: S0-01 … S0-99, S0-100 … */
export function rowsOf(part: Part): string[] {
  return Array.from({ length: part.rows }, (_, index) => rowId(part, index + 1));
}

export function rowId(part: Part, number: number): string {
  return `${part.id}-${String(number).padStart(2, "0")}`;
}
