import { constants } from "node:fs";
import { type FileHandle, open, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";

/** A text file that is always whole: read in one go, replaced in one step. */

export const MAX_FILE_BYTES = 64 * 1024 * 1024;

export interface FileContent {
  readonly text: string;
  /** Changes when somebody, an editor for instance, writes or replaces the file. */
  readonly stamp: string;
  readonly mode: number;
}

// ignoreBOM means "do not strip it": what we do not write we do not drop.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The file behind all links, so that everybody locks and replaces the same one. It need not exist; its folder must. */
export async function realFile(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
    return path.join(await realpath(path.dirname(file)), path.basename(file));
  }
}

/** Undefined when there is no such file. Throws damaged_record for what is not UTF-8: rewriting it would destroy it. */
export async function readText(file: string): Promise<FileContent | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
  try {
    const { size, mode } = await handle.stat();
    if (size > MAX_FILE_BYTES) {
      throw new SallyportError("payload_too_large", { file, size, most: MAX_FILE_BYTES });
    }
    const stamp = stampOf(await handle.stat({ bigint: true }));
    return { text: decode(await handle.readFile(), file), stamp, mode: mode & 0o777 };
  } finally {
    await handle.close();
  }
}

/**
 * Replaces the file, durably and in one step: whoever reads sees all of the old text or all of the new, also after a
 * crash. False, and nothing done, when the file is no longer the one of `before`. Only under the lock: there is one
 * temporary name, so that what a killed writer left behind is cleaned up by the next.
 */
export async function replaceText(
  file: string,
  text: string,
  before: FileContent | undefined,
): Promise<boolean> {
  const temporary = path.join(path.dirname(file), `.${path.basename(file)}.tmp`);
  await rm(temporary, { force: true });
  const handle = await open(temporary, "wx", before?.mode ?? 0o666);
  try {
    // The mode given to open is narrowed by the process's mask.
    if (before !== undefined) await handle.chmod(before.mode);
    await handle.writeFile(text, "utf8");
    await handle.sync();
  } finally {
    await handle.close();
  }
  // An editor does not know our lock. This does not shut it out, but leaves it microseconds instead of milliseconds.
  if ((await stampNow(file)) !== before?.stamp) return false;
  await rename(temporary, file);
  await syncFolder(file);
  return true;
}

/** The rename itself must reach the disk. What fails from here on happens after others may have seen the new text. */
async function syncFolder(file: string): Promise<void> {
  if (process.platform === "win32") return;
  try {
    const folder = await open(path.dirname(file), "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (cause) {
    throw new SallyportError("commit_unknown", { file }, cause);
  }
}

async function stampNow(file: string): Promise<string | undefined> {
  try {
    return stampOf(await stat(file, { bigint: true }));
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function stampOf({ ino, size, mtimeNs }: { ino: bigint; size: bigint; mtimeNs: bigint }): string {
  return `${ino} ${size} ${mtimeNs}`;
}

function decode(bytes: Uint8Array, file: string): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    const hint = "Save the file as UTF-8.";
    throw new SallyportError("damaged_record", { file, hint }, cause);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}
