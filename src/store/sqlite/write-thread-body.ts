import { parentPort, workerData } from "node:worker_threads";
import { isSallyportError } from "../../model/errors.ts";
import { stopwatch } from "../../util/clock.ts";
import { invariant } from "../../util/error-text.ts";
import { systemRandom } from "../../util/random.ts";
import { ClockWatch, type Reading, systemSteadyTime } from "../turn.ts";
import { openDatabase, WRITING_CACHE_KIB } from "./database.ts";
import type { WriteOrder } from "./orders.ts";
import { type Packed, type PackedOrders, packAnswers, Unpacker } from "./packing.ts";
import { Writer } from "./writer.ts";

// What runs in the write thread. A file of its own: in a bundle the main thread's file is the whole application, and a worker
// must not start that a second time.

/** What the thread is started with. */
export interface ThreadData {
  readonly file: string;
  readonly patienceMs: number;
  /** What the clock said when the thread was started; undefined when a test moves the clock. */
  readonly watched?: Reading | undefined;
}

/** One group to be written in one transaction. */
export interface ThreadRequest {
  readonly orders: PackedOrders;
  /** The time, when a test moves the clock; otherwise the database's own decides. */
  readonly now: number | undefined;
  /** How many groups the main thread knows to have been returned to it. */
  readonly returned: number;
}

/** Replies come in the order of the requests. Without `answers` nothing was written, unless `isUnknown`. */
export interface ThreadReply {
  readonly answers?: Packed;
  /** The group may have been written: its commit failed and could not be overwritten. */
  readonly isUnknown?: true;
  readonly tookMs: number;
}

/** Writes on a connection of its own. It decides nothing: a group that fails is returned to the main thread. */
function serve({ file, patienceMs, watched }: ThreadData): void {
  invariant(parentPort !== null, "this file is the body of a worker thread");
  const port = parentPort;
  let returned = 0;
  const database = openDatabase(file, patienceMs, WRITING_CACHE_KIB);
  const clockWatch = watched && new ClockWatch(systemSteadyTime, watched);
  const writer = new Writer({ database, random: systemRandom, clockWatch });
  const unpacker = new Unpacker();
  port.on("message", (request: ThreadRequest | "close") => {
    if (request === "close") {
      database.close();
      return port.close();
    }
    const start = stopwatch.now();
    const orders = unpacker.unpack(request.orders);
    // Sent before the main thread knew of a group that it has to write first: this one must follow it, so it is returned too.
    const reply = request.returned < returned ? {} : attempt(orders, request.now);
    if (reply.answers === undefined && !reply.isUnknown) returned += 1;
    port.postMessage({ ...reply, tookMs: stopwatch.now() - start });
  });
  port.postMessage("ready");

  /** A group that was not written is left to the main thread, which tries it again and classifies the error. */
  function attempt(
    orders: readonly WriteOrder[],
    now: number | undefined,
  ): Omit<ThreadReply, "tookMs"> {
    try {
      return { answers: packAnswers(orders, writer.write(orders, now)) };
    } catch (error) {
      return isSallyportError(error, "commit_unknown") ? { isUnknown: true } : {};
    }
  }
}

serve(workerData as ThreadData);
