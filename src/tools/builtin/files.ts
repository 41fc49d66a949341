import { sha256Hex } from "../../util/hash.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import {
  type FileChange,
  type FileData,
  fileResource,
  fileVersion,
  makeChange,
  maxBytesOf,
  openChange,
  previewChange,
  textOf,
} from "./file-change.ts";
import {
  FILE_INPUTS,
  type FileToolOptions,
  findPlace,
  type PlaceContext,
  readState,
} from "./file-place.ts";
import { filesMove, filesRestore } from "./files-move.ts";
import { answerOrRefuse, jsonInput, Refusal, undoFromResult } from "./refusal.ts";

/** All file tools with the same options, including `files.restore`, which the undo of the others calls. */
export function fileTools(options: FileToolOptions = {}): readonly Tool[] {
  return [filesRead, filesWrite, filesEdit, filesDelete, filesMove, filesRestore].map((make) =>
    make(options),
  );
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
          throw new Refusal("not_found", `There is no file ${place}. Check the path.`);
        }
        const { bytes } = state;
        const isText = textOf(bytes) !== undefined;
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

interface WriteInput {
  readonly path: string;
  readonly content: string;
  readonly encoding?: "utf8" | "base64";
  readonly expectedSha256?: string;
}

/** Writes a whole file, new or replacing the old one. Undo restores the old bytes, or removes what was created. */
export function filesWrite(options: FileToolOptions = {}): Tool {
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
    safety: { effect: "write", reversible: true, undoTool: "files.restore", affects: ["file"] },
    permissionClass: "file",
    auditOperation: "write",
    searchHint: "create save overwrite file",
    resources: (asked) => [fileResource(asked, options, "write")],
    stateVersion: (call) => fileVersion(call, options),
    dryRun: async (call) =>
      previewChange({ ...(await openChange(call, options)), after: contentOf(call.input) }),
    execute: (call) =>
      answerOrRefuse<FileData>(async () =>
        makeChange({ ...(await openChange(call, options)), after: contentOf(call.input) }, options),
      ),
    undo: undoFromResult,
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
  const plan = async (call: PlaceContext & { input: EditInput }): Promise<FileChange> => {
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
    safety: { effect: "write", reversible: true, undoTool: "files.restore", affects: ["file"] },
    permissionClass: "file",
    auditOperation: "edit",
    searchHint: "change replace patch text in file",
    resources: (asked) => [fileResource(asked, options, "write")],
    stateVersion: (call) => fileVersion(call, options),
    dryRun: async (call) => previewChange(await plan(call)),
    execute: (call) => answerOrRefuse<FileData>(async () => makeChange(await plan(call), options)),
    undo: undoFromResult,
  });
}

function edited(place: string, bytes: Buffer | undefined, { oldText, newText }: EditInput): Buffer {
  if (bytes === undefined) {
    throw new Refusal(
      "not_found",
      `There is no file ${place}. Nothing was done. Create it with files.write.`,
    );
  }
  const text = textOf(bytes);
  if (text === undefined) {
    throw new Refusal(
      "unusable",
      `${place} is not a UTF-8 text, so no passage of it can be replaced. Nothing was done. Write the whole file with files.write and encoding base64.`,
    );
  }
  const first = text.indexOf(oldText);
  if (first < 0) {
    throw new Refusal(
      "not_found",
      `oldText does not occur in ${place}. Nothing was done. Read the file again with files.read and copy the passage exactly.`,
    );
  }
  if (text.indexOf(oldText, first + 1) >= 0) {
    throw new Refusal(
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
  const plan = async (call: PlaceContext & { input: DeleteInput }): Promise<FileChange> => {
    const { place, before } = await openChange(call, options);
    if (before.bytes !== undefined) return { place, before, after: undefined };
    throw new Refusal("not_found", `There is no file ${place}, so there is nothing to delete.`);
  };
  return defineTool({
    name: "files.delete",
    description: "Deletes one file. Folders are not deleted.",
    input: jsonInput<DeleteInput>(
      { path: FILE_INPUTS.path, expectedSha256: FILE_INPUTS.expectedSha256 },
      ["path"],
    ),
    safety: {
      effect: "write",
      reversible: true,
      destructive: true,
      undoTool: "files.restore",
      affects: ["file"],
    },
    permissionClass: "file",
    auditOperation: "delete",
    searchHint: "remove erase unlink file",
    resources: (asked) => [fileResource(asked, options, "write")],
    stateVersion: (call) => fileVersion(call, options),
    dryRun: async (call) => previewChange(await plan(call)),
    execute: (call) => answerOrRefuse<FileData>(async () => makeChange(await plan(call), options)),
    undo: undoFromResult,
  });
}
