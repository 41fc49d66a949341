// Runs every test that names a code of the threat model, and reads back what they did.

import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { run } from "../scripts/process.mjs";
import type { Recorded } from "../tests/support/record.ts";
import type { Scale } from "../tests/support/scale.ts";

const ROOT = path.resolve(import.meta.dirname, "..");
/** A defect, a threat, a goal or an invariant: `R12`, `T7`, `G5`, `I28`. Behaviours, `I-28`, are another list. */
const CODE = String.raw`\b[RTGI]\d{1,2}\b`;

/** Held against a clock: at full scale each of them runs by itself, when all the others are done. */
const ALONE = [
  "tests/faults/load.test.ts",
  "tests/fuzz/http.test.ts",
  "tests/http/flood/flood.test.ts",
];

export interface TestRun {
  readonly tests: readonly TestResult[];
  readonly records: readonly Recorded[];
  readonly seconds: number;
}

export interface TestResult {
  readonly file: string;
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it failed, the first lines. */
  readonly why: string;
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

/** `only`: parts of paths, to run some of it. */
export async function runTests(
  scale: Scale,
  database: string,
  only: readonly string[],
): Promise<TestRun> {
  const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-proof-"));
  const records = path.join(scratch, "records");
  const started = performance.now();
  try {
    const files = testFiles().filter(
      (file) => only.length === 0 || only.some((part) => file.includes(part)),
    );
    console.error(`${files.length} files with tests that name a code, at the scale "${scale}"`);
    const env = { ...process.env, SCALE: scale, PROOF_FILE: records, DATABASE_URL: database };
    const tests: TestResult[] = [];
    for (const together of turnsOf(files, scale)) {
      tests.push(...(await runFiles(together, path.join(scratch, "report.json"), env)));
    }
    return { tests, records: linesOf(records), seconds: (performance.now() - started) / 1_000 };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function turnsOf(files: readonly string[], scale: Scale): readonly (readonly string[])[] {
  // Without a file vitest would run them all.
  if (files.length === 0) return [];
  if (scale !== "full") return [files];
  const crowd = files.filter((file) => !ALONE.includes(file));
  const alone = files.filter((file) => ALONE.includes(file)).map((file) => [file]);
  return [crowd, ...alone].filter((together) => together.length > 0);
}

async function runFiles(
  files: readonly string[],
  report: string,
  env: NodeJS.ProcessEnv,
): Promise<readonly TestResult[]> {
  rmSync(report, { force: true });
  const reporters = [
    "--reporter=json",
    `--outputFile.json=${report}`,
    "--reporter=./proof/progress-reporter.ts",
  ];
  const args = ["node_modules/vitest/vitest.mjs", "run", ...files, "-t", CODE, ...reporters];
  const { code, signal } = await run(process.execPath, args, { cwd: ROOT, env, stdio: "inherit" });
  if (!existsSync(report)) throw new Error(`the tests wrote no report (${code ?? signal})`);
  return (JSON.parse(readFileSync(report, "utf8")) as Report).testResults.flatMap(resultsOf);
}

function testFiles(): readonly string[] {
  const all = globSync(["tests/**/*.test.ts", "src/**/*.test.ts", "console/**/*.test.ts"], {
    cwd: ROOT,
  });
  const code = new RegExp(CODE);
  return all.filter((file) => code.test(readFileSync(path.join(ROOT, file), "utf8"))).sort();
}

function resultsOf(file: Report["testResults"][number]): readonly TestResult[] {
  const name = path.relative(ROOT, file.name);
  const results = file.assertionResults.map(
    ({ fullName, status, failureMessages = [] }): TestResult => ({
      file: name,
      name: fullName,
      outcome: status === "passed" || status === "failed" ? status : "skipped",
      why: failureMessages.join("\n").slice(0, 600),
    }),
  );
  // A file that could not be loaded fails without a failed test; it must not look like success.
  if (file.status !== "failed" || results.some(({ outcome }) => outcome === "failed"))
    return results;
  return [...results, { file: name, name, outcome: "failed", why: file.message.slice(0, 600) }];
}

function linesOf(file: string): readonly Recorded[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Recorded);
}
