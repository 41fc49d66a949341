import { type ChildProcess, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import type { Readable } from "node:stream";
import { errorCodeOf } from "../../util/error-text.ts";
import { systemRandom } from "../../util/random.ts";
import { systemTimers, type Timers } from "../../util/timers.ts";
import { isUtf8Locale } from "../../util/utf8-locale.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { directoryFor } from "../tool-call.ts";
import {
  type CommandFiles,
  commandFiles,
  describeFiles,
  nameIn,
  versionOf,
} from "./command-files.ts";
import {
  answerOrRefuse,
  findPlace,
  jsonInput,
  type PlaceContext,
  ToolRefusal,
  withFolder,
} from "./file-place.ts";

interface ShellOptions {
  /** The folder of commands when the call's context has no working directory. */
  readonly directory?: string;
  /** Run as `shell -c command`. Default /bin/sh: the gate's parser follows its syntax. */
  readonly shell?: string;
  /** Names of variables that commands inherit; no others are passed on, above all no secrets. */
  readonly inheritEnvironment?: readonly string[];
  /**
   * Variables set for every command. A locale that is not UTF-8 is left out, inherited or not: commands are UTF-8, and a
   * shell that reads them as something else finds other words in them than the gate did.
   */
  readonly environment?: Readonly<Record<string, string>>;
  readonly maxTimeoutMs?: number;
  readonly maxOutputBytes?: number;
  readonly timers?: Timers;
}

interface ShellInput {
  readonly command: string;
  readonly timeoutMs?: number;
}

const INHERITED: readonly string[] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER"];
const DEFAULT_TIMEOUT_MS = 120_000;
const LONGEST_TIMEOUT_MS = 600_000;
const DEFAULT_OUTPUT_BYTES = 256 * 1024;
const GRACE_MS = 2_000;

/** Runs one command line in a fixed shell. It cannot be undone, so its undo record is a guide for a person. */
export function shellRun(options: ShellOptions = {}): Tool {
  const { maxTimeoutMs = LONGEST_TIMEOUT_MS, timers = systemTimers } = options;
  return defineTool({
    name: "shell.run",
    description:
      "Runs a command in a shell and returns its exit code and output. It gets no input and few environment variables. Background processes are ended with it, but one that detaches deliberately can survive. It cannot be undone: prefer the files tools for changing files.",
    input: jsonInput<ShellInput>(
      {
        command: { type: "string", minLength: 1, maxLength: 32_768 },
        timeoutMs: {
          type: "integer",
          minimum: 1,
          maximum: maxTimeoutMs,
          description: `Time limit in milliseconds; default ${Math.min(DEFAULT_TIMEOUT_MS, maxTimeoutMs)}.`,
        },
      },
      ["command"],
    ),
    safety: { effect: "external", reversible: false, undoMethod: "manual", affects: ["process"] },
    permissionClass: "bash",
    auditOperation: "execute",
    searchHint: "bash terminal command script",
    resources: ({ input: { command }, workingDirectory }) => {
      const { directory = "" } = options;
      const isOwn = workingDirectory === "" && directory !== "";
      return [{ kind: "command", command, ...(isOwn ? { directory } : {}) }];
    },
    idempotency: "none",
    // An approval covers the scripts as the reviewer saw them, not later versions.
    stateVersion: async (call) => versionOf(await filesOf(call, options)),
    dryRun: async (call) => {
      const named = await filesOf(call, options);
      const names = named.files.map(
        ({ place, version, isHashed }) =>
          `${nameIn(named.folder, place)}${isHashed ? ` ${version.slice(0, 12)}` : ""}`,
      );
      const files = names.length === 0 ? "" : `, with ${names.slice(0, 5).join(", ")}`;
      const more = names.length > 5 ? ` and ${names.length - 5} more files` : "";
      return {
        summary: `would run a command in ${named.folder}${files}${more}; what it does cannot be tried`,
        preview: describeFiles(named),
        impact: { files: names.length },
      };
    },
    execute: (call) =>
      answerOrRefuse<ProcessEnd>(async () => {
        const { command, timeoutMs = Math.min(DEFAULT_TIMEOUT_MS, maxTimeoutMs) } = call.input;
        if (command.includes("\0")) {
          throw new ToolRefusal("unusable", "The command holds a null character. Leave it out.");
        }
        call.signal.throwIfAborted();
        const directory = await findFolder(call, options);
        // Held open, so that the command starts in the judged folder and not behind a link put in its place.
        const end = await withFolder(directory, (base) =>
          runProcess({
            file: options.shell ?? "/bin/sh",
            args: ["-c", command],
            directory: base,
            environment: environmentOf(options),
            timeoutMs,
            maxOutputBytes: options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES,
            graceMs: GRACE_MS,
            signal: call.signal,
            timers,
          }).catch((error) => {
            const code = errorCodeOf(error);
            throw new ToolRefusal("unusable", `The command could not be started (${code}).`);
          }),
        );
        const undo = {
          irreversible: true as const,
          description: "a shell command was run",
          manualGuide: `Look at what this command did in ${directory} and undo it manually: ${command}`,
        };
        return { text: textOf(end, timeoutMs), data: end, isError: end.exitCode !== 0, undo };
      }),
  });
}

/** The folder that the gate judged, with links resolved. Throws a ToolRefusal. */
async function findFolder(call: PlaceContext, { directory = "" }: ShellOptions): Promise<string> {
  const from = directoryFor(call, directory);
  if (path.isAbsolute(from)) return findPlace(from, call, {});
  throw new ToolRefusal("unusable", "No working directory is set for commands. Tell the operator.");
}

async function filesOf(
  call: PlaceContext & { readonly input: ShellInput },
  options: ShellOptions,
): Promise<CommandFiles> {
  const folder = await findFolder(call, options);
  return commandFiles(call.input.command, folder, environmentOf(options)["PATH"] ?? "");
}

function environmentOf({
  inheritEnvironment = INHERITED,
  environment = {},
}: ShellOptions): Readonly<Record<string, string>> {
  const inherited = inheritEnvironment.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const all = [...inherited, ...Object.entries(environment)];
  return Object.fromEntries(all.filter(([name, value]) => !isForeignLocale(name, value)));
}

function isForeignLocale(name: string, value: string): boolean {
  return /^(LANG|LC_\w+)$/.test(name) && !isUtf8Locale(value);
}

function textOf(end: ProcessEnd, timeoutMs: number): string {
  const { exitCode, endedBy, signalName, stdout, stderr, droppedBytes } = end;
  const how =
    endedBy === "timeout"
      ? `It was ended after ${timeoutMs} ms; effects up to then remain.`
      : endedBy === "abort"
        ? "It was ended because the call was cancelled; effects up to then remain."
        : exitCode === null
          ? `It was ended by ${signalName}.`
          : `Exit code ${exitCode}.`;
  const dropped = droppedBytes > 0 ? `\n(${droppedBytes} more bytes of output were dropped)` : "";
  const part = (name: string, text: string) => (text === "" ? "" : `\n${name}:\n${text}`);
  return `${how}${part("stdout", stdout)}${part("stderr", stderr)}${dropped}`;
}

interface ProcessOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** For each of the two outputs; further bytes are counted and dropped. */
  readonly maxOutputBytes: number;
  /** The time between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  readonly signal: AbortSignal;
  readonly timers: Timers;
}

interface ProcessEnd {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly endedBy: "itself" | "timeout" | "abort";
  readonly signalName: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly droppedBytes: number;
}

/** How long output may still arrive after all processes have ended. */
const DRAIN_MS = 1_000;

/**
 * Runs a program in its own process group and ends all its descendants when it ends: the group, and on Linux also
 * processes that left the group, found by a marker in their environment. A process that cleared its environment and
 * left the group is not found, but does not delay the answer. Rejects only when the program could not be started.
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
    // Remaining processes hold the pipes open, and "close" would wait for them.
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
    // The group is empty.
  }
}

/** The marker variable in the environment of all processes of one command. */
const MARK = "SALLYPORT_COMMAND";

/** The limit of rounds, for a program that starts processes as fast as they are ended. */
const MOST_ROUNDS = 200;

/**
 * Ends every process with the marker, including those that left the command's process group. Processes inherit their
 * environment, and Linux exposes the initial one. It repeats until a round finds none, because a process can start
 * another one before it ends. Other systems have no such view, and a process started with a fresh environment (`env
 * -i`) is not found.
 */
async function endMarked(mark: string): Promise<void> {
  if (process.platform !== "linux") return;
  const wanted = Buffer.from(`${MARK}=${mark}\0`);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const found = await markedProcesses(wanted);
    if (found.length === 0) return;
    // Stop all of them first, so that none starts another while the others are ended.
    for (const pid of found) signal(pid, "SIGSTOP");
    for (const pid of found) signal(pid, "SIGKILL");
  }
}

async function markedProcesses(wanted: Buffer): Promise<readonly number[]> {
  const names = await readdir("/proc").catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
      // It has ended, or belongs to another user: in both cases not part of this command.
      const environment = await readFile(`/proc/${name}/environ`).catch(() => undefined);
      return environment?.includes(wanted) === true ? [Number(name)] : [];
    }),
  );
  return found.flat();
}

function signal(pid: number, name: "SIGSTOP" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has already ended.
  }
}

interface OutputBuffer {
  text(): string;
  /** The number of bytes beyond the limit. */
  dropped(): number;
}

/** Keeps the first `maxBytes` of a stream and drains the rest, so that output never blocks the program. */
function outputBuffer(stream: Readable, maxBytes: number): OutputBuffer {
  const chunks: Buffer[] = [];
  let kept = 0;
  let total = 0;
  stream.on("data", (chunk: Buffer) => {
    total += chunk.byteLength;
    const part = chunk.subarray(0, maxBytes - kept);
    if (part.byteLength > 0) chunks.push(part);
    kept += part.byteLength;
  });
  stream.on("error", () => {}); // The process' end tells what matters.
  return {
    text: () => Buffer.concat(chunks).toString("utf8"),
    dropped: () => total - kept,
  };
}
