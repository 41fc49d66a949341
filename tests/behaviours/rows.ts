/** A part of the behaviour list; its rows are numbered from 1 without gaps. */
export interface Part {
  readonly id: string;
  readonly title: string;
  readonly rows: number;
}

export const PARTS: readonly Part[] = [
  { id: "S0", title: "staging", rows: 113 },
  { id: "S1", title: "pending interaction", rows: 50 },
  { id: "S2", title: "tools", rows: 107 },
  { id: "S3", title: "delegation", rows: 41 },
  { id: "S4", title: "task list", rows: 70 },
  { id: "I", title: "implied modules", rows: 84 },
];

/** The row ids of a part in order: S0-01 … S0-99, S0-100 … */
export function rowsOf(part: Part): string[] {
  return Array.from({ length: part.rows }, (_, index) => rowId(part, index + 1));
}

export function rowId(part: Part, number: number): string {
  return `${part.id}-${String(number).padStart(2, "0")}`;
}
