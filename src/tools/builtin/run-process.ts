import { type ChildProcess, spawn } from "node:child_process";
import type { Timers } from "../../util/timers.ts";
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

/**
 * Runs a program in a process group of its own. Whatever happens, nothing of the group is left when this answers: also
 * what the program put into the background ends with it. Rejects only when the program could not be started.
 */
export async function runProcess(options: ProcessOptions): Promise<ProcessEnd> {
  const { file, args, directory, environment, maxOutputBytes, signal, timers } = options;
  const child = spawn(file, args, {
    cwd: directory,
    env: environment,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    windowsHide: true,
  });
  const stdout = outputBuffer(child.stdout, maxOutputBytes);
  const stderr = outputBuffer(child.stderr, maxOutputBytes);
  let endedBy: ProcessEnd["endedBy"] = "itself";
  let cancelKill = () => {};
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
    // Who is still in the group holds the pipes open, and "close" would wait for it.
    child.once("exit", () => killGroup(child, "SIGKILL"));
    child.once("close", (exitCode, signalName) => {
      const droppedBytes = stdout.dropped() + stderr.dropped();
      const texts = { stdout: stdout.text(), stderr: stderr.text() };
      resolve({ exitCode, endedBy, signalName, ...texts, droppedBytes });
    });
    if (signal.aborted) abort();
  }).finally(() => {
    cancelTimeout();
    cancelKill();
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
