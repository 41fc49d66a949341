import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import type { Place } from "../support/stores.ts";
import type { WorkerLine, WorkerMode } from "./worker-child.ts";

const CHILD = path.join(import.meta.dirname, "worker-child.ts");

export interface WorkerProcess {
  readonly name: string;
  readonly process: ChildProcess;
  /** What it said on its standard output so far. */
  readonly said: Record<string, unknown>[];
  /** Its exit code, undefined when it was killed. */
  readonly ended: Promise<number | undefined>;
  /** What it asked and was answered, also after its death. */
  lines(): readonly WorkerLine[];
  isAlive(): boolean;
  /** It has asked for something. */
  isAtWork(): boolean;
  /** Tells it to come to an end. */
  finish(): void;
}

export function startWorker(
  mode: WorkerMode,
  { place, name, folder, leaseMs }: { place: Place; name: string; folder: string; leaseMs: number },
): WorkerProcess {
  const file = path.join(folder, `${name}.jsonl`);
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const args = [CHILD, mode, JSON.stringify(place), name, file, String(leaseMs)];
  const child = spawn(process.execPath, [...flags, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const said: Record<string, unknown>[] = [];
  let rest = "";
  child.stdout?.on("data", (chunk) => {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    said.push(...lines.map((line) => JSON.parse(line)));
  });
  // The line to a process that was killed is cut; that is what the test is about.
  child.stdin?.on("error", () => {});
  const ended = new Promise<number | undefined>((resolve) => {
    child.on("close", (code) => resolve(code ?? undefined));
  });
  return {
    name,
    process: child,
    said,
    ended,
    lines() {
      const whole = existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
      return whole.map((line) => JSON.parse(line));
    },
    isAtWork: () => existsSync(file) && statSync(file).size > 0,
    isAlive: () => child.exitCode === null && child.signalCode === null,
    finish: () => void child.stdin?.end(),
  };
}
