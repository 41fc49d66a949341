import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, unlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SallyportError } from "../model/errors.ts";

/**
 * One directory, held open, in which only plain files with plain names exist (T29). Whatever is done to its path later (a
 * link put in its place, a parent renamed), files are opened in the directory that was opened first.
 */
export interface DirectoryHandle {
  readonly path: string;
  /** Makes a new file, only for us to read; fails when the name exists in any form. */
  create(name: string): Promise<FileHandle>;
  /** Opens an existing plain file; undefined when there is none. Links, pipes and devices count as none. */
  openExisting(name: string): Promise<FileHandle | undefined>;
  remove(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Not on Windows, where both are missing and links need a privilege. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NO_WAIT = constants.O_NONBLOCK ?? 0;
/** No dot at the start, no separator, no colon, nothing that any file system reads as something else. */
const PLAIN_NAME = /^[a-z0-9][a-z0-9_-]{0,119}\.[a-z]{1,8}$/;

/** Makes the directory if need be. Throws invalid_input when it is a link or when everybody may write to it. */
export async function openDirectory(directory: string): Promise<DirectoryHandle> {
  const path = resolve(directory);
  await mkdir(path, { recursive: true, mode: 0o700 });
  if ((await lstat(path)).isSymbolicLink())
    throw unfit(path, "It is a link; give the directory itself.");
  const handle = await open(path, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | NO_FOLLOW);
  const { dev, ino, mode } = await handle.stat();
  if ((mode & 0o002) !== 0) {
    await handle.close();
    throw unfit(path, "Everybody may write to it; take that right away (chmod o-w).");
  }

  /** On Linux the open handle itself is the base. Elsewhere Node has no such way, and we look whether it is still there. */
  async function placeOf(name: string): Promise<string> {
    if (!PLAIN_NAME.test(name)) throw unfit(path, "A name was asked for that is none of ours.");
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
      // A second name for the file would mean that somebody linked one in from elsewhere.
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

/** Without waiting, since opening a pipe would wait for its writer. */
async function openIfThere(place: string): Promise<FileHandle | undefined> {
  try {
    return await open(place, constants.O_RDONLY | NO_FOLLOW | NO_WAIT);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP" || code === "ENXIO" || code === "EMLINK")
      return undefined;
    throw error;
  }
}

function unfit(directory: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { directory, hint });
}
