// Runs every test that names a code of the threat model and every test of a door, and reads back what they did.

import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { install } from "../scripts/install.mjs";
import { run } from "../scripts/process.mjs";
import type { Recorded } from "../tests/support/record.ts";
import type { Scale } from "../tests/support/scale.ts";

const ROOT = path.resolve(import.meta.dirname, "..");
/** A defect, a threat, a goal or an invariant: `R12`, `T7`, `G5`, `I28`. Behaviours, `I-28`, are another list. */
const CODE = String.raw`\b[RTGI]\d{1,2}\b`;

/** What agents come in by, with the programs that it is tested against: all of their tests, whatever the titles name. */
const DOORS = ["tests/mcp/", "tests/coding-agents/", "tests/adapters/"];
const PROGRAMS = ["tools/mcp", "tools/hosts", "tools/frameworks", "tools/notify"];

/** At full scale it is run by so many processes, each with its part of the seeds. */
const SIMULATION = "tests/simulation/simulation.test.ts";
const SIMULATED = { seeds: 20_000, processes: 2 };

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
  /** The test belongs to a door, where all are run: one that was skipped has shown nothing. */
  readonly isOfDoor: boolean;
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
    const isWanted = (file: string) =>
      only.length === 0 || only.some((part) => file.includes(part));
    const files = filesWithCodes().filter(isWanted);
    const doors = filesOfDoors().filter(isWanted);
    console.error(
      `${files.length} files with tests that name a code and ${doors.length} of doors, at the scale "${scale}"`,
    );
    const env = { ...process.env, SCALE: scale, PROOF_FILE: records, DATABASE_URL: database };
    if (doors.length > 0) await installPrograms();
    const tests: TestResult[] = [];
    const turns = [...turnsOf(files, scale), ...(doors.length > 0 ? [[{ files: doors }]] : [])];
    for (const [at, together] of turns.entries()) {
      const running = together.map((part, of) =>
        runFiles(part, path.join(scratch, `report-${at}-${of}.json`), env),
      );
      tests.push(...(await Promise.all(running)).flat());
    }
    return { tests, records: linesOf(records), seconds: (performance.now() - started) / 1_000 };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function installPrograms(): Promise<void> {
  for (const folder of PROGRAMS) {
    await install(path.join(ROOT, folder), `${folder} (once, ~30 s)`, process.env);
  }
}

/** Files of one process, with what it is told besides. */
interface Part {
  readonly files: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** What runs after each other; the parts of one turn run beside each other. */
export function turnsOf(files: readonly string[], scale: Scale): readonly (readonly Part[])[] {
  // Without a file vitest would run them all.
  if (files.length === 0) return [];
  if (scale !== "full") return [[{ files }]];
  const crowd = files.filter((file) => !ALONE.includes(file) && file !== SIMULATION);
  const alone = files.filter((file) => ALONE.includes(file)).map((file) => [{ files: [file] }]);
  const simulated = files.includes(SIMULATION) ? [simulationParts()] : [];
  return [...(crowd.length > 0 ? [[{ files: crowd }]] : []), ...simulated, ...alone];
}

function simulationParts(): readonly Part[] {
  const { seeds, processes } = SIMULATED;
  const share = seeds / processes;
  return Array.from({ length: processes }, (_, at) => ({
    files: [SIMULATION],
    env: { SIM_FIRST: String(at * share + 1), SIM_COUNT: String(share) },
  }));
}

async function runFiles(
  { files, env: more }: Part,
  report: string,
  env: NodeJS.ProcessEnv,
): Promise<readonly TestResult[]> {
  const reporters = [
    "--reporter=json",
    `--outputFile.json=${report}`,
    "--reporter=./proof/progress-reporter.ts",
  ];
  const titles = files.some(isOfDoor) ? [] : ["-t", CODE];
  const args = ["node_modules/vitest/vitest.mjs", "run", ...files, ...titles, ...reporters];
  const { code, signal } = await run(process.execPath, args, {
    cwd: ROOT,
    env: { ...env, ...more },
    stdio: "inherit",
  });
  if (!existsSync(report)) throw new Error(`the tests wrote no report (${code ?? signal})`);
  return (JSON.parse(readFileSync(report, "utf8")) as Report).testResults.flatMap(resultsOf);
}

function filesWithCodes(): readonly string[] {
  const all = globSync(["tests/**/*.test.ts", "src/**/*.test.ts", "console/**/*.test.ts"], {
    cwd: ROOT,
  });
  const code = new RegExp(CODE);
  const named = all.filter((file) => code.test(readFileSync(path.join(ROOT, file), "utf8")));
  return named.filter((file) => !isOfDoor(file)).sort();
}

function filesOfDoors(): readonly string[] {
  return globSync(
    DOORS.map((folder) => `${folder}**/*.test.ts`),
    { cwd: ROOT },
  ).sort();
}

function isOfDoor(file: string): boolean {
  return DOORS.some((folder) => file.startsWith(folder));
}

function resultsOf(file: Report["testResults"][number]): readonly TestResult[] {
  const name = path.relative(ROOT, file.name);
  const results = file.assertionResults.map(
    ({ fullName, status, failureMessages = [] }): TestResult => ({
      file: name,
      name: fullName,
      outcome: status === "passed" || status === "failed" ? status : "skipped",
      isOfDoor: isOfDoor(name),
      why: failureMessages.join("\n").slice(0, 600),
    }),
  );
  // A file that could not be loaded fails without a failed test; it must not look like success.
  if (file.status !== "failed" || results.some(({ outcome }) => outcome === "failed"))
    return results;
  const why = file.message.slice(0, 600);
  return [...results, { file: name, name, outcome: "failed", isOfDoor: isOfDoor(name), why }];
}

function linesOf(file: string): readonly Recorded[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Recorded);
}
