import path from "node:path";
import { sha256Hex } from "../../util/hash.ts";
import type { JsonObject } from "../../util/json.ts";
import type { DryRun, Resource } from "../tool.ts";
import type { UndoRecipe } from "../undo.ts";
import { directoryFor } from "../working-directory.ts";
import { type FileToolOptions, findPlace, type PlaceContext } from "./file-place.ts";
import { ABSENT, expectState, type FileState, readState } from "./file-state.ts";
import { type Answered, Refusal } from "./refusal.ts";
import { makeFolders, removeEmptyFolders, removeFile, replaceFile } from "./replace-file.ts";
import { fileImpact, showChange, sizeOf } from "./unified-diff.ts";

const DEFAULT_MAX_BYTES = 512 * 1024;

/** A change of one file, worked out but not made. `after` is undefined when the file is to be gone. */
export interface FileChange {
  readonly place: string;
  readonly before: FileState;
  readonly after: Uint8Array | undefined;
  /** Rights for a file that does not exist now. */
  readonly mode?: number;
}

export interface FileData {
  readonly path: string;
  readonly sha256: string;
}

interface Asked extends PlaceContext {
  readonly input: { readonly path: string; readonly expectedSha256?: string };
}

/** Finds the file of a call and reads it, unless it is not the expected one. */
export async function openChange(
  { input, ...context }: Asked,
  options: FileToolOptions,
): Promise<{ readonly place: string; readonly before: FileState }> {
  const place = await findPlace(input.path, context, options);
  const before = await readState(place, maxBytesOf(options));
  expectState(before, input.expectedSha256, place);
  return { place, before };
}

export function maxBytesOf({ maxBytes = DEFAULT_MAX_BYTES }: FileToolOptions): number {
  return maxBytes;
}

export function previewChange({ place, before, after }: FileChange): DryRun {
  const verb = after === undefined ? "delete" : before.bytes === undefined ? "create" : "change";
  return {
    summary: `would ${verb} ${place} (${sizeOf(before.bytes)} before, ${sizeOf(after)} after)`,
    ...showChange(place, before.bytes, after),
    impact: fileImpact(before, after),
  };
}

/** Makes the change, if the file is still as it was, and says how to take it back. */
export async function makeChange(
  { place, before, after, mode }: FileChange,
  options: FileToolOptions,
): Promise<Answered<FileData>> {
  const maxBytes = maxBytesOf(options);
  const expected = before.sha256;
  if (after !== undefined && after.byteLength > maxBytes) {
    throw new Refusal(
      "too_large",
      `The new content of ${place} has ${after.byteLength} bytes; at most ${maxBytes} are allowed. Nothing was done. Split it into smaller files.`,
    );
  }
  let folders: string[] = [];
  if (after === undefined) await removeFile(place, expected, maxBytes);
  else {
    folders = expected === ABSENT ? await makeFolders(path.dirname(place)) : [];
    const replacement = { bytes: after, mode: before.mode ?? mode, expected, maxBytes };
    await replaceFile(place, replacement).catch(async (error) => {
      await removeEmptyFolders(folders);
      throw error;
    });
  }
  const sha256 = after === undefined ? ABSENT : sha256Hex(after);
  const verb = after === undefined ? "Deleted" : before.bytes === undefined ? "Created" : "Changed";
  return {
    text: `${verb} ${place} (${sizeOf(after)}). Its hash is now ${sha256}.`,
    data: { path: place, sha256 },
    undo: restoreRecipe(place, before, sha256, folders),
  };
}

/** What is at stake, for the drift check: the content, and also the place when a link leads there. */
export async function fileVersion(asked: Asked, options: FileToolOptions): Promise<string> {
  const { input, workingDirectory } = asked;
  const place = await findPlace(input.path, asked, options);
  const { sha256 } = await readState(place, maxBytesOf(options));
  const plain = path.resolve(
    directoryFor({ workingDirectory }, options.directory ?? ""),
    input.path,
  );
  return place === plain ? sha256 : `${sha256} at ${place}`;
}

export function fileResource(
  { input, workingDirectory }: Asked,
  { directory = "" }: FileToolOptions,
  access: "read" | "write",
): Resource {
  const from = directoryFor({ workingDirectory }, directory);
  // Joined by hand and not resolved: `link/..` must still be there for the gate to look where the link leads.
  const isWhole = path.isAbsolute(input.path) || from === "" || input.path === "";
  return { kind: "file", path: isWhole ? input.path : `${from}${path.sep}${input.path}`, access };
}

function restoreRecipe(
  place: string,
  before: FileState,
  expectedSha256: string,
  removeFolders: string[],
): UndoRecipe {
  const content = before.bytes === undefined ? null : before.bytes.toString("base64");
  const input: JsonObject = { path: place, expectedSha256, content };
  if (before.mode !== undefined) input["mode"] = before.mode;
  if (removeFolders.length > 0) input["removeFolders"] = removeFolders;
  const what = content === null ? `remove ${place} again` : `put the old content of ${place} back`;
  return {
    tool: "files.restore",
    input,
    description: `${what} (${sizeOf(before.bytes)})`,
    manualGuide: `Restore ${place} from a backup or from version control.`,
  };
}
