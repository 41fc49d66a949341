import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { startChild } from "../child.ts";
import { followLines } from "../json-lines.ts";
import { type FenceLine, isEffect, type LedgerLine } from "./world.ts";

export interface World {
  readonly port: number;
  readonly ledgerFile: string;
  /** How often it died and was started again. */
  readonly deaths: () => number;
  readonly ledger: () => readonly LedgerLine[];
  stop(): Promise<void>;
}

/** Production stays up: when it dies it comes back at the same address, with everything it has written down. */
export async function startWorld(folder: string, cache: string, slowMs = 0): Promise<World> {
  const ledgerFile = path.join(folder, "ledger.jsonl");
  const lines = followLines<LedgerLine | FenceLine>(ledgerFile);
  let deaths = 0;
  let isOver = false;
  let running: ChildProcess;
  const start = async (port: number): Promise<number> => {
    const args = [ledgerFile, String(port), String(slowMs)];
    const child = startChild({ beside: import.meta.filename, name: "world-process", args, cache });
    running = child;
    child.stderr?.pipe(process.stderr);
    child.once("exit", () => {
      if (isOver) return;
      deaths += 1;
      void start(chosen);
    });
    if (child.stdout === null) throw new Error("the world has no way to tell its port");
    const [line] = await once(createInterface(child.stdout), "line");
    return Number(line);
  };
  let chosen = 0;
  chosen = await start(0);
  return {
    port: chosen,
    ledgerFile,
    deaths: () => deaths,
    ledger: () => lines.read().filter(isEffect),
    async stop() {
      isOver = true;
      const gone = once(running, "exit");
      running.stdin?.end();
      await gone;
    },
  };
}
