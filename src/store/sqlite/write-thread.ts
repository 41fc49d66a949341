import { parentPort, workerData } from "node:worker_threads";
import { isSallyportError } from "../../model/errors.ts";
import { stopwatch } from "../../util/clock.ts";
import { invariant } from "../../util/error-text.ts";
import { systemRandom } from "../../util/random.ts";
import { ClockWatch, type Reading, systemSteadyTime } from "../clock-watch.ts";
import { openDatabase, WRITING_CACHE_KIB } from "./database.ts";
import type { Answer } from "./orders.ts";
import { type Packed, packAnswers, unpackOrders } from "./packing.ts";
import type { Shape } from "./shapes.ts";
import { Writer } from "./writer.ts";

/** What the thread is started with. */
export interface ThreadData {
  readonly file: string;
  readonly patienceMs: number;
  /** What the clock said when the thread was started; nothing when a test moves it. */
  readonly watched?: Reading;
}

/** One group to be written in one transaction. */
export interface ThreadRequest {
  readonly orders: Packed;
  /** Shapes that the thread has not met yet. */
  readonly shapes: readonly Shape[];
  /** The time, when it is not the database's own that decides. */
  readonly now: number | undefined;
  /** How many groups the main thread knows to have been handed back to it. */
  readonly handedBack: number;
}

/** Answers come in the order of the requests. Without `answers` nothing was written, unless `isUnknown`. */
export interface ThreadReply {
  readonly answers?: Packed;
  /** The group may have been written: its commit failed and could not be overwritten. */
  readonly isUnknown?: true;
  readonly tookMs: number;
}

/**
 * The other thread: it owns a connection of its own and writes what it is handed, so that SQL and the disk's flush do not
 * hold up the event loop. It decides nothing. When a group fails it says so, and the main thread, which can tell errors
 * apart, does the rest.
 */
function serve({ file, patienceMs, watched }: ThreadData): void {
  invariant(parentPort !== null, "this file is the body of a worker thread");
  const port = parentPort;
  const shapes: Shape[] = [];
  let handedBack = 0;
  const database = openDatabase(file, patienceMs, WRITING_CACHE_KIB);
  const clockWatch = watched && new ClockWatch(systemSteadyTime, watched);
  const writer = new Writer({ database, shapes, random: systemRandom, clockWatch });
  port.on("message", (request: ThreadRequest | "close") => {
    if (request === "close") {
      database.close();
      return port.close();
    }
    const start = stopwatch.now();
    shapes.push(...request.shapes);
    // Sent before the main thread knew of a group that it has to write first: this one is handed back too, to follow it.
    const reply: Omit<ThreadReply, "tookMs"> =
      request.handedBack < handedBack ? {} : attempt(request);
    if (reply.answers === undefined && !reply.isUnknown) handedBack += 1;
    port.postMessage({ ...reply, tookMs: stopwatch.now() - start });
  });
  port.postMessage("ready");

  /** A group that was not written is left to the main thread, which tries it again and tells errors apart. */
  function attempt({ orders, now }: ThreadRequest): Omit<ThreadReply, "tookMs"> {
    let answers: readonly Answer[];
    try {
      answers = writer.write(unpackOrders(orders), now);
    } catch (error) {
      return isSallyportError(error, "commit_unknown") ? { isUnknown: true } : {};
    }
    // Outside the try: what fails after the commit must not read as "nothing was written".
    return { answers: packAnswers(answers) };
  }
}

serve(workerData as ThreadData);
