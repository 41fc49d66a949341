// `npm run proof`: the promise, tested by what can fail. `--full` at the scale of the goals, `--tests a,b` or `--bugs a,b`
// only some of it (such a run is void by itself), `--out folder` where the report goes. `--list` writes docs/proof/planted.md.

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { startPostgres } from "../tests/support/postgres-server.ts";
import { rowsOf } from "./codes.ts";
import { GOALS } from "./goal-list.ts";
import { judge } from "./goals.ts";
import { BUGS } from "./planted/bugs.ts";
import { type Tried, tryBugs } from "./planted/try-bugs.ts";
import { pageOf, plantedPage, type Report, verdictOf } from "./report.ts";
import { runTests } from "./run-tests.ts";

const ROOT = path.resolve(import.meta.dirname, "..");
const { version } = (await import("../package.json", { with: { type: "json" } })).default;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      full: { type: "boolean", default: false },
      tests: { type: "string", default: "" },
      bugs: { type: "string", default: "" },
      list: { type: "boolean", default: false },
      out: { type: "string", default: path.join(ROOT, "proof/results") },
    },
  });
  if (values.list) {
    writeFileSync(path.join(ROOT, "docs/proof/planted.md"), plantedPage(BUGS));
    return 0;
  }
  const scale = values.full ? "full" : "proof";
  const started = performance.now();
  const server = await startPostgres({ durable: false });
  try {
    const { tests, records } = await runTests(scale, server.url, parts(values.tests));
    const wanted = parts(values.bugs);
    const bugs = BUGS.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
    console.error(`\n${bugs.length} planted bugs`);
    const planted = await tryBugs(bugs, server.url, tellTried);
    const failed = tests.filter(({ outcome }) => outcome === "failed");
    const found = {
      failed,
      skipped: tests.filter(({ outcome, isOfDoor }) => outcome === "skipped" && isOfDoor),
      goals: GOALS.map((goal) => judge(goal, records, scale)),
      corpus: rowsOf("R", 30, tests),
      planted,
    };
    const report: Report = {
      version,
      commit: commit(),
      at: new Date().toISOString(),
      scale,
      machine: {
        cores: availableParallelism(),
        node: process.versions.node,
        load: loadavg()[0] ?? 0,
      },
      seconds: Math.round((performance.now() - started) / 1_000),
      verdict: verdictOf(found),
      tests: {
        passed: tests.filter(({ outcome }) => outcome === "passed").length,
        failed: failed.length,
        skipped: tests.filter(({ outcome }) => outcome === "skipped").length,
      },
      ...found,
      threats: rowsOf("T", 42, tests),
      invariants: rowsOf("I", 30, tests),
      records,
    };
    return write(report, values.out);
  } finally {
    await server.stop();
  }
}

function parts(list: string): readonly string[] {
  return list.split(",").filter(Boolean);
}

function tellTried({ name, outcome, by, why, ms }: Tried): void {
  const seconds = `${(ms / 1_000).toFixed(1)} s`.padStart(7);
  console.error(`${seconds}  ${outcome.padEnd(11)}  ${name}${by === "" ? "" : `: ${by}`}`);
  if (outcome !== "caught" && why !== "") console.error(`           ${why.split("\n")[0]}`);
}

function write(report: Report, out: string): number {
  mkdirSync(out, { recursive: true });
  const [json, page] = [path.join(out, "report.json"), path.join(out, "report.md")];
  // It is published: where this checkout is concerns nobody.
  const bare = (text: string) => text.replaceAll(`file://${ROOT}/`, "").replaceAll(`${ROOT}/`, "");
  const told = bare(pageOf(report));
  writeFileSync(json, bare(`${JSON.stringify(report, undefined, 2)}\n`));
  writeFileSync(page, told);
  console.log(`\n${told}`);
  console.log(
    `${report.verdict}; the report is in ${path.relative(ROOT, page)} and report.json beside it`,
  );
  return report.verdict === "holds" ? 0 : 1;
}

/** A package without its repository has none. */
function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], {
      cwd: ROOT,
      encoding: "utf8",
    }).trim();
  } catch {
    return "unknown";
  }
}

process.exitCode = await main();
