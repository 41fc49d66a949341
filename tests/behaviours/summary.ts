// From test results to "which behaviours are proved". Pure: scripts/behaviours.ts runs and prints.

import { type Part, rowId, rowsOf } from "./rows.ts";

export interface TestResult {
  /** The titles of the test and of the describes around it, joined by spaces. */
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** The public doors that it goes through; a test of inner parts alone has none, and proves no row. */
  readonly surfaces: readonly string[];
}

export interface PartSummary {
  readonly part: Part;
  readonly passing: readonly string[];
  readonly missing: readonly string[];
  /** Rows with at least one failed test. They are among the missing ones too. */
  readonly failing: readonly string[];
  /** How many of the passing rows are proved through each surface, most first. */
  readonly surfaces: readonly (readonly [surface: string, rows: number])[];
}

export interface Summary {
  readonly parts: readonly PartSummary[];
  /** Ids in test names that no part has: a typing error that would hide a row. */
  readonly unknown: readonly { readonly id: string; readonly test: string }[];
  readonly failedTests: readonly string[];
}

const ROW_ID = /\b(?:S[0-4]|I)-\d{2,3}\b/g;

export function idsIn(name: string): string[] {
  return [...new Set(name.match(ROW_ID))];
}

/**
 * A row passes when a test that goes through a public door names it, and every test that names it passed; a skipped one did
 * not.
 */
export function summarise(parts: readonly Part[], results: readonly TestResult[]): Summary {
  const known = new Set(parts.flatMap(rowsOf));
  const outcomes = new Map<string, Set<TestResult["outcome"]>>();
  const unknown: { id: string; test: string }[] = [];
  const doors = new Map<string, Set<string>>();
  for (const { name, outcome, surfaces } of results) {
    for (const id of idsIn(name)) {
      const before = doors.get(id) ?? new Set();
      doors.set(id, before.union(new Set(surfaces)));
      if (!known.has(id)) unknown.push({ id, test: name });
      outcomes.set(id, (outcomes.get(id) ?? new Set()).add(outcome));
    }
  }
  const passes = (id: string) =>
    outcomes.get(id)?.size === 1 && has(id, "passed") && (doors.get(id)?.size ?? 0) > 0;
  const has = (id: string, outcome: TestResult["outcome"]) => !!outcomes.get(id)?.has(outcome);
  return {
    parts: parts.map((part) => {
      const rows = rowsOf(part);
      return {
        part,
        passing: rows.filter(passes),
        missing: rows.filter((id) => !passes(id)),
        failing: rows.filter((id) => has(id, "failed")),
        surfaces: countedBy(rows.filter(passes).flatMap((id) => [...(doors.get(id) ?? [])])),
      };
    }),
    unknown,
    failedTests: results.filter((result) => result.outcome === "failed").map(({ name }) => name),
  };
}

function countedBy(names: readonly string[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a);
}

/** `S0-01…S0-04, S0-07`: the given rows of a part, which must be in order, as ranges. */
export function asRanges(part: Part, ids: readonly string[]): string {
  const wanted = new Set(ids);
  const ranges: string[] = [];
  for (let first = 1; first <= part.rows; first += 1) {
    if (!wanted.has(rowId(part, first))) continue;
    let last = first;
    while (wanted.has(rowId(part, last + 1))) last += 1;
    const [from, to] = [rowId(part, first), rowId(part, last)];
    ranges.push(first === last ? from : `${from}…${to}`);
    first = last;
  }
  return ranges.join(", ");
}
