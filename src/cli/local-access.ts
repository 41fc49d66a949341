import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { PRIVATE_FILE } from "../util/private-files.ts";

/** How commands on this machine reach the server that runs here. */
export interface LocalAccess {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

const NAME = "local.json";

/** Replaced as a whole: at no moment is it half written, or readable for others because an older one was. */
export function writeLocalAccess(data: string, access: LocalAccess): void {
  const file = path.join(data, NAME);
  const next = `${file}.${access.pid}.new`;
  rmSync(next, { force: true });
  writeFileSync(next, `${JSON.stringify(access)}\n`, { mode: PRIVATE_FILE, flag: "wx" });
  renameSync(next, file);
}

/** Undefined when no server has written one. Throws damaged_record. */
export function readLocalAccess(data: string): LocalAccess | undefined {
  const file = path.join(data, NAME);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
  try {
    const { url, token, pid } = JSON.parse(text);
    if (typeof url === "string" && typeof token === "string") return { url, token, pid };
  } catch {
    // Told below, like every other way in which it can be wrong.
  }
  const hint = `Remove ${file} and start the server again.`;
  throw new SallyportError("damaged_record", { id: NAME, hint });
}

/** Removes the file if it is still this server's own. */
export function removeLocalAccess(data: string, own: LocalAccess): void {
  if (isOwn(data, own)) rmSync(path.join(data, NAME), { force: true });
}

function isOwn(data: string, { token, pid }: LocalAccess): boolean {
  try {
    const found = readLocalAccess(data);
    return found?.token === token && found.pid === pid;
  } catch {
    // What cannot be read was not written by this server.
    return false;
  }
}
