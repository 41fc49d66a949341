import { mkdirSync, readdirSync, statSync } from "node:fs";
import { SallyportError } from "../model/errors.ts";
import { makePrivate, openToOthers, PRIVATE_FOLDER } from "../util/private-files.ts";

/** Files by which a folder is known as one of ours. */
const OURS = /^(sallyport.*\.(db|epoch)|local\.json|serve\.lock|place\.json)$/;

/**
 * Makes the folder, or takes the rights of other users off it and its files. A folder that holds files of something else is
 * not changed: it is refused with the command that would do it. Throws invalid_input, store_unavailable.
 */
export function ensurePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER });
    const open = openToOthers(folder);
    if (open.length === 0) return;
    const names = readdirSync(folder);
    if (open.includes(folder) && names.length > 0 && !names.some((name) => OURS.test(name))) {
      throw refused(folder);
    }
    for (const one of open) tighten(one, folder);
  } catch (error) {
    if (error instanceof SallyportError) throw error;
    const hint = `The folder ${folder} cannot be used: check that it is a folder and that you may write to it.`;
    throw new SallyportError("store_unavailable", { what: folder, hint }, error);
  }
}

/** Whoever does not own it cannot change it: then it is refused rather than used as it is. */
function tighten(one: string, folder: string): void {
  try {
    makePrivate(one);
  } catch (error) {
    throw refused(folder, error);
  }
}

function refused(folder: string, cause?: unknown): SallyportError {
  const mode = (statSync(folder).mode & 0o777).toString(8);
  const hint = `Other users of this machine can reach ${folder} (mode ${mode}), which will hold tokens and keys. Run: chmod 700 ${folder}, or choose a folder of its own with --data.`;
  return new SallyportError("invalid_input", { what: folder, hint }, cause);
}
