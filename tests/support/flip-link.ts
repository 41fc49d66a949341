// A thread that keeps turning one link to and fro, as an agent's own process could while its calls run.

import { renameSync, symlinkSync } from "node:fs";
import { parentPort, Worker, workerData } from "node:worker_threads";

interface Flip {
  readonly link: string;
  readonly targets: readonly string[];
}

/** Turns the link between its targets until it is stopped. */
export function flipLink(flip: Flip): { stop(): Promise<void> } {
  const worker = new Worker(new URL(import.meta.url), { workerData: { flip } });
  return {
    async stop() {
      worker.postMessage("stop");
      await new Promise((resolve) => worker.once("exit", resolve));
    },
  };
}

/** In one step: a reader finds one link or the other. */
export function pointLink(link: string, target: string): void {
  symlinkSync(target, `${link}.next`);
  renameSync(`${link}.next`, link);
}

const given = (workerData as { flip?: Flip } | null)?.flip;
if (given !== undefined && parentPort !== null) {
  let turn = 0;
  const timer = setInterval(() => {
    turn += 1;
    pointLink(given.link, given.targets[turn % given.targets.length] ?? "");
  }, 1);
  parentPort.once("message", () => clearInterval(timer));
}
