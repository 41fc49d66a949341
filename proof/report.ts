// One run as data and as a page.

import path from "node:path";
import type { Recorded } from "../tests/support/record.ts";
import { holding, type Row } from "./codes.ts";

import type { Judged } from "./goals.ts";
import type { Bug } from "./planted/bug.ts";
import type { Tried } from "./planted/try-bugs.ts";
import type { TestResult } from "./run-tests.ts";

export interface Report {
  readonly version: string;
  readonly commit: string;
  readonly at: string;
  readonly scale: "proof" | "full";
  readonly machine: { readonly cores: number; readonly node: string; readonly load: number };
  readonly seconds: number;
  readonly verdict: "holds" | "broken" | "void";
  readonly tests: { readonly passed: number; readonly failed: number; readonly skipped: number };
  readonly failed: readonly TestResult[];
  /** Of doors, where each test has to run. */
  readonly skipped: readonly TestResult[];
  readonly goals: readonly Judged[];
  readonly corpus: readonly Row[];
  readonly threats: readonly Row[];
  readonly invariants: readonly Row[];
  readonly planted: readonly Tried[];
  /** Everything that tests have told, also beyond the goals. */
  readonly records: readonly Recorded[];
}

/** A page is read by people; the data has more of it. */
const MOST_OF_REASON = 120;

/** A single broken thing breaks the run; with nothing broken, something that did not really happen makes it void. */
export function verdictOf(
  report: Pick<Report, "failed" | "skipped" | "goals" | "corpus" | "planted">,
): Report["verdict"] {
  const { failed, skipped, goals, corpus, planted } = report;
  const isBroken =
    failed.length > 0 ||
    goals.some(({ verdict }) => verdict === "broken") ||
    corpus.some(({ outcome }) => outcome === "broken") ||
    planted.some(({ outcome }) => outcome === "missed");
  if (isBroken) return "broken";
  const isVoid =
    skipped.length > 0 ||
    goals.some(({ verdict }) => verdict === "void") ||
    corpus.some(({ outcome }) => outcome === "none") ||
    planted.some(({ outcome }) => outcome !== "caught");
  return isVoid ? "void" : "holds";
}

export function pageOf(report: Report): string {
  const { goals, planted, corpus, threats, invariants, failed, skipped, tests } = report;
  const caught = planted.filter(({ outcome }) => outcome === "caught").length;
  return [
    `# Proof of ${report.at.slice(0, 10)}: ${report.verdict}`,
    "",
    `Version ${report.version}, commit ${report.commit}, scale "${report.scale}", ${about(report.seconds)} on ${report.machine.cores} cores (load ${report.machine.load.toFixed(1)} at the end), Node ${report.machine.node}.`,
    "",
    `${tests.passed} tests passed, ${tests.failed} failed, ${tests.skipped} skipped. Corpus ${holding(corpus)}/${corpus.length}, threats ${holding(threats)}/${threats.length}, planted bugs caught ${caught}/${planted.length}.`,
    ...listOf("Failed", failed),
    ...listOf("Skipped at a door, where each test has to run", skipped),
    "",
    "## Goals: what really happened, and what was found",
    "",
    table(["goal", "what", "verdict", "figures", "seeds"], goals.map(goalRow)),
    "",
    "## Planted bugs",
    "",
    table(
      ["bug", "mistake", "outcome", "first test that went red", "what it said"],
      planted.map(bugRow),
    ),
    "",
    "## Rows of the threat model",
    "",
    `Defects: ${rows(corpus)}`,
    "",
    `Threats: ${rows(threats)}`,
    "",
    `Invariants named by tests: ${rows(invariants)}`,
    "",
  ].join("\n");
}

/** Every planted bug, by where the mistake is. */
export function plantedPage(bugs: readonly Bug[]): string {
  const place = ({ file, name }: Bug) => `${path.dirname(file)} ${name}`;
  const sorted = bugs.toSorted((a, b) => (place(a) < place(b) ? -1 : 1));
  const row = ({ name, what, file, caughtBy }: Bug) => [name, what, file, caughtBy.file];
  return [
    "# Planted bugs",
    "",
    "Each is put into the product while it is loaded, and the named test has to notice it. `npm run proof` tries them all, and",
    "`npm run proof -- --list` writes this page.",
    "",
    table(["bug", "mistake", "in", "noticed by"], sorted.map(row)),
    "",
  ].join("\n");
}

function listOf(title: string, tests: readonly TestResult[]): readonly string[] {
  if (tests.length === 0) return [];
  return ["", `## ${title}`, "", ...tests.map(({ file, name }) => `- ${name} (${file})`)];
}

function goalRow({ id, what, verdict, figures, seeds, problems }: Judged): readonly string[] {
  const shown = Object.entries(figures).map(([name, value]) => `${name} ${amount(value)}`);
  const told = problems.length === 0 ? verdict : `${verdict}: ${problems.join("; ")}`;
  return [id, what, told, shown.join(", "), seeds.slice(0, 6).join(" ")];
}

function bugRow({ name, what, outcome, by, why }: Tried): readonly string[] {
  return [name, what, outcome, by, why.slice(0, MOST_OF_REASON)];
}

/** `R1 to R30 hold`, or which do not. */
function rows(all: readonly Row[]): string {
  const off = all.filter(({ outcome }) => outcome !== "holds");
  const whole = `${all[0]?.code} to ${all.at(-1)?.code}`;
  if (off.length === 0) return `${whole} hold.`;
  const told = off.map(
    ({ code, outcome }) => `${code} (${outcome === "none" ? "no test names it" : "broken"})`,
  );
  return `${holding(all)} of ${whole} hold; not: ${told.join(", ")}.`;
}

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...body.map(line)].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

function amount(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString("en-US") : value.toPrecision(3);
}

function about(seconds: number): string {
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
