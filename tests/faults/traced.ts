import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Line } from "./lifecycle.ts";
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

export interface Traced {
  /** What strace is to trace and to break. */
  readonly strace: readonly string[];
  readonly folder: string;
  readonly file: string;
  /** The story's name: its things carry it in the ledger. */
  readonly name: string;
  readonly thread?: "always" | "never";
  /** Ends itself with SIGKILL as soon as it was refused something. */
  readonly dies?: boolean;
}

/** Runs one lifecycle under strace; only calls on the store's files are traced and counted. */
export async function live(traced: Traced, productionPort: number): Promise<Lived> {
  const { strace, folder, file, name, thread = "never", dies = false } = traced;
  const child = path.join(import.meta.dirname, "lifecycle-child.ts");
  const log = path.join(folder, "strace.log");
  const running = spawn(
    "strace",
    [
      ...["-f", "-o", log, ...strace, process.execPath, ...NODE, child],
      ...[file, String(productionPort), name, thread, dies ? "die" : "live"],
    ],
    {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NODE_COMPILE_CACHE: path.join(path.dirname(folder), "compile-cache") },
    },
  );
  let [out, errors] = ["", ""];
  running.stdout.on("data", (chunk) => (out += chunk));
  running.stderr.on("data", (chunk) => (errors += chunk));
  const [code, signal] = await once(running, "close");
  const lines = out
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
  const killed = signal === "SIGKILL" || code === 137;
  return { lines, killed, errors, log: readFileSync(log, "utf8") };
}
