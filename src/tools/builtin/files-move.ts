import path from "node:path";
import { definedFields } from "../../util/defined-fields.ts";
import { sha256Hex } from "../../util/hash.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import {
  type FileData,
  fileResource,
  fileVersion,
  makeChange,
  maxBytesOf,
  openChange,
  previewChange,
} from "./file-change.ts";
import {
  ABSENT,
  expectState,
  FILE_INPUTS,
  type FileState,
  type FileToolOptions,
  findPlace,
  type PlaceContext,
  readState,
  splitPlace,
  stateIn,
  withFolder,
} from "./file-place.ts";
import { answerOrRefuse, errorCodeOf, jsonInput, Refusal, undoFromResult } from "./refusal.ts";
import { asRefusal, removeEmptyFolders, syncFolder, takeName } from "./replace-file.ts";

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
export function filesMove(options: FileToolOptions = {}): Tool {
  const asked = (path: string, workingDirectory: string) => ({ input: { path }, workingDirectory });
  const places = async (call: MoveCall) => ({
    from: await findPlace(call.input.from, call, options, 0),
    to: await findPlace(call.input.to, call, options, 1),
  });
  const plan = async (call: MoveCall): Promise<Move> => {
    const { from, to } = await places(call);
    const state = await readState(from, maxBytesOf(options));
    if (state.sha256 === ABSENT) throw new Refusal("not_found", `There is no file ${from}.`);
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
        throw new Refusal(
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
export function filesRestore(options: FileToolOptions = {}): Tool {
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
    safety: { effect: "write", reversible: true, undoTool: "files.restore", affects: ["file"] },
    undoOnly: true,
    permissionClass: "file",
    auditOperation: "write",
    searchHint: "undo file change",
    resources: (asked) => [
      fileResource(asked, options, "write"),
      ...(asked.input.removeFolders ?? []).map((path) => ({
        kind: "file" as const,
        path,
        access: "write" as const,
      })),
    ],
    stateVersion: (call) => fileVersion(call, options),
    dryRun: async (call) =>
      previewChange({ ...(await openChange(call, options)), after: oldBytes(call.input) }),
    execute: (call) =>
      answerOrRefuse<FileData>(async () => {
        const { removeFolders = [], mode } = call.input;
        const opened = await openChange(call, options);
        const change = { ...opened, after: oldBytes(call.input), ...definedFields({ mode }) };
        const answer = await makeChange(change, options);
        // Only parent folders of the file: the change can have created no others.
        const above = removeFolders.filter((folder) =>
          opened.place.startsWith(`${folder}${path.sep}`),
        );
        await removeEmptyFolders(above);
        return answer;
      }),
    undo: undoFromResult,
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
