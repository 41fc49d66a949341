import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import {
  type FileChange,
  type FileData,
  fileResource,
  fileVersion,
  makeChange,
  openChange,
  previewChange,
} from "./file-change.ts";
import { FILE_INPUTS } from "./file-inputs.ts";
import type { FileToolOptions, PlaceContext } from "./file-place.ts";
import { jsonInput } from "./json-input.ts";
import { answerOrRefuse, Refusal, undoFromResult } from "./refusal.ts";

interface DeleteInput {
  readonly path: string;
  readonly expectedSha256?: string;
}

/** Deletes one plain file. Its content is kept in the undo record, which is why large files are refused. */
export function filesDelete(options: FileToolOptions = {}): Tool {
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
