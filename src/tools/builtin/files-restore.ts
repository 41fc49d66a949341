import path from "node:path";
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
import { FILE_INPUTS } from "./file-inputs.ts";
import { type FileToolOptions, findPlace } from "./file-place.ts";
import { ABSENT, readState } from "./file-state.ts";
import { jsonInput } from "./json-input.ts";
import { answerOrRefuse, undoFromResult } from "./refusal.ts";
import { removeEmptyFolders } from "./replace-file.ts";

interface RestoreInput {
  readonly path: string;
  readonly content: string | null;
  readonly expectedSha256: string;
  readonly mode?: number;
  readonly removeFolders?: readonly string[];
}

/**
 * Undoes a change of another file tool: writes the old bytes, or removes what was created. It refuses when the file is not
 * as that change left it, because later work would be lost (T9). Only rollbacks call it, with the undo record of the
 * change, so its rights are those that the file had.
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
        const change = {
          ...opened,
          after: oldBytes(call.input),
          ...(mode === undefined ? {} : { mode }),
        };
        const answer = await makeChange(change, options);
        // Only folders above the file: those are the ones that the change can have made.
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
      return { happened: "unknown", reason: `somebody changed ${place} since` };
    },
  });
}

function oldBytes({ content }: RestoreInput): Buffer | undefined {
  return content === null ? undefined : Buffer.from(content, "base64");
}
