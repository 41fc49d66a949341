// One of several "processes" that start over the same new store: prepares its state whenever the round begins.

import path from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { prepareState } from "../../src/cli/state-folder.ts";

const { flag, folder, rounds } = workerData as {
  readonly flag: Int32Array;
  readonly folder: string;
  readonly rounds: number;
};
const failures: string[] = [];
for (let round = 0; round < rounds; round += 1) {
  Atomics.add(flag, 1, 1);
  Atomics.notify(flag, 1);
  while (Atomics.load(flag, 0) <= round) Atomics.wait(flag, 0, round, 1_000);
  const place = { data: path.join(folder, `data-${round}`), state: path.join(folder, "state") };
  try {
    prepareState(place);
  } catch (error) {
    failures.push(String(error));
  }
}
parentPort?.postMessage(failures);
