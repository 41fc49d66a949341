import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { type FileHold, holdFile } from "../store/sqlite/hold-file.ts";
import { readLocalAccess } from "./local-access.ts";

/**
 * One server per data folder: two would overwrite each other's access file, and whichever ended first would remove it. The
 * lock is the operating system's and ends with the process, so nothing stale is left behind. Throws already_exists.
 */
export function lockDataFolder(data: string): FileHold {
  const hold = holdFile(path.join(data, "serve.lock"));
  if (hold !== undefined) return hold;
  const hint = `${runningServer(data)} Use that one, stop it, or start this one over another folder with --data.`;
  throw new SallyportError("already_exists", { id: data, hint });
}

function runningServer(data: string): string {
  const access = readLocalAccess(data);
  return access === undefined
    ? `Another server is starting over the data folder ${data}.`
    : `A server already runs over the data folder ${data}: pid ${access.pid}, at ${access.url}.`;
}
