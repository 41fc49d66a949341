import { spawn } from "node:child_process";
import { once } from "node:events";
import { cutText, oneLine } from "../util/error-text.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import type { Capsule } from "./capsule.ts";
import { LONGEST_OUTPUT } from "./limits.ts";
import type { Worker } from "./worker.ts";

export interface ProcessWorkerOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string;
  /** All that it gets: nothing is inherited but PATH. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly graceMs?: number;
  readonly timers?: Timers;
}

/** What a child process reads from its standard input, as one line of JSON. */
export interface Handover {
  readonly capsule: Capsule;
  readonly token: string;
}

const GRACE_MS = 300;

/**
 * Works in a process of its own, which reaches the port over the store: it attaches with the token and reports by itself, or
 * writes its report to standard output. When the delegation is over it is asked to end, then ended, with all it has started.
 */
export function processWorker(options: ProcessWorkerOptions): Worker<unknown> {
  const { file, args, directory, environment = {}, graceMs = GRACE_MS } = options;
  const { timers = systemTimers } = options;
  return async ({ capsule, token, signal }) => {
    signal.throwIfAborted();
    const child = spawn(file, args, {
      cwd: directory,
      env: { PATH: process.env["PATH"] ?? "", ...environment },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    let cancelKill = () => {};
    function end(): void {
      killGroup(child.pid, "SIGTERM");
      cancelKill = timers.after(graceMs, () => killGroup(child.pid, "SIGKILL"));
    }
    signal.addEventListener("abort", end, { once: true });
    try {
      const handover: Handover = { capsule, token };
      // Who does not read what it was given ends with its own error, not with a broken pipe of ours.
      child.stdin.on("error", () => {});
      child.stdin.end(`${JSON.stringify(handover)}\n`);
      const closed = once(child, "close");
      // Who is left in the group would hold the pipes open.
      child.once("exit", () => killGroup(child.pid, "SIGKILL"));
      const [code, name] = (await closed) as [number | null, string | null];
      signal.throwIfAborted();
      if (code !== 0) {
        throw new Error(`The process ended with ${code ?? name}: ${oneLine(stderr())}`);
      }
      return stdout() === "" ? undefined : stdout();
    } finally {
      cancelKill();
      signal.removeEventListener("abort", end);
    }
  };
}

/** Everything up to the limit and a little more, so that what was too long is seen to be cut. */
function collect(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    if (text.length <= LONGEST_OUTPUT) text = cutText(text + chunk, LONGEST_OUTPUT + 1);
  });
  return () => text;
}

function killGroup(pid: number | undefined, name: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // Nobody is left in the group.
  }
}
