import type { Figures, Recorded } from "../tests/support/record.ts";

/** A goal of the threat model, what has to be found zero and how much must really have happened. */
export interface Goal {
  readonly id: string;
  readonly what: string;
  /** Figures that must be there and be 0. */
  readonly zero: readonly string[];
  /** Least activity of the short proof and of the full one; less makes the run void. */
  readonly least: { readonly proof: Figures; readonly full: Figures };
  /** Most of what is measured. */
  readonly most?: Figures;
}

export interface Judged {
  readonly id: string;
  readonly what: string;
  readonly verdict: "holds" | "broken" | "void";
  readonly figures: Figures;
  readonly seeds: readonly string[];
  readonly problems: readonly string[];
}

/** Counts of several tests for one goal are added up; of what was measured (`p99 ms`) the worst is taken. */
export function judge(goal: Goal, records: readonly Recorded[], scale: "proof" | "full"): Judged {
  const own = records.filter((record) => record.goal === goal.id);
  const figures = addedUp(own.map((record) => record.figures));
  const missing = [...goal.zero, ...Object.keys(goal.least[scale]), ...Object.keys(goal.most ?? {})]
    .filter((name) => figures[name] === undefined)
    .map((name) => `nobody told "${name}"`);
  const found = goal.zero
    .filter((name) => (figures[name] ?? 0) !== 0)
    .map((name) => `${name}: ${figures[name]}`);
  const slow = Object.entries(goal.most ?? {})
    .filter(([name, most]) => (figures[name] ?? 0) > most)
    .map(([name, most]) => `${name}: ${figures[name]}, at most ${most}`);
  const idle = Object.entries(goal.least[scale])
    .filter(([name, least]) => (figures[name] ?? 0) < least)
    .map(([name, least]) => `${name}: ${figures[name] ?? 0}, at least ${least}`);
  const broken = [...found, ...slow];
  const problems = [...broken, ...missing, ...idle];
  return {
    id: goal.id,
    what: goal.what,
    verdict: broken.length > 0 ? "broken" : problems.length > 0 ? "void" : "holds",
    figures,
    seeds: own.flatMap(({ seed }) => (seed === undefined ? [] : [String(seed)])),
    problems,
  };
}

const MEASURED = /\b(?:p\d+|ms|max|worst|%)\b/;

function addedUp(all: readonly Figures[]): Figures {
  const sum: Record<string, number> = {};
  for (const figures of all) {
    for (const [name, value] of Object.entries(figures)) {
      const before = sum[name];
      if (before === undefined) sum[name] = value;
      else sum[name] = MEASURED.test(name) ? Math.max(before, value) : before + value;
    }
  }
  return sum;
}
