// Starts the world and the children of a crash test, and reads back what they wrote.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import type { ChildPlan, HistoryLine } from "./crash-child.ts";
import type { LedgerLine } from "./crash-world.ts";

const NODE = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
const CHILD = path.join(import.meta.dirname, "crash-child.ts");
const WORLD = path.join(import.meta.dirname, "crash-world.ts");

export interface World {
  readonly port: number;
  /** How often it died and was started again. */
  readonly deaths: () => number;
  readonly ledger: () => readonly LedgerLine[];
  stop(): Promise<void>;
}

/** Production stays up: when it dies it comes back at the same address, with everything it has written down. */
export async function startWorld(dir: string): Promise<World> {
  const file = path.join(dir, "ledger.jsonl");
  let deaths = 0;
  let isOver = false;
  let running: ChildProcess;
  const start = async (port: number): Promise<number> => {
    const child = spawn(process.execPath, [...NODE, WORLD, file, String(port)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    running = child;
    child.once("exit", () => {
      if (isOver) return;
      deaths += 1;
      void start(chosen);
    });
    const [line] = await once(createInterface(child.stdout), "line");
    return Number(line);
  };
  let chosen = 0;
  chosen = await start(0);
  return {
    port: chosen,
    deaths: () => deaths,
    ledger: () => linesOf<LedgerLine>(file),
    async stop() {
      isOver = true;
      const gone = once(running, "exit");
      running.stdin?.end();
      await gone;
    },
  };
}

/** Runs a child to its end. Answers whether it was killed; any other end than a clean one throws. */
export async function runChild(plan: ChildPlan, crashAt = ""): Promise<{ killed: boolean }> {
  const { CRASH_AT, ...env } = process.env;
  const child = spawn(process.execPath, [...NODE, CHILD, JSON.stringify(plan)], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...env,
      // Hundreds of children compile the same files.
      NODE_COMPILE_CACHE: path.join(path.dirname(plan.history), "../compile-cache"),
      ...(crashAt === "" ? {} : { CRASH_AT: crashAt }),
    },
  });
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += chunk));
  const [code, signal] = await once(child, "close");
  if (signal === "SIGKILL") return { killed: true };
  if (code === 0) return { killed: false };
  const who = plan.cases.map(({ id }) => id).join(" ");
  throw new Error(`${plan.mode} of ${who} ended with ${code ?? signal}: ${errors}`);
}

export function historyOf(file: string): readonly HistoryLine[] {
  return linesOf<HistoryLine>(file);
}

/** The last line of a killed process may be half a line: it was not synced, so nobody relies on it. */
function linesOf<Line>(file: string): readonly Line[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file, "utf8");
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** Runs `work` over all items, so many at a time. */
export async function inParallel<Item>(
  items: readonly Item[],
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: limit }, worker));
}
