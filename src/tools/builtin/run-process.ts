import { type ChildProcess, spawn } from "node:child_process";
import { systemRandom } from "../../util/random.ts";
import type { Timers } from "../../util/timers.ts";
import { endMarked, MARK } from "./end-processes.ts";
import { outputBuffer } from "./output-buffer.ts";

export interface ProcessOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Of each of the two outputs; what comes beyond is counted and dropped. */
  readonly maxOutputBytes: number;
  /** Between asking the processes to end and ending them. */
  readonly graceMs: number;
  readonly signal: AbortSignal;
  readonly timers: Timers;
}

export interface ProcessEnd {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly endedBy: "itself" | "timeout" | "abort";
  readonly signalName: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly droppedBytes: number;
}

/** How long output may still come after everything was ended. */
const DRAIN_MS = 1_000;

/**
 * Runs a program in a process group of its own and ends what it started when it ends: the group, and on Linux also what left
 * the group, known by a mark in its environment. A process that erased its environment and left the group is not found, but
 * it does not hold up the answer. Rejects only when the program could not be started.
 */
export async function runProcess(options: ProcessOptions): Promise<ProcessEnd> {
  const { file, args, directory, environment, maxOutputBytes, signal, timers } = options;
  const mark = Buffer.from(systemRandom.bytes(16)).toString("hex");
  const child = spawn(file, args, {
    cwd: directory,
    env: { ...environment, [MARK]: mark },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    windowsHide: true,
  });
  const stdout = outputBuffer(child.stdout, maxOutputBytes);
  const stderr = outputBuffer(child.stderr, maxOutputBytes);
  let endedBy: ProcessEnd["endedBy"] = "itself";
  let cancelKill = () => {};
  let cancelDrain = () => {};
  let swept: Promise<void> = Promise.resolve();
  function stop(why: "timeout" | "abort"): void {
    if (endedBy !== "itself" || child.exitCode !== null) return;
    endedBy = why;
    killGroup(child, "SIGTERM");
    cancelKill = timers.after(options.graceMs, () => killGroup(child, "SIGKILL"));
  }
  const abort = () => stop("abort");
  const cancelTimeout = timers.after(options.timeoutMs, () => stop("timeout"));
  signal.addEventListener("abort", abort, { once: true });

  return new Promise<ProcessEnd>((resolve, reject) => {
    child.once("error", reject);
    // What is left holds the pipes open, and "close" would wait for it.
    child.once("exit", () => {
      killGroup(child, "SIGKILL");
      swept = endMarked(mark).finally(() => {
        cancelDrain = timers.after(DRAIN_MS, () => {
          child.stdout.destroy();
          child.stderr.destroy();
        });
      });
    });
    child.once("close", (exitCode, signalName) => {
      const droppedBytes = stdout.dropped() + stderr.dropped();
      const texts = { stdout: stdout.text(), stderr: stderr.text() };
      const end = { exitCode, endedBy, signalName, ...texts, droppedBytes };
      swept.then(() => resolve(end), reject);
    });
    if (signal.aborted) abort();
  }).finally(() => {
    cancelTimeout();
    cancelKill();
    cancelDrain();
    signal.removeEventListener("abort", abort);
  });
}

function killGroup({ pid }: ChildProcess, name: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // Nobody is left in the group.
  }
}
