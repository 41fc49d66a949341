// `sallyport mcp` as a process, and decisions about its calls from elsewhere.

import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { createGate } from "sallyport";
import { sqliteStore } from "sallyport/store/sqlite";
import { onTestFinished } from "vitest";
import type { CliPlace } from "../cli/cli-process.ts";
import { type McpClient, mcpClient, TINY } from "./world.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** `sallyport mcp` as an MCP host starts it. */
export function startMcp(
  place: CliPlace,
  args: readonly string[],
): { client: McpClient; child: ChildProcess; ended: Promise<unknown> } {
  const bin = path.join(root, "src/cli/bin.ts");
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning", bin];
  const child = spawn(process.execPath, [...flags, "--data", place.data, "mcp", ...args], {
    cwd: place.folder,
    env: {
      ...process.env,
      SALLYPORT_STATE: place.state,
      LEDGER: path.join(place.folder, "ledger.txt"),
      WIRE_LOG: path.join(place.folder, "wire.log"),
      PIDS: path.join(place.folder, "pids.txt"),
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stderr.resume();
  const ended = new Promise((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.stdin.end();
    await ended;
  });
  return { client: mcpClient(child.stdin, child.stdout), child, ended };
}

/** Another process would decide; another gate over the same file is as far away. Returns how many were open. */
export async function decideAll(
  place: CliPlace,
  verdict: "approve" | "reject" = "approve",
): Promise<number> {
  const store = await sqliteStore({ file: path.join(place.data, "sallyport.db") });
  const gate = createGate({ store });
  const open = await gate.interactions.list();
  for (const { id, hash } of open) {
    if (verdict === "approve") await gate.interactions.approve(id, { hash, by: "person:ada" });
    else await gate.interactions.reject(id, { hash, by: "person:ada", reason: "not now" });
  }
  await gate.close();
  await store.close();
  return open.length;
}

export const tinyServer = `tiny=${process.execPath} ${TINY}`;
