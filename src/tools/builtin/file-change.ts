import { constants } from "node:fs";
import { type FileHandle, link, lstat, mkdir, open, rename, rmdir, unlink } from "node:fs/promises";
import path from "node:path";
import { createTwoFilesPatch } from "diff";
import { SallyportError } from "../../model/errors.ts";
import { errorCodeOf } from "../../util/error-text.ts";
import { sha256Hex } from "../../util/hash.ts";
import type { JsonObject } from "../../util/json.ts";
import { systemRandom } from "../../util/random.ts";
import type { DryRun, Resource } from "../tool.ts";
import { directoryFor, type UndoRecipe } from "../tool-call.ts";
import {
  ABSENT,
  type Answered,
  expectState,
  type FileState,
  type FileToolOptions,
  findPlace,
  type PlaceContext,
  readState,
  splitPlace,
  stateIn,
  ToolRefusal,
  withFolder,
} from "./file-place.ts";

const DEFAULT_MAX_BYTES = 512 * 1024;

/** A prepared change of one file. `after` is undefined when the file will be deleted. */
export interface FileChange {
  readonly place: string;
  readonly before: FileState;
  readonly after: Uint8Array | undefined;
  /** Permissions for a file that does not exist yet. */
  readonly mode?: number;
}

export interface FileData {
  readonly path: string;
  readonly sha256: string;
}

interface Asked extends PlaceContext {
  readonly input: { readonly path: string; readonly expectedSha256?: string };
}

/** Finds and reads the file of a call, unless it differs from the expected one. */
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

/** Makes the change if the file is unchanged, and returns how to undo it. */
export async function makeChange(
  { place, before, after, mode }: FileChange,
  options: FileToolOptions,
): Promise<Answered<FileData>> {
  const maxBytes = maxBytesOf(options);
  const expected = before.sha256;
  if (after !== undefined && after.byteLength > maxBytes) {
    throw new ToolRefusal(
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

/** The state for the drift check: the content, and also the resolved path when a link leads there. */
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
  // Joined without resolving: the gate must see `link/..` to resolve it where the link leads.
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

/** Finding the shortest diff takes quadratic time in this, and blocks the process. */
const MOST_EDITS = 250;
/** The size of both texts together: splitting and comparing more would block the process. */
const MOST_LINES = 20_000;
/** Longer than a reviewer reads. */
const LONGEST_SHOWN = 256 * 1024;

/** A change as a reviewer sees it. `unavailable` says why the content is not shown. */
interface ShownChange {
  readonly preview: string;
  readonly unavailable?: string;
}

/**
 * Compares a file with its new content; undefined means no file. A diff where that is fast to compute, otherwise the
 * whole new text. Deterministic.
 */
function showChange(
  place: string,
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): ShownChange {
  const sizes = `${sizeOf(before)} before, ${sizeOf(after)} after`;
  const newText = after === undefined ? "" : visibleText(after);
  if (newText === undefined) {
    return notShown("it is not text", `Binary content: ${sizes}.`);
  }
  const oldText = before === undefined ? "" : visibleText(before);
  const preview =
    diffOf(place, { before, oldText }, { after, newText }) ??
    wholeOf(place, { before, oldText }, { after, newText }, sizes);
  if (preview.length <= LONGEST_SHOWN) return { preview };
  // The undo record keeps deleted content; it is neither run nor read afterwards.
  if (after === undefined) return { preview: `The whole file is deleted: ${sizes}.` };
  return notShown("it is too long", `Too long to be shown: ${sizes}.`);
}

interface Old {
  readonly before: Uint8Array | undefined;
  readonly oldText: string | undefined;
}

interface New {
  readonly after: Uint8Array | undefined;
  readonly newText: string;
}

function notShown(why: string, preview: string): ShownChange {
  return { preview, unavailable: `the new content cannot be inspected here: ${why}` };
}

/** Undefined when there is none, or when computing it takes too long. */
function diffOf(place: string, { before, oldText }: Old, { after, newText }: New) {
  if (oldText === undefined) return undefined;
  if (linesOf(before) + linesOf(after) > MOST_LINES) return undefined;
  const [oldName, newName] = namesOf(place, before, after);
  return createTwoFilesPatch(oldName, newName, oldText, newText, undefined, undefined, {
    context: 3,
    maxEditLength: MOST_EDITS,
  });
}

function wholeOf(place: string, old: Old, { after, newText }: New, sizes: string): string {
  const [oldName, newName] = namesOf(place, old.before, after);
  const what = after === undefined ? "the whole old text" : "the whole new text";
  const text = after === undefined ? (old.oldText ?? "") : newText;
  const sign = after === undefined ? "-" : "+";
  const lines = text.length > LONGEST_SHOWN ? text : signed(text, sign);
  return `--- ${oldName}\n+++ ${newName}\nToo much differs for a diff (${sizes}); this is ${what}:\n${lines}`;
}

function signed(text: string, sign: string): string {
  const isWhole = text.endsWith("\n");
  const lines = (isWhole ? text.slice(0, -1) : text).split("\n");
  const end = isWhole ? "\n" : "\n\\ No newline at end of file\n";
  return lines.map((line) => `${sign}${line}`).join("\n") + end;
}

function namesOf(
  place: string,
  before: Uint8Array | undefined,
  after: Uint8Array | undefined,
): readonly [string, string] {
  return [before === undefined ? "/dev/null" : place, after === undefined ? "/dev/null" : place];
}

function linesOf(bytes: Uint8Array = new Uint8Array()): number {
  let lines = 1;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines += 1;
  return lines;
}

/** Undefined for bytes that are not UTF-8 text. A byte order mark is kept, so that undo restores it. */
export function fileText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function sizeOf(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "no file" : `${bytes.byteLength} bytes`;
}

/** Numbers for a preview. */
function fileImpact(before: FileState, after: Uint8Array | undefined) {
  return {
    files: 1,
    bytesBefore: before.bytes?.byteLength ?? 0,
    bytesAfter: after?.byteLength ?? 0,
    creates: before.bytes === undefined,
    deletes: after === undefined,
  };
}

/** One invalid byte in ten: beyond that the file is not text, and marks would not make it readable. */
const MOST_BAD = 1 / 10;

/**
 * Bytes as text for people. Bytes that are not UTF-8, and every NUL, become a visible mark such as `\xff`, so that they
 * hide nothing of the rest. Undefined when too many bytes are not text.
 */
export function visibleText(bytes: Uint8Array): string | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pieces: string[] = [];
  const most = buffer.byteLength * MOST_BAD;
  let bad = 0;
  let start = 0;
  for (let at = 0; at < buffer.byteLength; ) {
    const length = characterLength(buffer, at);
    if (length > 0) {
      at += length;
      continue;
    }
    bad += 1;
    if (bad > most) return undefined;
    pieces.push(buffer.toString("utf8", start, at), markOf(buffer[at] ?? 0));
    at += 1;
    start = at;
  }
  pieces.push(buffer.toString("utf8", start));
  return pieces.join("");
}

function markOf(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, "0")}`;
}

/** The length in bytes of the character at this offset; 0 for a NUL and for invalid UTF-8 (RFC 3629). */
function characterLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return first === 0 ? 0 : 1;
  const more = (offset: number, low = 0x80, high = 0xbf) => {
    const byte = bytes[at + offset] ?? 0;
    return byte >= low && byte <= high;
  };
  if (first >= 0xc2 && first <= 0xdf) return more(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    // Neither overlong forms nor surrogates.
    const second = first === 0xe0 ? more(1, 0xa0) : first === 0xed ? more(1, 0x80, 0x9f) : more(1);
    return second && more(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const second = first === 0xf0 ? more(1, 0x90) : first === 0xf4 ? more(1, 0x80, 0x8f) : more(1);
    return second && more(2) && more(3) ? 4 : 0;
  }
  return 0;
}

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
/** Error codes of file systems without hard links. */
const NO_LINKS: readonly string[] = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

interface Replacement {
  readonly bytes: Uint8Array;
  /** Undefined for a new file: then the process umask decides. */
  readonly mode: number | undefined;
  /** The hash of the file to be replaced, or "absent". */
  readonly expected: string;
  readonly maxBytes: number;
}

/**
 * Atomic: the bytes are written beside the file, synced, and renamed over it. A reader sees the old file or the new
 * one; a link at its place is replaced and never followed. Throws a ToolRefusal.
 */
export async function replaceFile(place: string, replacement: Replacement): Promise<void> {
  const { bytes, mode, expected, maxBytes } = replacement;
  const { folder, name } = splitPlace(place);
  await withFolder(folder, async (base, handle) => {
    const temporary = path.join(base, temporaryName());
    try {
      await writeNew(temporary, bytes, mode);
      expectState(await stateIn(base, name, maxBytes), expected, place);
      if (expected === ABSENT) await takeName(temporary, path.join(base, name), place);
      else await rename(temporary, path.join(base, name));
    } catch (error) {
      await unlink(temporary).catch(() => {});
      throw asRefusal(error, place);
    }
    await syncFolder(handle, place);
  });
}

/** Removes the file if it is still the expected one. */
async function removeFile(place: string, expected: string, maxBytes: number): Promise<void> {
  const { folder, name } = splitPlace(place);
  await withFolder(folder, async (base, handle) => {
    expectState(await stateIn(base, name, maxBytes), expected, place);
    await unlink(path.join(base, name)).catch((error) => {
      throw asRefusal(error, place);
    });
    await syncFolder(handle, place);
  });
}

/** A failed sync after the change leaves the outcome unknown. Some file systems do not support it. */
export async function syncFolder(handle: FileHandle, place: string): Promise<void> {
  await handle.sync().catch((error) => {
    if (errorCodeOf(error) === "EINVAL") return;
    const hint = `${place} was changed, but the disk did not confirm it. Read it again.`;
    throw new SallyportError("outcome_unknown", { hint }, error);
  });
}

/**
 * Creates the missing parent folders of a place one at a time, each inside its parent, which is held open: inserted
 * links are not followed. Returns the created folders, deepest first, so that an undo can remove them.
 */
async function makeFolders(folder: string): Promise<string[]> {
  const missing: string[] = [];
  let here = folder;
  for (; here !== path.dirname(here) && !(await exists(here)); here = path.dirname(here)) {
    missing.push(here);
  }
  const made: string[] = [];
  try {
    for (const next of missing.toReversed()) {
      const { folder: parent, name } = splitPlace(next);
      const isNew = await withFolder(parent, (base) => makeFolder(path.join(base, name), next));
      if (isNew) made.unshift(next);
    }
  } catch (error) {
    await removeEmptyFolders(made);
    throw error;
  }
  return made;
}

async function exists(at: string): Promise<boolean> {
  try {
    await lstat(at);
    return true;
  } catch (error) {
    if (errorCodeOf(error) === "ENOENT") return false;
    throw asRefusal(error, at);
  }
}

/** False when another call created it meanwhile. */
async function makeFolder(at: string, place: string): Promise<boolean> {
  try {
    await mkdir(at);
    return true;
  } catch (error) {
    if (errorCodeOf(error) === "EEXIST") return false;
    throw asRefusal(error, place);
  }
}

/** Removes folders that are still empty; others stay, and links are not followed. */
export async function removeEmptyFolders(folders: readonly string[]): Promise<void> {
  const remove = async (place: string): Promise<void> => {
    const { folder, name } = splitPlace(place);
    await withFolder(folder, (base) => rmdir(path.join(base, name)));
  };
  for (const folder of folders) await remove(folder).catch(() => {});
}

/** Links the file to its new name and removes the old one: unlike a rename, this never overwrites. */
export async function takeName(from: string, to: string, place: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === "EEXIST") throw taken(place);
    if (!NO_LINKS.includes(code)) throw error;
    const isThere = await lstat(to).then(
      () => true,
      () => false,
    );
    if (isThere) throw taken(place);
    return rename(from, to);
  }
  await unlink(from);
}

async function writeNew(at: string, bytes: Uint8Array, mode: number | undefined): Promise<void> {
  // Only the owner can read the bytes until the file has the permissions of the one it replaces.
  const file: FileHandle = await open(at, NEW, mode === undefined ? 0o666 : 0o600);
  try {
    await file.writeFile(bytes);
    // Never set-uid, set-gid or sticky: the content is new, and these were not granted to it.
    if (mode !== undefined) await file.chmod(mode & 0o777);
    await file.sync();
  } finally {
    await file.close();
  }
}

function temporaryName(): string {
  return `.sallyport-${Buffer.from(systemRandom.bytes(12)).toString("hex")}.tmp`;
}

function taken(place: string): ToolRefusal {
  return new ToolRefusal(
    "already_exists",
    `${place} exists already, so nothing was done. Read it with files.read first, or choose another name.`,
  );
}

/** An error up to here occurred before the file got its name. */
export function asRefusal(error: unknown, place: string): unknown {
  const code = errorCodeOf(error);
  if (error instanceof ToolRefusal || code === "") return error;
  return new ToolRefusal(
    "unusable",
    `The system refused to change ${place} (${code}). Nothing was done. Check the rights and the free space, or ask a person.`,
  );
}
