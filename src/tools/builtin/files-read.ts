import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { fileResource } from "./file-change.ts";
import { FILE_INPUTS } from "./file-inputs.ts";
import { type FileToolOptions, findPlace } from "./file-place.ts";
import { readState } from "./file-state.ts";
import { jsonInput } from "./json-input.ts";
import { answerOrRefuse, Refusal } from "./refusal.ts";
import { textOf } from "./unified-diff.ts";

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

/** Reads a file, or a part of it, together with the hash that the writing tools take as `expectedSha256`. */
export function filesRead(options: FileToolOptions = {}): Tool {
  return defineTool({
    name: "files.read",
    description:
      "Reads a file. Gives its text (base64 when it is not UTF-8) and its hash; pass the hash on as expectedSha256 when you change the file, so that nobody's work is overwritten.",
    input: jsonInput<ReadInput>(
      {
        path: FILE_INPUTS.path,
        offset: { type: "integer", minimum: 0, description: "First byte; 0 when left out." },
        length: {
          type: "integer",
          minimum: 4,
          maximum: LONGEST_PART,
          description: `How many bytes; ${LONGEST_PART} when left out.`,
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

/** Where the character begins that the byte belongs to, so that no part cuts one in two. */
function characterAt(bytes: Uint8Array, at: number): number {
  let start = Math.min(at, bytes.byteLength);
  while (start > 0 && start < bytes.byteLength && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
