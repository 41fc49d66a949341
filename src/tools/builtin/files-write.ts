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
import { readState } from "./file-state.ts";
import { jsonInput } from "./json-input.ts";
import { answerOrRefuse, undoFromResult } from "./refusal.ts";

interface WriteInput {
  readonly path: string;
  readonly content: string;
  readonly encoding?: "utf8" | "base64";
  readonly expectedSha256?: string;
}

/** Writes a whole file, new or in place of what is there. Undo puts the old bytes back, or removes what was created. */
export function filesWrite(options: FileToolOptions = {}): Tool {
  return defineTool({
    name: "files.write",
    description:
      "Writes a whole file: makes a new one, with the folders it needs, or replaces all of its content. To change a part of a file, use files.edit.",
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
