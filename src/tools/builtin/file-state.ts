import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import path from "node:path";
import { sha256Hex } from "../../util/hash.ts";
import { splitPlace, withFolder } from "./file-place.ts";
import { errorCodeOf, Refusal } from "./refusal.ts";

export const ABSENT = "absent";

/** A file as it was at one moment. `sha256` is "absent" when there was none. */
export type FileState =
  | { readonly sha256: typeof ABSENT; readonly bytes?: undefined; readonly mode?: undefined }
  | { readonly sha256: string; readonly bytes: Buffer; readonly mode: number };

// Without waiting, since opening a pipe would wait for its writer.
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Reads the file at a resolved place, without following links. A missing folder means a missing file. */
export async function readState(place: string, maxBytes: number): Promise<FileState> {
  const { folder, name } = splitPlace(place);
  try {
    return await withFolder(folder, (base) => stateIn(base, name, maxBytes));
  } catch (error) {
    if (error instanceof Refusal && error.code === "not_found") return { sha256: ABSENT };
    throw error;
  }
}

/** The same for a folder that is held open already. */
export async function stateIn(base: string, name: string, maxBytes: number): Promise<FileState> {
  const file = await openPlain(path.join(base, name), name);
  if (file === undefined) return { sha256: ABSENT };
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw notPlain(name);
    if (stats.size > maxBytes) throw tooLarge(name, stats.size, maxBytes);
    const bytes = await readAtMost(file, maxBytes).catch((error) => {
      throw new Refusal("unusable", `${name} cannot be read (${errorCodeOf(error)}).`);
    });
    // It may have grown since it was looked at; a part must not pass for the whole.
    if (bytes.byteLength > maxBytes) throw tooLarge(name, bytes.byteLength, maxBytes);
    return { sha256: sha256Hex(bytes), bytes, mode: stats.mode & 0o777 };
  } finally {
    await file.close();
  }
}

/** Throws a Refusal when the file is not what the caller has seen. */
export function expectState(state: FileState, expected: string | undefined, place: string): void {
  if (expected === undefined || state.sha256 === expected) return;
  const now = state.sha256 === ABSENT ? "it does not exist now" : `its hash is ${state.sha256} now`;
  throw new Refusal(
    "conflict",
    `${place} is not what the call expected (${expected}): ${now}. Nothing was done. Somebody changed it since; read it again with files.read, think again, and use the new hash.`,
  );
}

async function openPlain(at: string, name: string): Promise<FileHandle | undefined> {
  try {
    return await open(at, READ);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP" || code === "ENXIO" || code === "EMLINK") throw notPlain(name);
    throw new Refusal("unusable", `The file ${name} cannot be opened (${code}). Nothing was done.`);
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

function notPlain(name: string): Refusal {
  return new Refusal(
    "unusable",
    `${name} is not a plain file (it is a folder, a link put there just now, a pipe or a device). Nothing was done. Name a plain file.`,
  );
}

function tooLarge(name: string, bytes: number, maxBytes: number): Refusal {
  return new Refusal(
    "too_large",
    `${name} has ${bytes} bytes; this tool takes at most ${maxBytes}. Nothing was done. Use a smaller file, or ask a person.`,
  );
}
