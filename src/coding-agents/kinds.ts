// Which tool of the gate a host's tool is, and which files it names: a table per host. What is not listed is `coding.other`,
// about which a person is asked.

import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import type { HostName } from "./hosts.ts";

export type CodingTool =
  | "coding.shell"
  | "coding.edit"
  | "coding.read"
  | "coding.fetch"
  | "coding.agent"
  | "coding.inner"
  | "coding.other";

interface Kind {
  readonly tool: CodingTool;
  /** Fields of the host's input that name its files, or the address. */
  readonly fields?: readonly string[];
  /** The field that holds a patch in the format of `apply_patch`. */
  readonly patch?: string;
}

const shell: Kind = { tool: "coding.shell", fields: ["command"] };
const edit = (...fields: readonly string[]): Kind => ({ tool: "coding.edit", fields });
const read = (...fields: readonly string[]): Kind => ({ tool: "coding.read", fields });
const fetches: Kind = { tool: "coding.fetch", fields: ["url"] };
const agent: Kind = { tool: "coding.agent" };
/** It changes only what the host itself shows: lists of things to do, modes, questions to the user. */
const inner: Kind = { tool: "coding.inner" };

// biome-ignore format: a table
const KINDS: Readonly<Record<HostName, Readonly<Record<string, Kind>>>> = {
  "claude-code": {
    Bash: shell,
    Edit: edit("file_path"), MultiEdit: edit("file_path"), Write: edit("file_path"), NotebookEdit: edit("notebook_path"),
    Read: read("file_path"), Glob: read("path"), Grep: read("path"), LS: read("path"),
    WebFetch: fetches,
    Agent: agent, Task: agent,
    TodoWrite: inner, TaskCreate: inner, TaskUpdate: inner, TaskList: inner, TaskGet: inner, TaskOutput: inner,
    BashOutput: inner, EnterPlanMode: inner, ExitPlanMode: inner, AskUserQuestion: inner, ToolSearch: inner,
  },
  codex: {
    Bash: shell,
    apply_patch: { tool: "coding.edit", patch: "command" },
    update_plan: inner,
  },
  gemini: {
    run_shell_command: shell,
    write_file: edit("file_path"), replace: edit("file_path"),
    read_file: read("file_path", "absolute_path"), list_directory: read("dir_path", "path"), glob: read("dir_path", "path"),
    search_file_content: read("dir_path", "path"), grep_search: read("dir_path", "path"),
    write_todos: inner, ask_user: inner, enter_plan_mode: inner, exit_plan_mode: inner,
  },
  opencode: {
    bash: shell,
    write: edit("filePath"), edit: edit("filePath"), patch: { tool: "coding.edit", patch: "patchText" },
    apply_patch: { tool: "coding.edit", patch: "patchText" },
    read: read("filePath"), list: read("path"), glob: read("path"), grep: read("path"),
    webfetch: fetches,
    task: agent,
    todowrite: inner, todoread: inner,
  },
};

const OTHER: Kind = { tool: "coding.other" };

export function hostKindOf(host: HostName, tool: string): Kind {
  const kinds = KINDS[host];
  return Object.hasOwn(kinds, tool) ? (kinds[tool] ?? OTHER) : OTHER;
}

/** The tool of the gate for this call. */
export function toolFor(host: HostName, tool: string, input: JsonObject): CodingTool {
  const { tool: found } = hostKindOf(host, tool);
  return found === "coding.shell" && patchIn(shellCommand(input)) !== undefined
    ? "coding.edit"
    : found;
}

export function shellCommand(input: JsonObject): string {
  const { command } = input;
  if (typeof command === "string") return command;
  // Codex may pass the words of the command.
  return Array.isArray(command) && command.every((word) => typeof word === "string")
    ? command.join(" ")
    : "";
}

/** Absolute paths of the files that a call names; relative ones start at its folder. */
export function filesOf(
  host: HostName,
  tool: string,
  input: JsonObject,
  cwd: string,
): readonly string[] {
  const { fields = [], patch, tool: kind } = hostKindOf(host, tool);
  const fromCommand = kind === "coding.shell" ? patchIn(shellCommand(input)) : undefined;
  if (patch !== undefined || fromCommand !== undefined) {
    return filesInPatch(fromCommand ?? patchText(input[patch ?? ""])).map((file) =>
      below(cwd, file),
    );
  }
  const named = fields.map((field) => input[field]).find((value) => typeof value === "string");
  if (typeof named === "string" && named !== "") return [below(cwd, named)];
  return kind === "coding.read" ? [cwd] : [];
}

function patchText(value: JsonValue | undefined): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.filter((one) => typeof one === "string").join("\n");
  return isJsonObject(value) ? JSON.stringify(value) : "";
}

/** Joined, not resolved: `link/..` must be resolved by the file system. */
function below(cwd: string, file: string): string {
  return file.startsWith("/") ? file : `${cwd}/${file}`;
}

/** A command that is nothing but a call of `apply_patch`, which Codex executes as a patch. */
export function patchIn(command: string): string | undefined {
  const found = /^\s*apply_patch\s*<<\s*(['"])(\w+)\1\n([\s\S]*?)\n\2\s*$/.exec(command);
  const body = found?.[3];
  return body?.startsWith("*** Begin Patch") === true ? body : undefined;
}

const PATCHED = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm;

export function filesInPatch(patch: string): readonly string[] {
  return [...new Set([...patch.matchAll(PATCHED)].map(([, file = ""]) => file.trim()))];
}
