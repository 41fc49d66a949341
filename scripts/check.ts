// Everything that can be said about the code without running it: `npm run check`, or some of the steps
// by name, `npm run check -- lint types`. All steps run, so that one look shows all that is wrong.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { run } from "./process.mjs";

interface Step {
  readonly name: string;
  /** A program of node_modules, or one on PATH. */
  readonly run: string;
  readonly args: readonly string[];
  /** A step whose result this one works on. */
  readonly needs?: string;
}

const root = path.dirname(import.meta.dirname);
const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-check-"));
const { name, version } = (await import("../package.json", { with: { type: "json" } })).default;
const packed = path.join(scratch, `${name}-${version}.tgz`);

const steps: readonly Step[] = [
  {
    name: "lint",
    run: "@biomejs/biome/bin/biome",
    args: ["check", "--error-on-warnings", "--max-diagnostics=none"],
  },
  { name: "types", run: "typescript/bin/tsc", args: ["--noEmit"] },
  { name: "console", run: "typescript/bin/tsc", args: ["--noEmit", "-p", "console"] },
  { name: "unused", run: "knip/bin/knip.js", args: ["--no-progress"] },
  {
    name: "dead",
    run: "knip/bin/knip.js",
    args: ["--no-progress", "--production", "--include", "files,exports,types"],
  },
  { name: "build", run: "../scripts/build.ts", args: [] },
  { name: "pack", run: "npm", args: ["pack", "--pack-destination", scratch], needs: "build" },
  { name: "publint", run: "publint/src/cli.js", args: [packed, "--strict"], needs: "pack" },
  {
    name: "attw",
    run: "@arethetypeswrong/cli/dist/index.js",
    args: [packed, "--profile", "esm-only", "--format", "ascii"],
    needs: "pack",
  },
];

async function main(only: readonly string[]): Promise<number> {
  const names = steps.map((step) => step.name);
  const unknown = only.filter((wanted) => !names.includes(wanted));
  if (unknown.length > 0) {
    console.error(`no such step: ${unknown.join(", ")}; the steps are: ${names.join(", ")}`);
    return 1;
  }
  const failed: string[] = [];
  const started = performance.now();
  for (const step of chosen(only)) {
    const stepStarted = performance.now();
    const { ok, output } = await runStep(step);
    console.log(`${step.name.padEnd(8)} ${seconds(stepStarted)}  ${ok ? "ok" : "FAILED"}`);
    if (ok) continue;
    console.log(failed.length === 0 ? output : shortened(output, step.name));
    failed.push(step.name);
  }
  const verdict = failed.length === 0 ? "all steps passed" : `failed: ${failed.join(", ")}`;
  console.log(`\n${"check".padEnd(8)} ${seconds(started)}  ${verdict}`);
  return failed.length === 0 ? 0 : 1;
}

/** The named steps with the ones they need before them, or all. */
function chosen(only: readonly string[]): readonly Step[] {
  if (only.length === 0) return steps;
  const names = new Set(only);
  for (const step of steps.toReversed()) {
    if (names.has(step.name) && step.needs !== undefined) names.add(step.needs);
  }
  return steps.filter((step) => names.has(step.name));
}

async function runStep({ run: program, args }: Step): Promise<{ ok: boolean; output: string }> {
  const { code, output } = program.includes("/")
    ? await run(process.execPath, [path.join("node_modules", program), ...args], { cwd: root })
    : await run(program, args, { cwd: root, shell: process.platform === "win32" });
  return { ok: code === 0, output };
}

/** The first failure is shown whole, since later ones often follow from it; of those the beginning. */
function shortened(output: string, step: string): string {
  const lines = output.trimEnd().split("\n");
  const rest = lines.length - 20;
  if (rest <= 5) return output;
  return [...lines.slice(0, 20), `… ${rest} more lines: npm run check -- ${step}`].join("\n");
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`.padStart(7);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
