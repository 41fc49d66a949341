import path from "node:path";
import { systemTimers, type Timers } from "../../util/timers.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { directoryFor } from "../working-directory.ts";
import {
  type CommandFiles,
  commandFiles,
  describeFiles,
  nameIn,
  versionOf,
} from "./command-files.ts";
import { findPlace, type PlaceContext, withFolder } from "./file-place.ts";
import { jsonInput } from "./json-input.ts";
import { answerOrRefuse, errorCodeOf, Refusal } from "./refusal.ts";
import { type ProcessEnd, runProcess } from "./run-process.ts";

export interface ShellOptions {
  /** Where commands run when the call's context has no working directory. */
  readonly directory?: string;
  /** Run as `shell -c command`. /bin/sh when left out: the gate's parser reads commands as that shell does. */
  readonly shell?: string;
  /** Names of variables that commands inherit; everything else, secrets above all, stays here. */
  readonly inheritEnvironment?: readonly string[];
  /** Variables set for every command. */
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

/** Runs one command line in a fixed shell. Nothing can be taken back, so its undo record is a guide for a person. */
export function shellRun(options: ShellOptions = {}): Tool {
  const { maxTimeoutMs = LONGEST_TIMEOUT_MS, timers = systemTimers } = options;
  return defineTool({
    name: "shell.run",
    description:
      "Runs a command in a shell and gives its exit code and output. It gets no input and few environment variables. Processes it leaves in the background are ended with it, though one that detaches on purpose can survive. It cannot be undone: prefer the files tools for changing files.",
    input: jsonInput<ShellInput>(
      {
        command: { type: "string", minLength: 1, maxLength: 32_768 },
        timeoutMs: {
          type: "integer",
          minimum: 1,
          maximum: maxTimeoutMs,
          description: `Time after which it is ended; ${Math.min(DEFAULT_TIMEOUT_MS, maxTimeoutMs)} when left out.`,
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
    // An approval holds for the scripts as the reviewer read them, not for whatever stands in them when it is given.
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
          throw new Refusal("unusable", "The command holds a null character. Leave it out.");
        }
        call.signal.throwIfAborted();
        const directory = await findFolder(call, options);
        // Held open, so that it is the judged folder and not a link put in its place that the command starts in.
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
            throw new Refusal("unusable", `The command could not be started (${code}).`);
          }),
        );
        const undo = {
          irreversible: true as const,
          description: "a shell command was run",
          manualGuide: `Look at what this command did in ${directory} and take it back by hand: ${command}`,
        };
        return { text: textOf(end, timeoutMs), data: end, isError: end.exitCode !== 0, undo };
      }),
  });
}

/** The folder that the gate judged, with its links resolved. Throws a Refusal. */
async function findFolder(call: PlaceContext, { directory = "" }: ShellOptions): Promise<string> {
  const from = directoryFor(call, directory);
  if (path.isAbsolute(from)) return findPlace(from, call, {});
  throw new Refusal("unusable", "No working directory is set for commands. Tell the operator.");
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
  return { ...Object.fromEntries(inherited), ...environment };
}

function textOf(end: ProcessEnd, timeoutMs: number): string {
  const { exitCode, endedBy, signalName, stdout, stderr, droppedBytes } = end;
  const how =
    endedBy === "timeout"
      ? `It was ended after ${timeoutMs} ms; what it had done by then stays done.`
      : endedBy === "abort"
        ? "It was ended because the call was cancelled; what it had done by then stays done."
        : exitCode === null
          ? `It was ended by ${signalName}.`
          : `Exit code ${exitCode}.`;
  const dropped = droppedBytes > 0 ? `\n(${droppedBytes} more bytes of output were dropped)` : "";
  const part = (name: string, text: string) => (text === "" ? "" : `\n${name}:\n${text}`);
  return `${how}${part("stdout", stdout)}${part("stderr", stderr)}${dropped}`;
}
