import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import type { LedgerLine } from "./production.ts";

export const NODE = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];

export interface Production {
  readonly port: number;
  ledger(): readonly LedgerLine[];
  stop(): Promise<void>;
}

/** Starts production with its ledger in `folder`. */
export async function startProduction(folder: string, workMs = 0): Promise<Production> {
  const file = path.join(folder, "ledger.jsonl");
  const program = path.join(import.meta.dirname, "production.ts");
  const child = spawn(process.execPath, [...NODE, program, file, String(workMs)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [line] = await once(createInterface(child.stdout), "line");
  return {
    port: Number(line),
    ledger() {
      if (!existsSync(file)) return [];
      const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
      return lines.map((one) => JSON.parse(one));
    },
    async stop() {
      const gone = once(child, "exit");
      child.stdin.end();
      await gone;
    },
  };
}
