// The published programs of coding agents, in tools/hosts: hundreds of megabytes, so they are fetched for the proof and not for
// every test run.

import { existsSync } from "node:fs";
import path from "node:path";
import { install } from "../../scripts/install.mjs";
import { SCALE } from "./scale.ts";

const folder = path.join(import.meta.dirname, "../../tools/hosts");

/** Why tests of these programs are skipped; undefined when they run. */
export const noHosts: string | undefined =
  SCALE === "test" &&
  !existsSync(path.join(folder, "node_modules/@anthropic-ai/claude-agent-sdk/package.json"))
    ? "tools/hosts is not installed: run `npm ci --prefix tools/hosts`, or SCALE=proof"
    : undefined;

export function installHosts(): Promise<void> {
  return install(folder, "coding agents for the tests (once, ~25 s, 1.6 GB)", process.env);
}
