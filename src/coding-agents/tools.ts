// The tools of coding agents as tools of the gate. The host executes them, so each is external: judged by the rules, shown with
// a diff, permitted, reported. Files are kept before an edit, so that a rollback restores them byte for byte.

import { makeChange, previewChange, removeEmptyFolders } from "../tools/builtin/file-change.ts";
import { answerOrRefuse, expectState, jsonInput, readState } from "../tools/builtin/file-place.ts";
import { defineTool } from "../tools/define-tool.ts";
import type { DryRun, Presented, Resource, Tool } from "../tools/tool.ts";
import type { UndoRecipe } from "../tools/tool-call.ts";
import { oneLine } from "../util/error-text.ts";
import { isJsonObject, type JsonObject } from "../util/json.ts";
import { HOST_NAMES, type HostName } from "./hosts.ts";
import { type CodingTool, filesOf, hostKindOf, shellCommand, toolFor } from "./kinds.ts";
import { type KeptFile, type Snapshots, snapshotsIn } from "./snapshots.ts";

/** A call of a host, as the gate stores and shows it. `input` is what the host sent, and what it gets back if people edit it. */
interface HostCall {
  readonly host: HostName;
  readonly tool: string;
  readonly cwd: string;
  readonly input: JsonObject;
  /** The sub-agent of the host. */
  readonly agent?: string;
}

const hostCall = jsonInput<HostCall>(
  {
    host: { enum: [...HOST_NAMES], description: "The coding agent." },
    tool: { type: "string", maxLength: 200, description: "Its own name of the tool." },
    cwd: { type: "string", maxLength: 4096, description: "Its working folder." },
    input: { type: "object", description: "The tool's own input." },
    agent: { type: "string", maxLength: 200, description: "Its sub-agent." },
  },
  ["host", "tool", "cwd", "input"],
);

type Asked = { readonly input: HostCall };

/** All of them. `folder` is where files are kept between an edit and its report. */
export function codingTools({ folder }: { readonly folder: string }): readonly Tool[] {
  const snapshots = snapshotsIn(folder);
  return [
    shellTool(),
    editTool(snapshots),
    readTool(),
    fetchTool(),
    ...plainTools(),
    restoreTool(),
  ];
}

const common = { input: hostCall, execution: "external", present } as const;

/** What reviewers read first: the command, the files or the tool's own name. */
function present({ input: { host, tool, cwd, input, agent } }: Asked): Presented {
  const kind = toolFor(host, tool, input);
  const shown = {
    "coding.shell": () => `run ${oneLine(shellCommand(input), 120)}`,
    "coding.edit": () => `change ${filesOf(host, tool, input, cwd).join(", ")}`,
    "coding.read": () => `read ${filesOf(host, tool, input, cwd).join(", ")}`,
    "coding.fetch": () => `fetch ${oneLine(String(input["url"] ?? ""), 120)}`,
    "coding.agent": () => "start a sub-agent",
    "coding.inner": () => `use ${tool}`,
    "coding.other": () => `use ${tool}`,
  }[kind]();
  const who = agent === undefined ? host : `${host} (${agent})`;
  const fields = [
    { label: "Tool", value: tool },
    { label: "Folder", value: cwd },
  ];
  return { title: `${who} wants to ${shown}`, fields };
}

/** A call that says it is another tool than its input shows would be judged by the wrong rules. */
function resourcesOf(own: CodingTool, of: (call: HostCall) => readonly Resource[]) {
  return ({ input: call }: Asked): readonly Resource[] => {
    const { host, tool, input, cwd } = call;
    const is = toolFor(host, tool, input);
    if (is !== own) throw new Error(`${tool} of ${host} is ${is}`);
    if (!cwd.startsWith("/")) throw new Error("cwd is not an absolute path");
    return of(call);
  };
}

const files =
  (access: "read" | "write") =>
  ({ host, tool, input, cwd }: HostCall): readonly Resource[] =>
    filesOf(host, tool, input, cwd).map((path) => ({ kind: "file", path, access }));

function shellTool(): Tool {
  return defineTool({
    ...common,
    name: "coding.shell",
    description: "A shell command of a coding agent.",
    safety: { effect: "external", affects: ["command"] },
    permissionClass: "bash",
    resources: resourcesOf("coding.shell", ({ input, cwd }) => [
      { kind: "command", command: shellCommand(input), directory: cwd },
    ]),
    dryRun: ({ input: { input, cwd } }) => ({
      summary: `would run a command in ${cwd}`,
      preview: shellCommand(input),
      unavailable: "what a command does shows only when it runs",
    }),
    undo: ({ input: { input, cwd }, output }) => byHand(shellCommand(input), cwd, output),
  });
}

function byHand(command: string, cwd: string, output: unknown): UndoRecipe {
  const told = isJsonObject(output as JsonObject) ? (output as JsonObject)["gitDiff"] : undefined;
  const diff =
    typeof told === "string"
      ? `\nThe host reported these changes of tracked files in the work tree, of this command or of earlier ones:\n${told}`
      : "";
  return {
    irreversible: true,
    description: "a command that ran",
    manualGuide: `Look at what this command did, and undo it by hand. It ran in ${cwd}:\n${command}${diff}`,
  };
}

function editTool(snapshots: Snapshots): Tool {
  return defineTool({
    ...common,
    name: "coding.edit",
    description: "An edit or a new file of a coding agent.",
    safety: { effect: "write", reversible: true, undoTool: "coding.restore", affects: ["file"] },
    permissionClass: "file",
    auditOperation: "edit",
    resources: resourcesOf("coding.edit", files("write")),
    dryRun: ({ input }) => previewEdit(input, snapshots),
    prepare: ({ input, idempotencyKey }) => snapshots.keep(idempotencyKey, placesIn(input)),
    undo: ({ idempotencyKey }) => undoEdit(snapshots, idempotencyKey),
  });
}

const placesIn = ({ host, tool, input, cwd }: HostCall) => filesOf(host, tool, input, cwd);

async function undoEdit(snapshots: Snapshots, key: string): Promise<UndoRecipe> {
  const kept = await snapshots.compare(key);
  if (kept.tooLarge.length > 0) {
    const guide = `These files were too large to be kept, so restore them by hand: ${kept.tooLarge.join(", ")}`;
    return { irreversible: true, manualGuide: guide, description: "an edit of large files" };
  }
  const names = kept.files.map(({ path }) => path).join(", ");
  return {
    tool: "coding.restore",
    input: { files: kept.files },
    description: `restore ${names}`,
  };
}

/** What people see before an edit. An edit that cannot be computed is shown as the host sent it. */
async function previewEdit(call: HostCall, snapshots: Snapshots): Promise<DryRun> {
  const { host, tool, input } = call;
  const [file, ...more] = await snapshots.resolve(placesIn(call));
  const shown = {
    summary: `would change ${[file, ...more].join(", ")}`,
    preview: JSON.stringify(input, undefined, 2),
    impact: { files: more.length + 1 },
  };
  if (file === undefined || more.length > 0 || hostKindOf(host, tool).fields === undefined)
    return shown;
  const before = await readState(file, snapshots.mostBytes);
  const after = editedText(before.bytes?.toString("utf8"), input);
  return after === undefined
    ? shown
    : previewChange({ place: file, before, after: Buffer.from(after) });
}

function editedText(before: string | undefined, input: JsonObject): string | undefined {
  const { content } = input;
  if (typeof content === "string") return content;
  const from = input["old_string"] ?? input["oldString"];
  const to = input["new_string"] ?? input["newString"];
  if (typeof from !== "string" || typeof to !== "string" || before === undefined) return undefined;
  if (from === "" || !before.includes(from)) return undefined;
  const all = input["replace_all"] === true || input["replaceAll"] === true;
  return all ? before.split(from).join(to) : before.replace(from, () => to);
}

function readTool(): Tool {
  return defineTool({
    ...common,
    name: "coding.read",
    description: "A coding agent reads or searches files.",
    safety: { effect: "read", affects: ["file"] },
    permissionClass: "file",
    auditOperation: "read",
    resources: resourcesOf("coding.read", files("read")),
  });
}

function fetchTool(): Tool {
  return defineTool({
    ...common,
    name: "coding.fetch",
    description: "A coding agent fetches an address.",
    safety: { effect: "external", affects: ["network"] },
    permissionClass: "webfetch",
    resources: resourcesOf("coding.fetch", ({ input }) => [
      { kind: "url", url: typeof input["url"] === "string" ? input["url"] : "" },
    ]),
  });
}

function plainTools(): readonly Tool[] {
  const one = (name: CodingTool, description: string, effect: "read" | "external") =>
    defineTool({
      ...common,
      name,
      description,
      safety: { effect },
      permissionClass: "generic",
      resources: resourcesOf(name, () => []),
    });
  return [
    one(
      "coding.agent",
      "A coding agent starts a sub-agent, whose calls are gated as well.",
      "external",
    ),
    one(
      "coding.inner",
      "A coding agent changes only its own state, such as its list of tasks.",
      "read",
    ),
    one(
      "coding.other",
      "Any other tool of a coding agent, such as one of an MCP server.",
      "external",
    ),
  ];
}

/** Only rollbacks call it, with what was kept. Nothing is changed unless every file is as the edit left it. */
function restoreTool(): Tool {
  return defineTool({
    name: "coding.restore",
    description:
      "Restores the files that an edit of a coding agent changed. Only rollbacks call it.",
    input: jsonInput<{ readonly files: readonly KeptFile[] }>(
      { files: { type: "array", items: { type: "object" }, maxItems: 1000 } },
      ["files"],
    ),
    safety: { effect: "write", affects: ["file"] },
    permissionClass: "file",
    auditOperation: "write",
    undoOnly: true,
    resources: ({ input }) =>
      input.files.map(({ path }) => ({ kind: "file", path, access: "write" }) as const),
    execute: ({ input }) =>
      answerOrRefuse(async () => {
        const states = [];
        for (const file of input.files) {
          const before = await readState(file.path, MOST_RESTORED);
          expectState(before, file.expectedSha256, file.path);
          states.push({ file, before });
        }
        for (const { file, before } of states) await restore(file, before);
        const names = input.files.map(({ path }) => path).join(", ");
        return { text: `Restored ${names}.`, data: { files: input.files.length } };
      }),
  });
}

const MOST_RESTORED = 64 * 1024 * 1024;

async function restore(
  { path: place, content, mode, folders }: KeptFile,
  before: Awaited<ReturnType<typeof readState>>,
): Promise<void> {
  const after = content === null ? undefined : Buffer.from(content, "base64");
  if (after === undefined && before.bytes === undefined) return;
  if (after !== undefined && before.bytes?.equals(after) === true) return;
  const change = { place, before, after, ...(mode === undefined ? {} : { mode }) };
  await makeChange(change, { maxBytes: MOST_RESTORED });
  if (after === undefined) await removeEmptyFolders(folders);
}
