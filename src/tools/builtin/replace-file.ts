import { constants } from "node:fs";
import { type FileHandle, link, lstat, mkdir, open, rename, rmdir, unlink } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../../model/errors.ts";
import { systemRandom } from "../../util/random.ts";
import { ABSENT, expectState, splitPlace, stateIn, withFolder } from "./file-place.ts";

import { errorCodeOf, Refusal } from "./refusal.ts";

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
/** Answers of file systems that know no hard links. */
const NO_LINKS: readonly string[] = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

export interface Replacement {
  readonly bytes: Uint8Array;
  /** Undefined for a new file: then the process' umask decides. */
  readonly mode: number | undefined;
  /** Hash of what is to be replaced, or "absent". */
  readonly expected: string;
  readonly maxBytes: number;
}

/**
 * All or nothing: the bytes are written beside the file, made durable, and take its name in one step. A reader sees the old
 * file or the new one, and a link that was put in its place is replaced and never followed. Throws a Refusal.
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

/** After the deed: a disk that cannot promise to keep it leaves the outcome open. Some file systems have no such promise. */
export async function syncFolder(handle: FileHandle, place: string): Promise<void> {
  await handle.sync().catch((error) => {
    if (errorCodeOf(error) === "EINVAL") return;
    const hint = `${place} was changed, but the disk did not confirm it. Read it again.`;
    throw new SallyportError("outcome_unknown", { hint }, error);
  });
}

/**
 * Makes the folders above a place that are missing, one at a time and each inside its parent, which is held open: a link put
 * in the way is not followed. Returns those it made, deepest first, so that an undo can remove them.
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

/** False when another call made it in the meantime. */
async function makeFolder(at: string, place: string): Promise<boolean> {
  try {
    await mkdir(at);
    return true;
  } catch (error) {
    if (errorCodeOf(error) === "EEXIST") return false;
    throw asRefusal(error, place);
  }
}

/** Removes folders that are still empty; the others stay, and so does what a link put in the way leads to. */
export async function removeEmptyFolders(folders: readonly string[]): Promise<void> {
  const remove = async (place: string): Promise<void> => {
    const { folder, name } = splitPlace(place);
    await withFolder(folder, (base) => rmdir(path.join(base, name)));
  };
  for (const folder of folders) await remove(folder).catch(() => {});
}

/** Gives a file a second name and takes the first away: unlike a rename, this never overwrites. */
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
  // Nobody else reads the bytes before the file has the rights of the one that it replaces.
  const file: FileHandle = await open(at, NEW, mode === undefined ? 0o666 : 0o600);
  try {
    await file.writeFile(bytes);
    // Never set-uid, set-gid or sticky: the content is new, so such a right was not given to it.
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

/** Whatever the system refuses up to here, it refused before the name was given. */
export function asRefusal(error: unknown, place: string): unknown {
  const code = errorCodeOf(error);
  if (error instanceof Refusal || code === "") return error;
  return new Refusal(
    "unusable",
    `The system refused to change ${place} (${code}). Nothing was done. Check the rights and the free space, or ask a person.`,
  );
}
