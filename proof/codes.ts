import type { TestResult } from "./run-tests.ts";

/** A row of the threat model and whether the tests that name it stand. */
export interface Row {
  readonly code: string;
  /** `none`: no source names it. */
  readonly outcome: "holds" | "broken" | "none";
  readonly tests: number;
}

/** The codes of one letter, `R1` to `R30`. A row holds when a test names it, and all that name it have passed. */
export function rowsOf(
  letter: string,
  count: number,
  tests: readonly TestResult[],
): readonly Row[] {
  return Array.from({ length: count }, (_, index) => {
    const code = `${letter}${index + 1}`;
    const named = new RegExp(String.raw`\b${code}\b`);
    const own = tests.filter(({ name, outcome }) => outcome !== "skipped" && named.test(name));
    const isBroken = own.some(({ outcome }) => outcome === "failed");
    return {
      code,
      outcome: own.length === 0 ? "none" : isBroken ? "broken" : "holds",
      tests: own.length,
    };
  });
}

export function holding(rows: readonly Row[]): number {
  return rows.filter(({ outcome }) => outcome === "holds").length;
}
