import { constants } from "node:fs";
import { type FileHandle, link, lstat, mkdir, open, rename, rmdir, unlink } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../../model/errors.ts";
import { systemRandom } from "../../util/random.ts";
import { ABSENT, expectState, splitPlace, stateIn, withFolder } from "./file-place.ts";

import { errorCodeOf, Refusal } from "./refusal.ts";

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
 * one; a link at its place is replaced and never followed. Throws a Refusal.
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
export async function removeFile(place: string, expected: string, maxBytes: number): Promise<void> {
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
export async function makeFolders(folder: string): Promise<string[]> {
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

function taken(place: string): Refusal {
  return new Refusal(
    "already_exists",
    `${place} exists already, so nothing was done. Read it with files.read first, or choose another name.`,
  );
}

/** An error up to here occurred before the file got its name. */
export function asRefusal(error: unknown, place: string): unknown {
  const code = errorCodeOf(error);
  if (error instanceof Refusal || code === "") return error;
  return new Refusal(
    "unusable",
    `The system refused to change ${place} (${code}). Nothing was done. Check the rights and the free space, or ask a person.`,
  );
}
