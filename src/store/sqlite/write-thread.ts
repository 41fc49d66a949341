import { parentPort, workerData } from "node:worker_threads";
import { stopwatch } from "../../util/clock.ts";
import { invariant } from "../../util/invariant.ts";
import { systemRandom } from "../../util/random.ts";
import { openDatabase, WRITING_CACHE_KIB } from "./database.ts";
import type { Answer } from "./orders.ts";
import { type Packed, packAnswers, unpackOrders } from "./packing.ts";
import type { Shape } from "./shapes.ts";
import { Writer } from "./writer.ts";

/** What the thread is started with. */
export interface ThreadData {
  readonly file: string;
  readonly patienceMs: number;
}

/** One group to be written in one transaction. */
export interface ThreadRequest {
  readonly orders: Packed;
  /** Shapes that the thread has not met yet. */
  readonly shapes: readonly Shape[];
  /** The time, when it is not the database's own that decides. */
  readonly now: number | undefined;
}

/** Answers come in the order of the requests. Without `answers` nothing was written. */
export interface ThreadReply {
  readonly answers?: Packed;
  readonly tookMs: number;
}

/**
 * The other thread: it owns a connection of its own and writes what it is handed, so that SQL and the disk's flush do not
 * hold up the event loop. It decides nothing. When a group fails it says so, and the main thread, which can tell errors
 * apart, does the rest.
 */
function serve({ file, patienceMs }: ThreadData): void {
  invariant(parentPort !== null, "this file is the body of a worker thread");
  const port = parentPort;
  const shapes: Shape[] = [];
  const database = openDatabase(file, patienceMs, WRITING_CACHE_KIB);
  const writer = new Writer({ database, shapes, random: systemRandom });
  port.on("message", (request: ThreadRequest | "close") => {
    if (request === "close") {
      database.close();
      return port.close();
    }
    const start = stopwatch.now();
    shapes.push(...request.shapes);
    const answers = attempt(request);
    const tookMs = stopwatch.now() - start;
    port.postMessage(
      answers === undefined ? { tookMs } : { answers: packAnswers(answers), tookMs },
    );
  });
  port.postMessage("ready");

  /** Only what happens before the commit may end here: whatever it was, it was rolled back, and the main thread sees for itself. */
  function attempt({ orders, now }: ThreadRequest): readonly Answer[] | undefined {
    try {
      return writer.write(unpackOrders(orders), now);
    } catch {
      return undefined;
    }
  }
}

serve(workerData as ThreadData);
