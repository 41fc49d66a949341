import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, unlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SallyportError } from "../model/errors.ts";
import { systemClock } from "../util/clock.ts";
import { errorCodeOf } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { createIds, type Ids } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";

/** Stores outputs that are too long for a prompt, per session. Shape: callback; pulled from by `read`. */
export interface ResultStore {
  save(owner: ResultOwner, text: string): Promise<StoredResult>;
  /** Undefined when this owner has no such result; results of other owners are invisible. */
  read(owner: ResultOwner, id: string, range?: ResultRange): Promise<ResultPart | undefined>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ResultOwner {
  readonly tenant: string;
  readonly sessionId: string;
}

export interface StoredResult {
  readonly id: string;
  /** The path of the file. Caller-specific: not for shared logs or screens (S2-92). */
  readonly path: string;
}

/** In bytes of UTF-8. */
export interface ResultRange {
  readonly offset?: number;
  readonly length?: number;
}

export interface ResultPart {
  readonly text: string;
  /** The offset of the next part; equal to `totalBytes` at the end. */
  readonly nextOffset: number;
  readonly totalBytes: number;
}

export interface ResultStoreOptions {
  readonly directory: string;
  /** Names the outputs. Left out: UUIDs of version 7. */
  readonly ids?: Ids;
  /** Longer outputs are refused. Default 64 MiB. */
  readonly maxBytes?: number;
}

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;
const LONGEST_PART = 256 * 1024;
/** The longest character in UTF-8. */
const SHORTEST_PART = 4;
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Files in one directory, named by generated ids only (T29). */
export async function openResultStore(options: ResultStoreOptions): Promise<ResultStore> {
  const { ids = createIds({ clock: systemClock, random: systemRandom }) } = options;
  const { maxBytes = DEFAULT_MAX_BYTES } = options;
  const directory = await openDirectory(options.directory);
  return {
    async save(owner, text) {
      const bytes = Buffer.from(text.toWellFormed(), "utf8");
      if (bytes.byteLength > maxBytes) {
        throw new SallyportError("payload_too_large", { bytes: bytes.byteLength, maxBytes });
      }
      const id = ids.next();
      const name = fileName(owner, id);
      await writeWhole(directory, name, bytes);
      return { id, path: join(directory.path, name) };
    },
    async read(owner, id, { offset = 0, length = LONGEST_PART } = {}) {
      if (typeof id !== "string" || !ID.test(id)) return undefined;
      const file = await directory.openExisting(fileName(owner, id));
      if (file === undefined) return undefined;
      try {
        const most = Math.min(Math.max(wholeNumber(length), SHORTEST_PART), LONGEST_PART);
        return await readPart(file, wholeNumber(offset), most);
      } finally {
        await file.close();
      }
    },
    close: () => directory.close(),
    [Symbol.asyncDispose]: () => directory.close(),
  };
}

/** The owner is part of the name, so that another owner's id leads to no file. */
function fileName({ tenant, sessionId }: ResultOwner, id: string): string {
  return `${id}-${sha256Hex(JSON.stringify([tenant, sessionId])).slice(0, 32)}.txt`;
}

/** Removes a partial file, so that it is not mistaken for the whole. */
async function writeWhole(
  directory: DirectoryHandle,
  name: string,
  bytes: Uint8Array,
): Promise<void> {
  const file = await directory.create(name);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } catch (error) {
    await directory.remove(name).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
}

async function readPart(file: FileHandle, offset: number, length: number): Promise<ResultPart> {
  const totalBytes = (await file.stat()).size;
  const start = Math.min(offset, totalBytes);
  const buffer = Buffer.alloc(Math.min(length, totalBytes - start));
  const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, start);
  const end = wholeCharacters(buffer.subarray(0, bytesRead), start + bytesRead < totalBytes);
  return { text: buffer.toString("utf8", 0, end), nextOffset: start + end, totalBytes };
}

/** The number of bytes that do not split a character, when more follow. */
function wholeCharacters(bytes: Uint8Array, moreFollow: boolean): number {
  if (!moreFollow) return bytes.byteLength;
  let last = bytes.byteLength - 1;
  while (last > 0 && ((bytes[last] as number) & 0xc0) === 0x80) last -= 1;
  const lead = bytes[last] ?? 0;
  const width = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // A part is never empty, or reading would never end.
  return last > 0 && last + width > bytes.byteLength ? last : bytes.byteLength;
}

function wholeNumber(value: number): number {
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/**
 * One directory, held open, that contains only plain files with plain names (T29). Whatever happens to its path later
 * (replaced by a link, a parent renamed), files are opened in the directory that was opened first.
 */
interface DirectoryHandle {
  readonly path: string;
  /** Creates a file that only the owner may read; fails when the name exists in any form. */
  create(name: string): Promise<FileHandle>;
  /** Opens an existing plain file; undefined when there is none. Links, pipes and devices do not count. */
  openExisting(name: string): Promise<FileHandle | undefined>;
  remove(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Not on Windows, where both are missing and links need a privilege. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NO_WAIT = constants.O_NONBLOCK ?? 0;
/** No leading dot, no separator, no colon, nothing special to any file system. */
const PLAIN_NAME = /^[a-z0-9][a-z0-9_-]{0,119}\.[a-z]{1,8}$/;

/** Creates the directory if needed. Throws invalid_input when it is a link or world-writable. */
async function openDirectory(directory: string): Promise<DirectoryHandle> {
  const path = resolve(directory);
  await mkdir(path, { recursive: true, mode: 0o700 });
  if ((await lstat(path)).isSymbolicLink())
    throw unfit(path, "It is a link; give the directory itself.");
  const handle = await open(path, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | NO_FOLLOW);
  const { dev, ino, mode } = await handle.stat();
  if ((mode & 0o002) !== 0) {
    await handle.close();
    throw unfit(path, "It is world-writable; remove that permission (chmod o-w).");
  }

  /** On Linux the open handle is the base. Elsewhere Node lacks this, so the path is compared with the handle again. */
  async function placeOf(name: string): Promise<string> {
    if (!PLAIN_NAME.test(name)) throw unfit(path, "The requested name is not a generated one.");
    if (process.platform === "linux") return `/proc/self/fd/${handle.fd}/${name}`;
    const now = await lstat(path);
    if (now.dev !== dev || now.ino !== ino)
      throw unfit(path, "Another directory was put in its place.");
    return join(path, name);
  }

  return {
    path,
    async create(name) {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW;
      return open(await placeOf(name), flags, 0o600);
    },
    async openExisting(name) {
      const file = await openIfThere(await placeOf(name));
      if (file === undefined) return undefined;
      const stats = await file.stat();
      // A second hard link means that the file was linked in from elsewhere.
      if (stats.isFile() && stats.nlink === 1) return file;
      await file.close();
      return undefined;
    },
    async remove(name) {
      await unlink(await placeOf(name));
    },
    close: () => handle.close(),
  };
}

/** Non-blocking, because opening a pipe would wait for its writer. */
async function openIfThere(place: string): Promise<FileHandle | undefined> {
  try {
    return await open(place, constants.O_RDONLY | NO_FOLLOW | NO_WAIT);
  } catch (error) {
    if (["ENOENT", "ELOOP", "ENXIO", "EMLINK"].includes(errorCodeOf(error))) return undefined;
    throw error;
  }
}

function unfit(directory: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { directory, hint });
}
