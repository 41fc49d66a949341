import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { onTestFinished } from "vitest";
import type { WorkerPlan } from "./elsewhere-child.ts";

const CHILD = path.join(import.meta.dirname, "elsewhere-child.ts");
const FLAGS = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];

/** Another process with the tool, until the test ends. */
export async function startWorker(plan: WorkerPlan): Promise<ChildProcess> {
  const child = fork(CHILD, [JSON.stringify(plan)], { execArgv: FLAGS });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "message");
  return child;
}

/** What was executed: the number and when, epoch ms. */
export async function noted(ledger: string): Promise<ReadonlyMap<number, readonly number[]>> {
  const text = await readFile(ledger, "utf8").catch(() => "");
  const lines = text.split("\n").filter((line) => line !== "");
  const pairs = lines.map((line) => line.split(" ").map(Number) as [number, number]);
  return new Map(
    [...Map.groupBy(pairs, ([, n]) => n)].map(([n, list]) => [n, list.map(([at]) => at)]),
  );
}
