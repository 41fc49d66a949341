import { isQuick } from "../checkout.ts";
import type { Memory } from "./peer.ts";
import { newPlace } from "./places.ts";
import { startWorker } from "./worker.ts";

/** Until so many are pending, or the time is over: some systems would take minutes. */
const MOST = isQuick ? 200 : 10_000;
const MOST_MS = 9_000;
const STEP = isQuick ? 100 : 500;

export interface Pending {
  readonly system: string;
  readonly pending: number;
  readonly heapBytesEach: number;
  readonly rssBytesEach: number;
}

/** What a call that waits for a person costs the process that asked for it, after garbage collection. */
export async function measurePending(
  system: string,
  dir: string,
  server: string,
): Promise<Pending> {
  const place = await newPlace(dir, server, `pending-${system}`);
  const worker = await startWorker(system, place, { tool: "count" });
  // The first ones warm up: code, caches and connections are not per item.
  const before = await worker.order<Memory>({ do: "pend", count: STEP });
  const end = performance.now() + MOST_MS;
  let pending = 0;
  let after = before;
  while (pending < MOST && performance.now() < end) {
    after = await worker.order<Memory>({ do: "pend", count: STEP });
    pending += STEP;
  }
  // Killed: thousands of open workflows have nothing to say at a shutdown.
  await worker.kill();
  return {
    system,
    pending,
    heapBytesEach: (after.heap - before.heap) / pending,
    rssBytesEach: (after.rss - before.rss) / pending,
  };
}
