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
import { textOf } from "./unified-diff.ts";

interface EditInput {
  readonly path: string;
  readonly oldText: string;
  readonly newText: string;
  readonly expectedSha256?: string;
}

/** Replaces one passage of a text file, which must stand there exactly once. */
export function filesEdit(options: FileToolOptions = {}): Tool {
  const plan = async (call: PlaceContext & { input: EditInput }): Promise<FileChange> => {
    const { place, before } = await openChange(call, options);
    return { place, before, after: edited(place, before.bytes, call.input) };
  };
  return defineTool({
    name: "files.edit",
    description:
      "Replaces one passage of a text file. oldText must stand in the file exactly once, letter by letter with its spaces and line ends; give enough of the lines around it to make it unique.",
    input: jsonInput<EditInput>(
      {
        path: FILE_INPUTS.path,
        oldText: { type: "string", minLength: 1 },
        newText: { type: "string", description: "May be empty, to take the passage out." },
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
      `There is no file ${place}. Nothing was done. Make it with files.write.`,
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
      `oldText does not stand in ${place}. Nothing was done. Read the file again with files.read and copy the passage letter by letter.`,
    );
  }
  if (text.indexOf(oldText, first + 1) >= 0) {
    throw new Refusal(
      "conflict",
      `oldText stands in ${place} more than once, so it is not clear which one is meant. Nothing was done. Give more of the lines around it.`,
    );
  }
  // Put together by hand: String.replace would read `$&` in the new text as a command.
  return Buffer.from(text.slice(0, first) + newText + text.slice(first + oldText.length), "utf8");
}
