import {
  chmodSync,
  closeSync,
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { errorCodeOf } from "./error-text.ts";
import { systemRandom } from "./random.ts";

export const PRIVATE_FILE = 0o600;
export const PRIVATE_FOLDER = 0o700;
const OTHERS = 0o077;

/**
 * Creates an empty file that only its owner may read, for programs that would create it with wider permissions. An
 * existing file is not opened: closing a second handle would release this process's locks on it.
 */
export function createPrivateFile(file: string): "created" | "exists" {
  try {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
    closeSync(openSync(file, flags, PRIVATE_FILE));
    return "created";
  } catch (error) {
    if (errorCodeOf(error) === "EEXIST") return "exists";
    throw error;
  }
}

/**
 * Creates a private file with its content, or leaves an existing one alone. The file appears under its name only when it is
 * whole: another process that starts now never reads an empty one, and a killed process leaves none.
 */
export function createWholeFile(file: string, content: string): "created" | "exists" {
  const draft = `${file}.${process.pid}-${Buffer.from(systemRandom.bytes(6)).toString("hex")}.new`;
  writeFileSync(draft, content, { mode: PRIVATE_FILE, flag: "wx" });
  try {
    linkSync(draft, file);
    return "created";
  } catch (error) {
    if (errorCodeOf(error) === "EEXIST") return "exists";
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Makes a folder that only its owner may look into. Within a project it stays out of commits, and out of what search programs of
 * coding agents print: both read these files.
 */
export function makePrivateFolder(folder: string): void {
  if (mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER }) === undefined) return;
  for (const name of [".gitignore", ".ignore"]) {
    writeFileSync(path.join(folder, name), "*\n", { mode: PRIVATE_FILE });
  }
}

/** The folder itself and the files directly in it that other users can access. Windows has no such modes. */
export function openToOthers(folder: string): readonly string[] {
  if (process.platform === "win32") return [];
  const inside = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => path.join(folder, name));
  return [folder, ...inside].filter((one) => isOpenToOthers(one));
}

/** A file that another process removes meanwhile (SQLite's log, an access file) is accessible to no one. */
function isOpenToOthers(one: string): boolean {
  const mode = lstatSync(one, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & OTHERS) !== 0;
}

export function makePrivate(one: string): void {
  const isFolder = lstatSync(one, { throwIfNoEntry: false })?.isDirectory();
  if (isFolder !== undefined) chmodSync(one, isFolder ? PRIVATE_FOLDER : PRIVATE_FILE);
}

/** Resolves links. For a path that does not exist: its nearest existing parent, resolved, and the remaining names. */
export function realPath(given: string): string {
  try {
    return realpathSync(given);
  } catch (error) {
    if (errorCodeOf(error) !== "ENOENT") throw error;
    const parent = path.dirname(given);
    return parent === given ? given : path.join(realPath(parent), path.basename(given));
  }
}
