// `npm run behaviours`: runs the tests and prints which rows of docs/spec they prove, and the text of the others.
// A test claims a row by naming its id in its title or in the title of a describe around it. It counts when the test itself goes
// through a public door: it calls a function of the package, or opens a gate, the server, the command line or the console.
// With `--json` only the passing rows are written to stdout. Other arguments narrow the tests.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PARTS, TEXTS } from "../tests/behaviours/rows.ts";
import { asRanges, type Summary, summarise, type TestResult } from "../tests/behaviours/summary.ts";
import { surfacesOfHelped, testAt } from "../tests/behaviours/surfaces.ts";
import { run } from "./process.mjs";

/** What we read of vitest's JSON report. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
      readonly location?: { readonly line: number } | null;
    }[];
  }[];
}

/** A part with more missing rows than this, as when the tests are narrowed, lists ids instead of texts. */
const MOST_TEXTS = 20;

const root = path.dirname(import.meta.dirname);

async function main(args: readonly string[]): Promise<number> {
  const json = args.includes("--json");
  const report = await runTests(args.filter((arg) => arg !== "--json"));
  const summary = summarise(PARTS, report.testResults.flatMap(resultsOf));
  if (json) console.log(JSON.stringify(asJson(summary), undefined, 2));
  else printParts(summary);
  printProblems(summary, reasonsIn(report));
  return summary.failedTests.length === 0 && summary.unknown.length === 0 ? 0 : 1;
}

async function runTests(args: readonly string[]): Promise<Report> {
  const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-behaviours-"));
  try {
    const file = path.join(scratch, "report.json");
    const vitest = [
      "node_modules/vitest/vitest.mjs",
      "run",
      "--reporter=json",
      "--includeTaskLocation",
    ];
    console.error("running the tests…");
    const all = [...vitest, `--outputFile=${file}`, ...args];
    const { output } = await run(process.execPath, all, { cwd: root });
    if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8"));
    throw new Error(`vitest wrote no report\n${output}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function resultsOf(file: Report["testResults"][number]): TestResult[] {
  const results = file.assertionResults.map((one): TestResult => {
    const { ancestorTitles, title, status, location } = one;
    const outcome = status === "passed" || status === "failed" ? status : "skipped";
    return {
      name: nameOf(ancestorTitles, title),
      outcome,
      surfaces: surfacesAt(file.name, location),
    };
  });
  // A file that could not be loaded fails without a failed test; it must not look like success.
  if (file.status === "failed" && !results.some((result) => result.outcome === "failed")) {
    const name = `${path.relative(root, file.name)}: ${file.message}`;
    results.push({ name, outcome: "failed", surfaces: [] });
  }
  return results;
}

/** A test that a helper defines, as those of the conformance suites, has no line in the file that runs it. */
function surfacesAt(
  name: string,
  location: { readonly line: number } | null | undefined,
): readonly string[] {
  const file = path.relative(root, name);
  return location ? (testAt(file, location.line)?.surfaces ?? []) : surfacesOfHelped(file);
}

function nameOf(around: readonly string[], title: string): string {
  return [...around, title].join(" ");
}

/** Why tests failed, by name: who sees it here once may not see it again. */
function reasonsIn({ testResults }: Report): ReadonlyMap<string, string> {
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === "failed");
  return new Map(
    failed.map(({ ancestorTitles, title, failureMessages }) => [
      nameOf(ancestorTitles, title),
      failureMessages.join("\n"),
    ]),
  );
}

function asJson({ parts }: Summary) {
  return Object.fromEntries(
    parts.map(({ part, passing, surfaces }) => [
      part.id,
      { rows: part.rows, passing, surfaces: Object.fromEntries(surfaces) },
    ]),
  );
}

function printParts({ parts }: Summary): void {
  for (const { part, passing, missing, failing, surfaces } of parts) {
    const count = `${passing.length} / ${part.rows}`.padStart(9);
    console.log(`${part.id.padEnd(3)}${part.page.padEnd(22)}${count} rows pass`);
    const through = surfaces.map(([surface, rows]) => `${surface} ${rows}`).join(", ");
    if (through !== "") console.log(`     through:         ${through}`);
    if (missing.length > 0) console.log(`     no passing test: ${asRanges(part, missing)}`);
    if (missing.length <= MOST_TEXTS) {
      for (const id of missing) console.log(`       ${id}: ${TEXTS.get(id)}`);
    }
    if (failing.length > 0) console.log(`     failing:         ${asRanges(part, failing)}`);
  }
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  const passing = sum(parts.map((part) => part.passing.length));
  console.log(`\n${passing} of ${sum(parts.map(({ part }) => part.rows))} rows pass`);
}

/** On stderr, so that they are seen with `--json` as well. */
function printProblems(
  { unknown, failedTests }: Summary,
  reasons: ReadonlyMap<string, string>,
): void {
  for (const name of failedTests) console.error(`failed: ${name}\n${reasons.get(name) ?? ""}`);
  for (const { id, test } of unknown) console.error(`unknown row ${id} in the test: ${test}`);
}

process.exitCode = await main(process.argv.slice(2));
