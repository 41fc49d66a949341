import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Line } from "./lifecycle-child.ts";
import type { Wanted } from "./production/parts.ts";
import { NODE } from "./production/start-production.ts";

/** Why nothing can be traced here; empty when it can. */
export const NO_STRACE = (() => {
  const tried = spawnSync("strace", ["-f", "-e", "trace=none", "true"], { encoding: "utf8" });
  if (tried.error !== undefined) return `there is no strace: ${tried.error.message}`;
  return tried.status === 0 ? "" : `strace is not permitted: ${tried.stderr.trim()}`;
})();

if (NO_STRACE !== "") console.log(NO_STRACE);

export interface Lived {
  readonly lines: readonly Line[];
  readonly killed: boolean;
  readonly errors: string;
  readonly log: string;
}

/** Runs one lifecycle under strace, with what it is to trace and to break. */
export async function live(
  how: { readonly strace: readonly string[]; readonly folder: string; readonly file: string },
  productionPort: number,
  wanted: readonly Wanted[],
): Promise<Lived> {
  const child = path.join(import.meta.dirname, "lifecycle-child.ts");
  const log = path.join(how.folder, "strace.log");
  const args = ["-f", "-o", log, ...how.strace, process.execPath, ...NODE, child];
  const traced = spawn(
    "strace",
    [...args, how.file, String(productionPort), JSON.stringify(wanted)],
    {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: path.join(path.dirname(how.folder), "compile-cache"),
      },
    },
  );
  let [out, errors] = ["", ""];
  traced.stdout.on("data", (chunk) => (out += chunk));
  traced.stderr.on("data", (chunk) => (errors += chunk));
  const [code, signal] = await once(traced, "close");
  const lines = out
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
  const killed = signal === "SIGKILL" || code === 137;
  return { lines, killed, errors, log: readFileSync(log, "utf8") };
}
