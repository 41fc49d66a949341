import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";

/** How commands on this machine reach the server that runs here. */
export interface LocalAccess {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

const NAME = "local.json";

/** Only whoever may read the store anyway may read it. */
export function writeLocalAccess(data: string, access: LocalAccess): void {
  const file = path.join(data, NAME);
  writeFileSync(file, `${JSON.stringify(access)}\n`, { mode: 0o600 });
  // The mode above is for a new file only.
  chmodSync(file, 0o600);
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

export function removeLocalAccess(data: string): void {
  rmSync(path.join(data, NAME), { force: true });
}
