// How a hook reaches the server: a private file in the data folder, written by `serve`. Each host has a token of its own, which
// proposes calls and reports them, and decides nothing.

import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { PRIVATE_FILE } from "../util/files.ts";
import type { HostName } from "./hosts.ts";

export interface HookAccess {
  readonly url: string;
  readonly pid: number;
  readonly tokens: Readonly<Record<HostName, string>>;
}

const NAME = "hooks.json";

export function writeHookAccess(data: string, access: HookAccess): void {
  const file = path.join(data, NAME);
  const next = `${file}.${access.pid}.new`;
  rmSync(next, { force: true });
  writeFileSync(next, `${JSON.stringify(access)}\n`, { mode: PRIVATE_FILE, flag: "wx" });
  renameSync(next, file);
}

export function removeHookAccess(data: string): void {
  rmSync(path.join(data, NAME), { force: true });
}

/** Undefined when no server with coding agents runs over this folder. */
export function readHookAccess(data: string): HookAccess | undefined {
  try {
    const access = JSON.parse(readFileSync(path.join(data, NAME), "utf8"));
    return typeof access?.url === "string" && typeof access.tokens === "object"
      ? access
      : undefined;
  } catch {
    return undefined;
  }
}
