import { constants } from "node:fs";
import { type FileHandle, open, readlink, realpath } from "node:fs/promises";
import path from "node:path";
import { errorCodeOf } from "../../util/error-text.ts";
import { sha256Hex } from "../../util/hash.ts";
import type { JsonObject } from "../../util/json.ts";
import type { StandardSchema } from "../define-tool.ts";
import { directoryFor, resolveResources, type UndoRecipe } from "../tool-call.ts";

/** Shared options of the file tools; `fileTools` adds the defaults. */
export interface FileToolOptions {
  /** The base of relative paths when the call's context has no working directory. */
  readonly directory?: string;
  /** The largest file that may be changed, since its old content is kept for undo. Default 512 KiB. */
  readonly maxBytes?: number;
  /** The largest file that may be read. Default 16 MiB. */
  readonly maxReadBytes?: number;
  /** The time limit of a search through folders; then it answers with what it found. Default 10 seconds. */
  readonly deadlineMs?: number;
}

const DIRECTORY = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** The places that a call may use. */
export interface PlaceContext {
  readonly workingDirectory: string;
  readonly places?: readonly string[] | undefined;
}

/**
 * The absolute path with all links and `..` resolved. For a call through the gate it is the place that was judged:
 * `index` counts the files of the tool's `resources`. Throws a ToolRefusal when the path now leads elsewhere (T29).
 */
export async function findPlace(
  given: string,
  context: PlaceContext,
  { directory = "" }: FileToolOptions,
  index = 0,
): Promise<string> {
  const from = directoryFor(context, directory);
  const [found] = await resolveResources([{ kind: "file", path: given, access: "write" }], from);
  if (found?.kind === "file") return asJudged(found.resolved, given, context.places, index);
  const reason = found?.kind === "unresolved" ? found.reason : "it names no file";
  throw new ToolRefusal(
    "unusable",
    `The path ${JSON.stringify(given)} cannot be used: ${reason}. Nothing was done. Give an absolute path, or one below the working directory.`,
  );
}

/**
 * Holds the folder open while `work` uses its files through `base`. If a link was inserted at any level since the path
 * was resolved, the opened folder has another name and nothing is done (T29).
 */
export async function withFolder<Result>(
  folder: string,
  work: (base: string, handle: FileHandle) => Promise<Result>,
): Promise<Result> {
  const handle = await openFolder(folder);
  try {
    const isLinux = process.platform === "linux";
    const base = isLinux ? `/proc/self/fd/${handle.fd}` : folder;
    const real = isLinux ? await readlink(base) : await realpath(folder);
    if (real !== folder) throw swapped(folder);
    return await work(base, handle);
  } finally {
    await handle.close();
  }
}

function asJudged(
  found: string,
  given: string,
  places: readonly string[] | undefined,
  index: number,
): string {
  if (places === undefined || places[index] === found) return found;
  throw new ToolRefusal(
    "conflict",
    `The path ${JSON.stringify(given)} leads to another place than the one that was allowed, because a link in it was changed. Nothing was done. Look at the folder again before repeating the call.`,
  );
}

/** The folder and the file name in it. */
export function splitPlace(place: string): { readonly folder: string; readonly name: string } {
  const name = path.basename(place);
  if (name === "") throw new ToolRefusal("unusable", "The root folder is not a file. Name a file.");
  return { folder: path.dirname(place), name };
}

async function openFolder(folder: string): Promise<FileHandle> {
  try {
    return await open(folder, DIRECTORY);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === "ELOOP") throw swapped(folder);
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new ToolRefusal("not_found", `There is no folder ${folder}. Check the path.`);
    }
    throw new ToolRefusal("unusable", `The folder ${folder} cannot be opened (${code}).`);
  }
}

function swapped(folder: string): ToolRefusal {
  return new ToolRefusal(
    "conflict",
    `A link was put in the way of ${folder} while the call was running, so nothing was done. Look at the folder again before repeating the call.`,
  );
}

export const ABSENT = "absent";

/** A file at one moment. `sha256` is "absent" when there was none. */
export type FileState =
  | { readonly sha256: typeof ABSENT; readonly bytes?: undefined; readonly mode?: undefined }
  | { readonly sha256: string; readonly bytes: Buffer; readonly mode: number };

// Non-blocking, because opening a pipe would wait for its writer.
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Reads the file at a resolved place, without following links. A missing folder means a missing file. */
export async function readState(place: string, maxBytes: number): Promise<FileState> {
  const { folder, name } = splitPlace(place);
  try {
    return await withFolder(folder, (base) => stateIn(base, name, maxBytes));
  } catch (error) {
    if (error instanceof ToolRefusal && error.code === "not_found") return { sha256: ABSENT };
    throw error;
  }
}

/** The same for a folder that is already open. */
export async function stateIn(base: string, name: string, maxBytes: number): Promise<FileState> {
  const file = await openPlain(path.join(base, name), name);
  if (file === undefined) return { sha256: ABSENT };
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw notPlain(name);
    if (stats.size > maxBytes) throw tooLarge(name, stats.size, maxBytes);
    const bytes = await readAtMost(file, maxBytes).catch((error) => {
      throw new ToolRefusal("unusable", `${name} cannot be read (${errorCodeOf(error)}).`);
    });
    // It may have grown since; a part must not be mistaken for the whole.
    if (bytes.byteLength > maxBytes) throw tooLarge(name, bytes.byteLength, maxBytes);
    return { sha256: sha256Hex(bytes), bytes, mode: stats.mode & 0o777 };
  } finally {
    await file.close();
  }
}

/** Throws a ToolRefusal when the file differs from what the caller saw. */
export function expectState(state: FileState, expected: string | undefined, place: string): void {
  if (expected === undefined || state.sha256 === expected) return;
  const now = state.sha256 === ABSENT ? "it does not exist now" : `its hash is ${state.sha256} now`;
  throw new ToolRefusal(
    "conflict",
    `${place} is not what the call expected (${expected}): ${now}. Nothing was done. It was changed since; read it again with files.read, think again, and use the new hash.`,
  );
}

async function openPlain(at: string, name: string): Promise<FileHandle | undefined> {
  try {
    return await open(at, READ);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP" || code === "ENXIO" || code === "EMLINK") throw notPlain(name);
    throw new ToolRefusal(
      "unusable",
      `The file ${name} cannot be opened (${code}). Nothing was done.`,
    );
  }
}

async function readAtMost(file: FileHandle, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  while (total <= maxBytes) {
    const chunk = Buffer.alloc(Math.min(64 * 1024, maxBytes + 1 - total));
    const { bytesRead } = await file.read(chunk, 0, chunk.byteLength, total);
    if (bytesRead === 0) break;
    chunks.push(chunk.subarray(0, bytesRead));
    total += bytesRead;
  }
  return Buffer.concat(chunks);
}

function notPlain(name: string): ToolRefusal {
  return new ToolRefusal(
    "unusable",
    `${name} is not a plain file (it is a folder, a link put there just now, a pipe or a device). Nothing was done. Name a plain file.`,
  );
}

function tooLarge(name: string, bytes: number, maxBytes: number): ToolRefusal {
  return new ToolRefusal(
    "too_large",
    `${name} has ${bytes} bytes; this tool takes at most ${maxBytes}. Nothing was done. Use a smaller file, or ask a person.`,
  );
}

/** Properties shared by several file tools. */
export const FILE_INPUTS = {
  path: {
    type: "string",
    minLength: 1,
    maxLength: 4096,
    description: "Path of the file, absolute or from the working directory.",
  },
  expectedSha256: {
    type: "string",
    pattern: "^([0-9a-f]{64}|absent)$",
    description:
      'The hash that files.read gave, or "absent". If the file is something else by now, nothing is done.',
  },
  encoding: {
    enum: ["utf8", "base64"],
    description: "Encoding of the content; default utf8.",
  },
} as const satisfies Record<string, JsonObject>;

/** Why a built-in tool did nothing; in the result's data, for code that handles the cases differently. */
export type RefusalCode =
  | "conflict"
  | "not_found"
  | "already_exists"
  | "too_large"
  | "not_allowed"
  | "unusable"
  | "timed_out";

/**
 * A tool refused and changed nothing. The message is written for the model: what was refused, why, and what to do
 * instead. Any other thrown value means that the outcome is unknown.
 */
export class ToolRefusal extends Error {
  override readonly name = "Refusal";
  readonly code: RefusalCode;

  constructor(code: RefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}

export interface Answered<Data> {
  readonly text: string;
  readonly data: Data | Refused;
  readonly isError?: boolean;
  readonly undo?: UndoRecipe;
}

interface Refused {
  readonly refused: RefusalCode;
}

/** Runs the body of `execute` and turns a refusal into a result: an expected refusal is a value, not a throw. */
export async function answerOrRefuse<Data>(
  work: () => Promise<Answered<Data>>,
): Promise<Answered<Data>> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ToolRefusal)) throw error;
    return { text: error.message, isError: true, data: { refused: error.code } };
  }
}

/**
 * The `undo` of tools whose `execute` creates its own undo record, because only there the old state is known. A call of
 * it means that the record was lost, which `makeUndo` reports.
 */
export function undoFromResult({ result }: { result: { undo?: UndoRecipe } }): UndoRecipe {
  if (result.undo === undefined) throw new Error("the result came without its undo record");
  return result.undo;
}

/**
 * Adds a TypeScript type to a plain JSON Schema. At run time it stays the JSON Schema that `defineTool` enforces; it is
 * a Standard Schema for the compiler only, which cannot derive a type from a JSON Schema.
 */
export function jsonInput<Value>(
  properties: JsonObject,
  required: readonly (keyof Value & string)[],
): StandardSchema<Value> {
  const schema = { type: "object", properties, required, additionalProperties: false };
  return schema as unknown as StandardSchema<Value>;
}
