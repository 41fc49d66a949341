import path from "node:path";
import { definedFields } from "../../util/defined-fields.ts";
import { errorCodeOf } from "../../util/error-text.ts";
import { sha256Hex } from "../../util/hash.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import {
  asRefusal,
  type FileChange,
  type FileData,
  fileResource,
  fileText,
  fileVersion,
  makeChange,
  maxBytesOf,
  openChange,
  previewChange,
  removeEmptyFolders,
  syncFolder,
  takeName,
} from "./file-change.ts";
import {
  ABSENT,
  answerOrRefuse,
  expectState,
  FILE_INPUTS,
  type FileState,
  type FileToolOptions,
  findPlace,
  jsonInput,
  type PlaceContext,
  readState,
  splitPlace,
  stateIn,
  ToolRefusal,
  undoFromResult,
  withFolder,
} from "./file-place.ts";
import { findingTools } from "./find-files.ts";

/** All file tools with the same options, including `files.restore`, which the undo of the others calls. */
export function fileTools(options: FileToolOptions = {}): readonly Tool[] {
  const makers = [filesRead, filesWrite, filesEdit, filesDelete, filesMove, filesRestore];
  return [...makers.map((make) => make(options)), ...findingTools(options)];
}

interface ReadInput {
  readonly path: string;
  readonly offset?: number;
  readonly length?: number;
}

interface ReadData {
  readonly path: string;
  readonly sha256: string;
  readonly encoding: "utf8" | "base64";
  readonly content: string;
  readonly totalBytes: number;
}

const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;
const LONGEST_PART = 256 * 1024;

/** Reads a file or a part of it, with the hash that the writing tools take as `expectedSha256`. */
function filesRead(options: FileToolOptions = {}): Tool {
  return defineTool({
    name: "files.read",
    description:
      "Reads a file. Gives its text (base64 when it is not UTF-8) and its hash; pass the hash as expectedSha256 when you change the file, so that no other change is overwritten.",
    input: jsonInput<ReadInput>(
      {
        path: FILE_INPUTS.path,
        offset: { type: "integer", minimum: 0, description: "First byte; default 0." },
        length: {
          type: "integer",
          minimum: 4,
          maximum: LONGEST_PART,
          description: `Number of bytes; default ${LONGEST_PART}.`,
        },
      },
      ["path"],
    ),
    safety: { effect: "read", concurrencySafe: true, affects: ["file"] },
    permissionClass: "file",
    auditOperation: "read",
    searchHint: "open show cat file content",
    resources: (asked) => [fileResource(asked, options, "read")],
    execute: (call) =>
      answerOrRefuse<ReadData>(async () => {
        const { offset = 0, length = LONGEST_PART } = call.input;
        const place = await findPlace(call.input.path, call, options);
        const state = await readState(place, options.maxReadBytes ?? DEFAULT_MAX_BYTES);
        if (state.bytes === undefined) {
          throw new ToolRefusal("not_found", `There is no file ${place}. Check the path.`);
        }
        const { bytes } = state;
        const isText = fileText(bytes) !== undefined;
        const cut = (at: number) => (isText ? characterAt(bytes, at) : at);
        const part = bytes.subarray(cut(offset), cut(offset + length));
        const encoding = isText ? "utf8" : "base64";
        const content = part.toString(encoding);
        const totalBytes = bytes.byteLength;
        const range = `bytes ${cut(offset)} to ${cut(offset) + part.byteLength} of ${totalBytes}`;
        return {
          text: `${place} (${range}, ${encoding}, sha256 ${state.sha256}):\n${content}`,
          data: { path: place, sha256: state.sha256, encoding, content, totalBytes },
        };
      }),
  });
}

/** The start of the character that contains the byte, so that no part splits one. */
function characterAt(bytes: Uint8Array, at: number): number {
  let start = Math.min(at, bytes.byteLength);
  while (start > 0 && start < bytes.byteLength && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}

type ChangeCall<Input> = PlaceContext & { readonly input: Input };

const REVERSIBLE = {
  effect: "write",
  reversible: true,
  undoTool: "files.restore",
  affects: ["file"],
} as const;

/** What all tools have in common that change one file as planned. */
function changing<Input extends { readonly path: string; readonly expectedSha256?: string }>(
  options: FileToolOptions,
  plan: (call: ChangeCall<Input>) => Promise<FileChange>,
) {
  return {
    safety: REVERSIBLE,
    permissionClass: "file",
    resources: (asked: ChangeCall<Input>) => [fileResource(asked, options, "write")],
    stateVersion: (call: ChangeCall<Input>) => fileVersion(call, options),
    dryRun: async (call: ChangeCall<Input>) => previewChange(await plan(call)),
    execute: (call: ChangeCall<Input>) =>
      answerOrRefuse<FileData>(async () => makeChange(await plan(call), options)),
    undo: undoFromResult,
  } as const;
}

interface WriteInput {
  readonly path: string;
  readonly content: string;
  readonly encoding?: "utf8" | "base64";
  readonly expectedSha256?: string;
}

/** Writes a whole file, new or replacing the old one. Undo restores the old bytes, or removes what was created. */
export function filesWrite(options: FileToolOptions = {}): Tool {
  const plan = async (call: ChangeCall<WriteInput>): Promise<FileChange> => ({
    ...(await openChange(call, options)),
    after: contentOf(call.input),
  });
  return defineTool({
    name: "files.write",
    description:
      "Writes a whole file: creates a new one, with its missing folders, or replaces all of its content. To change a part of a file, use files.edit.",
    input: jsonInput<WriteInput>(
      {
        path: FILE_INPUTS.path,
        content: { type: "string" },
        encoding: FILE_INPUTS.encoding,
        expectedSha256: FILE_INPUTS.expectedSha256,
      },
      ["path", "content"],
    ),
    auditOperation: "write",
    searchHint: "create save overwrite file",
    ...changing(options, plan),
    probe: async (call) => {
      const place = await findPlace(call.input.path, call, options);
      const { sha256 } = await readState(place, maxBytesOf(options));
      if (sha256 === call.input.expectedSha256) return { happened: false };
      const reason =
        sha256 === sha256Hex(contentOf(call.input))
          ? `${place} has exactly this content, but what was there before is not known any more`
          : `${place} has another content, written before or after this call`;
      return { happened: "unknown", reason };
    },
  });
}

function contentOf({ content, encoding = "utf8" }: WriteInput): Buffer {
  return Buffer.from(content, encoding);
}

interface EditInput {
  readonly path: string;
  readonly oldText: string;
  readonly newText: string;
  readonly expectedSha256?: string;
}

/** Replaces one passage of a text file, which must occur exactly once. */
function filesEdit(options: FileToolOptions = {}): Tool {
  const plan = async (call: ChangeCall<EditInput>): Promise<FileChange> => {
    const { place, before } = await openChange(call, options);
    return { place, before, after: edited(place, before.bytes, call.input) };
  };
  return defineTool({
    name: "files.edit",
    description:
      "Replaces one passage of a text file. oldText must occur in the file exactly once, character by character with its spaces and line ends; include enough of the lines around it to make it unique.",
    input: jsonInput<EditInput>(
      {
        path: FILE_INPUTS.path,
        oldText: { type: "string", minLength: 1 },
        newText: { type: "string", description: "May be empty, to remove the passage." },
        expectedSha256: FILE_INPUTS.expectedSha256,
      },
      ["path", "oldText", "newText"],
    ),
    auditOperation: "edit",
    searchHint: "change replace patch text in file",
    ...changing(options, plan),
  });
}

function edited(place: string, bytes: Buffer | undefined, { oldText, newText }: EditInput): Buffer {
  if (bytes === undefined) {
    throw new ToolRefusal(
      "not_found",
      `There is no file ${place}. Nothing was done. Create it with files.write.`,
    );
  }
  const text = fileText(bytes);
  if (text === undefined) {
    throw new ToolRefusal(
      "unusable",
      `${place} is not a UTF-8 text, so no passage of it can be replaced. Nothing was done. Write the whole file with files.write and encoding base64.`,
    );
  }
  const first = text.indexOf(oldText);
  if (first < 0) {
    throw new ToolRefusal(
      "not_found",
      `oldText does not occur in ${place}. Nothing was done. Read the file again with files.read and copy the passage exactly.`,
    );
  }
  if (text.indexOf(oldText, first + 1) >= 0) {
    throw new ToolRefusal(
      "conflict",
      `oldText occurs in ${place} more than once, so it is ambiguous. Nothing was done. Include more of the lines around it.`,
    );
  }
  // Joined manually: String.replace would interpret `$&` in the new text.
  return Buffer.from(text.slice(0, first) + newText + text.slice(first + oldText.length), "utf8");
}

interface DeleteInput {
  readonly path: string;
  readonly expectedSha256?: string;
}

/** Deletes one plain file. Its content is kept in the undo record, so large files are refused. */
function filesDelete(options: FileToolOptions = {}): Tool {
  const plan = async (call: ChangeCall<DeleteInput>): Promise<FileChange> => {
    const { place, before } = await openChange(call, options);
    if (before.bytes !== undefined) return { place, before, after: undefined };
    throw new ToolRefusal("not_found", `There is no file ${place}, so there is nothing to delete.`);
  };
  return defineTool({
    name: "files.delete",
    description: "Deletes one file. Folders are not deleted.",
    input: jsonInput<DeleteInput>(
      { path: FILE_INPUTS.path, expectedSha256: FILE_INPUTS.expectedSha256 },
      ["path"],
    ),
    auditOperation: "delete",
    searchHint: "remove erase unlink file",
    ...changing(options, plan),
    safety: { ...REVERSIBLE, destructive: true },
  });
}

interface MoveInput {
  readonly from: string;
  readonly to: string;
  readonly expectedSha256?: string;
}

interface MoveCall extends PlaceContext {
  readonly input: MoveInput;
}

interface Move {
  readonly from: string;
  readonly to: string;
  readonly state: FileState;
}

/** Moves or renames one file, never over another one. Undo moves it back if it is still the same file. */
function filesMove(options: FileToolOptions = {}): Tool {
  const asked = (path: string, workingDirectory: string) => ({ input: { path }, workingDirectory });
  const places = async (call: MoveCall) => ({
    from: await findPlace(call.input.from, call, options, 0),
    to: await findPlace(call.input.to, call, options, 1),
  });
  const plan = async (call: MoveCall): Promise<Move> => {
    const { from, to } = await places(call);
    const state = await readState(from, maxBytesOf(options));
    if (state.sha256 === ABSENT) throw new ToolRefusal("not_found", `There is no file ${from}.`);
    expectState(state, call.input.expectedSha256, from);
    expectState(await readState(to, maxBytesOf(options)), ABSENT, to);
    return { from, to, state };
  };
  return defineTool({
    name: "files.move",
    description:
      "Moves or renames one file. The target must not exist, and its folder must; folders are not moved.",
    input: jsonInput<MoveInput>(
      { from: FILE_INPUTS.path, to: FILE_INPUTS.path, expectedSha256: FILE_INPUTS.expectedSha256 },
      ["from", "to"],
    ),
    safety: { effect: "write", reversible: true, undoTool: "files.move", affects: ["file"] },
    permissionClass: "file",
    auditOperation: "write",
    searchHint: "rename file",
    resources: ({ input, workingDirectory }) => [
      fileResource(asked(input.from, workingDirectory), options, "write"),
      fileResource(asked(input.to, workingDirectory), options, "write"),
    ],
    stateVersion: async (call) => {
      const { from, to } = await places(call);
      const [source, target] = await Promise.all([
        readState(from, maxBytesOf(options)),
        readState(to, maxBytesOf(options)),
      ]);
      return `${source.sha256} at ${from}, ${target.sha256} at ${to}`;
    },
    dryRun: async (call) => {
      const { from, to, state } = await plan(call);
      return {
        summary: `would move ${from} to ${to}`,
        preview: `rename from ${from}\nrename to ${to}\n`,
        impact: { files: 1, bytes: state.bytes?.byteLength ?? 0 },
      };
    },
    execute: (call) =>
      answerOrRefuse<FileData>(async () => {
        const { from, to, state } = await plan(call);
        await moveFile({ from, to, state }, maxBytesOf(options));
        const input = { from: to, to: from, expectedSha256: state.sha256 };
        return {
          text: `Moved ${from} to ${to}.`,
          data: { path: to, sha256: state.sha256 },
          undo: { tool: "files.move", input, description: `move ${to} back to ${from}` },
        };
      }),
    undo: undoFromResult,
  });
}

async function moveFile({ from, to, state }: Move, maxBytes: number): Promise<void> {
  const source = splitPlace(from);
  const target = splitPlace(to);
  await withFolder(source.folder, (base, sourceHandle) =>
    withFolder(target.folder, async (targetBase, targetHandle) => {
      expectState(await stateIn(base, source.name, maxBytes), state.sha256, from);
      try {
        await takeName(path.join(base, source.name), path.join(targetBase, target.name), to);
      } catch (error) {
        if (errorCodeOf(error) !== "EXDEV") throw asRefusal(error, to);
        throw new ToolRefusal(
          "unusable",
          `${to} is on another disk than ${from}. Nothing was done. Write the file there with files.write and delete the old one with files.delete.`,
        );
      }
      await syncFolder(targetHandle, to);
      await syncFolder(sourceHandle, from);
    }),
  );
}

interface RestoreInput {
  readonly path: string;
  readonly content: string | null;
  readonly expectedSha256: string;
  readonly mode?: number;
  readonly removeFolders?: readonly string[];
}

/**
 * Undoes a change of another file tool: writes the old bytes, or removes what was created. Refuses when the file is not
 * as that change left it, because later work would be lost (T9). Only rollbacks call it, with the undo record of the
 * change, so its permissions are those that the file had.
 */
function filesRestore(options: FileToolOptions = {}): Tool {
  const plan = async (call: ChangeCall<RestoreInput>): Promise<FileChange> => ({
    ...(await openChange(call, options)),
    after: oldBytes(call.input),
    ...definedFields({ mode: call.input.mode }),
  });
  return defineTool({
    name: "files.restore",
    description:
      "Undoes a change that another files tool made. It runs only as part of a rollback and cannot be called by itself.",
    input: jsonInput<RestoreInput>(
      {
        path: FILE_INPUTS.path,
        content: { type: ["string", "null"], description: "Old bytes in base64; null: no file." },
        expectedSha256: FILE_INPUTS.expectedSha256,
        mode: { type: "integer", minimum: 0, maximum: 0o777 },
        removeFolders: { type: "array", items: { type: "string" }, maxItems: 256 },
      },
      ["path", "content", "expectedSha256"],
    ),
    undoOnly: true,
    auditOperation: "write",
    searchHint: "undo file change",
    ...changing(options, plan),
    resources: (asked) => [
      fileResource(asked, options, "write"),
      ...(asked.input.removeFolders ?? []).map((path) => ({
        kind: "file" as const,
        path,
        access: "write" as const,
      })),
    ],
    execute: (call) =>
      answerOrRefuse<FileData>(async () => {
        const change = await plan(call);
        const answer = await makeChange(change, options);
        // Only parent folders of the file: the change can have created no others.
        const above = (call.input.removeFolders ?? []).filter((folder) =>
          change.place.startsWith(`${folder}${path.sep}`),
        );
        await removeEmptyFolders(above);
        return answer;
      }),
    probe: async (call) => {
      const place = await findPlace(call.input.path, call, options);
      const { sha256 } = await readState(place, maxBytesOf(options));
      const wanted = oldBytes(call.input);
      const target = wanted === undefined ? ABSENT : sha256Hex(wanted);
      if (sha256 === call.input.expectedSha256) return { happened: false };
      if (sha256 === target) {
        const text = `${place} is as it was before.`;
        return { happened: true, result: { text, data: { path: place, sha256 } } };
      }
      return { happened: "unknown", reason: `${place} was changed since` };
    },
  });
}

function oldBytes({ content }: RestoreInput): Buffer | undefined {
  return content === null ? undefined : Buffer.from(content, "base64");
}
