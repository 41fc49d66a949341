// Servers and workers that start at the same moment over a new store.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";

const ROUNDS = 400;
const THREADS = 3;

test("state folder: processes that start over a new store at the same moment all accept it", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-state-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // How many rounds have begun, and how often a thread was ready for one.
  const flag = new Int32Array(new SharedArrayBuffer(8));
  const start = path.join(import.meta.dirname, "state-child.ts");
  const threads = Array.from({ length: THREADS }, () => {
    const worker = new Worker(start, {
      workerData: { flag, folder, rounds: ROUNDS },
      execArgv: ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"],
    });
    return new Promise<readonly string[]>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
  });
  for (let round = 0; round < ROUNDS; round += 1) {
    const all = THREADS * (round + 1);
    for (let ready = Atomics.load(flag, 1); ready < all; ready = Atomics.load(flag, 1)) {
      const { async: isAsync, value } = Atomics.waitAsync(flag, 1, ready, 5_000);
      if (isAsync && (await value) === "timed-out") throw new Error("a thread does not answer");
    }
    Atomics.add(flag, 0, 1);
    Atomics.notify(flag, 0);
  }
  expect((await Promise.all(threads)).flat()).toEqual([]);
});
