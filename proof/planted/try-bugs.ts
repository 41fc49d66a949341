// Plants one bug after the other and runs the test that has to notice it.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { run } from "../../scripts/process.mjs";
import type { Bug } from "./bug.ts";

export interface Tried {
  readonly name: string;
  readonly what: string;
  /**
   * `not planted`: the test never loaded the place, so nothing was shown; `no test`: none has such a title; `timed out`: it
   * ran out of time, which a busy machine does as well.
   */
  readonly outcome: "caught" | "missed" | "not planted" | "no test" | "timed out";
  /** The first test that went red, and what it said. */
  readonly by: string;
  readonly why: string;
  readonly ms: number;
}

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

const ROOT = path.resolve(import.meta.dirname, "../..");
const HOOK = pathToFileURL(path.join(import.meta.dirname, "hook.ts")).href;
const AT_ONCE = 2;
/** A test by itself, and the whole of its process: the simulation goes through a thousand seeds. */
const TEST_MS = 120_000;
const PATIENCE_MS = { test: 300_000, proof: 1_500_000 };
const VOID = /\bvoid: /;
const TIMED_OUT = /\btimed out in \d+ ?ms/;
/** Colours, and what a page cannot show. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
const UNSHOWN = /\u001b\[[0-9;]*m|[\u0000-\u0009\u000b-\u001f]/g;
const MOST_SHOWN = 300;

/** `database`: a server for the tests that need one, so that each run need not start its own. */
export async function tryBugs(
  bugs: readonly Bug[],
  database: string,
  say: (tried: Tried) => void,
): Promise<readonly Tried[]> {
  const queue = bugs.entries();
  const all: Tried[] = [];
  const worker = async () => {
    for (const [at, bug] of queue) {
      const tried = await tryBug(bug, database);
      all[at] = tried;
      say(tried);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return all;
}

async function tryBug(bug: Bug, database: string): Promise<Tried> {
  const { name, what, caughtBy } = bug;
  const scale = caughtBy.scale ?? "test";
  const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-planted-"));
  const [report, marks] = [path.join(scratch, "report.json"), path.join(scratch, "marks")];
  const started = performance.now();
  try {
    const { PROOF_FILE, ...env } = process.env;
    const { signal } = await run(
      process.execPath,
      [
        ...["node_modules/vitest/vitest.mjs", "run", caughtBy.file, "--maxWorkers=1"],
        ...["--reporter=json", `--outputFile=${report}`, "--bail=1", `--testTimeout=${TEST_MS}`],
        ...(caughtBy.title === "" ? [] : ["-t", caughtBy.title]),
      ],
      {
        cwd: ROOT,
        timeout: PATIENCE_MS[scale],
        env: {
          ...env,
          PLANTED: name,
          PLANTED_FILE: marks,
          SCALE: scale,
          DATABASE_URL: database,
          NODE_OPTIONS: `--import=${HOOK} --conditions=sallyport-source --disable-warning=ExperimentalWarning`,
        },
      },
    );
    const told = outcomeOf(bug, testsOf(report), {
      isPlanted: existsSync(marks),
      isEnded: signal !== null,
    });
    return { name, what, ...told, ms: Math.round(performance.now() - started) };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** What a run with the bug says of it: only an assertion that failed has noticed anything. */
export function outcomeOf(
  { hangs }: Pick<Bug, "hangs">,
  tests: readonly TriedTest[],
  { isPlanted, isEnded }: { readonly isPlanted: boolean; readonly isEnded: boolean },
): Pick<Tried, "outcome" | "by" | "why"> {
  const nothing = { by: "", why: "" };
  if (!isPlanted) return { outcome: "not planted", ...nothing };
  const red = tests.filter(({ status }) => status === "failed").map(noticeOf);
  const [noticed] = red.filter(({ kind }) => kind === "noticed");
  if (noticed !== undefined) return { outcome: "caught", by: noticed.by, why: noticed.why };
  const late = red.find(({ kind }) => kind === "timed out");
  if (late !== undefined || isEnded) {
    const { by, why } = late ?? { by: "", why: "The whole run was ended." };
    return { outcome: hangs === true ? "caught" : "timed out", by, why };
  }
  const ran = tests.some(({ status }) => status === "passed" || status === "failed");
  return { outcome: ran ? "missed" : "no test", ...nothing, why: red[0]?.why ?? "" };
}

type TriedTest = Report["testResults"][number]["assertionResults"][number];

/** That too little happened is no sign of having noticed anything, and neither is that the time was over. */
function noticeOf({ fullName, failureMessages = [] }: TriedTest) {
  const told = failureMessages.map((message) => message.replace(UNSHOWN, ""));
  const real = told.filter((message) => !VOID.test(message) && !TIMED_OUT.test(message));
  const kind =
    real.length > 0 || told.length === 0
      ? ("noticed" as const)
      : told.some((message) => TIMED_OUT.test(message))
        ? ("timed out" as const)
        : ("void" as const);
  const why = (real[0] ?? told[0] ?? "").split(/\n\s+at /)[0]?.slice(0, MOST_SHOWN) ?? "";
  return { by: fullName, kind, why };
}

/** A file that cannot be loaded has no tests: a bug that only breaks the program does not count as noticed. */
function testsOf(file: string): readonly TriedTest[] {
  if (!existsSync(file)) return [];
  const { testResults } = JSON.parse(readFileSync(file, "utf8")) as Report;
  return testResults.flatMap(({ assertionResults }) => assertionResults);
}
