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
  /** `not planted`: the test never loaded the place, so nothing was shown; `no test`: none has such a title. */
  readonly outcome: "caught" | "missed" | "not planted" | "no test";
  /** The first test that went red. */
  readonly by: string;
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
const PATIENCE_MS = 300_000;
const VOID = /\bvoid: /;

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

async function tryBug({ name, what, caughtBy }: Bug, database: string): Promise<Tried> {
  const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-planted-"));
  const [report, marks] = [path.join(scratch, "report.json"), path.join(scratch, "marks")];
  const started = performance.now();
  try {
    const { PROOF_FILE, ...env } = process.env;
    await run(
      process.execPath,
      [
        ...["node_modules/vitest/vitest.mjs", "run", caughtBy.file, "--maxWorkers=1"],
        ...["--reporter=json", `--outputFile=${report}`, "--bail=1", "--testTimeout=10000"],
        ...(caughtBy.title === "" ? [] : ["-t", caughtBy.title]),
      ],
      {
        cwd: ROOT,
        timeout: PATIENCE_MS,
        env: {
          ...env,
          PLANTED: name,
          PLANTED_FILE: marks,
          SCALE: caughtBy.scale ?? "test",
          DATABASE_URL: database,
          NODE_OPTIONS: `--import=${HOOK} --conditions=sallyport-source --disable-warning=ExperimentalWarning`,
        },
      },
    );
    const ran = testsOf(report).filter(({ status }) => status === "passed" || status === "failed");
    // That too little happened is no sign of having noticed anything.
    const isVoid = (messages: readonly string[] = []) => messages.every((one) => VOID.test(one));
    const noticed = ({ status, failureMessages }: (typeof ran)[number]) =>
      status === "failed" && !isVoid(failureMessages);
    const by = ran.find(noticed)?.fullName ?? "";
    return { name, what, outcome: outcomeOf(), by, ms: Math.round(performance.now() - started) };

    function outcomeOf(): Tried["outcome"] {
      if (!existsSync(marks)) return "not planted";
      if (ran.length === 0) return "no test";
      return by === "" ? "missed" : "caught";
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** A file that cannot be loaded has no tests: a bug that only breaks the program does not count as noticed. */
function testsOf(file: string): Report["testResults"][number]["assertionResults"] {
  if (!existsSync(file)) return [];
  const { testResults } = JSON.parse(readFileSync(file, "utf8")) as Report;
  return testResults.flatMap(({ assertionResults }) => assertionResults);
}
