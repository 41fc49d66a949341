import { Worker } from "node:worker_threads";
import { SallyportError } from "../../model/errors.ts";
import type { ClockWatch } from "../clock-watch.ts";
import { UNCONFIRMED } from "./chains.ts";
import type { Answer, Order } from "./orders.ts";
import { packOrders, unpackAnswers } from "./packing.ts";
import type { Shape } from "./shapes.ts";
import type { ThreadData, ThreadReply, ThreadRequest } from "./write-thread.ts";

/**
 * Whether changes are written by a thread of their own: `when busy` for callers who come many at a time, `always` or
 * `never`. The thread is a help and never needed: where none can be started (a bundle without its file, a limit of the
 * system), the main thread writes everything.
 */
export type ThreadMode = "when busy" | "always" | "never";

export interface ThreadedWriterOptions {
  readonly file: string;
  readonly patienceMs: number;
  readonly mode: ThreadMode;
  readonly shapes: readonly Shape[];
  readonly clockWatch?: ClockWatch | undefined;
}

/** Smaller groups are done sooner without the hop between the threads, which takes about 20 µs. */
const BUSY_GROUP = 24;
/** So many changes in busy groups, before a thread is started: for a short burst it would come too late. */
const START_AFTER = 1_000;
/** While a group takes less than this, flushing twice costs less than answering one half while the other is written. */
const QUICK_MS = 3;

/** Decides which groups go to the write thread, and hands them over. */
export class ThreadedWriter {
  readonly #options: ThreadedWriterOptions;
  #link: ThreadLink | undefined;
  /** No thread can be started here, for example under Node's permission model. */
  #hasNone = false;
  #busyChanges = 0;
  #underWay = 0;

  constructor(options: ThreadedWriterOptions) {
    this.#options = options;
  }

  /** How many groups it takes at once: it writes one while the answers to the other are made use of. */
  get lanes(): number {
    return this.#link?.state === "ready" ? 2 : 1;
  }

  /** Whether so many waiting changes are better written as two groups. With a slow disk one flush for all is better. */
  isWorthSplitting(waiting: number): boolean {
    return this.lanes > 1 && waiting >= 2 * BUSY_GROUP && (this.#link?.tookMs ?? 0) < QUICK_MS;
  }

  /** Whether a group of so many changes is for the thread. Asked once per group: it also sees when a thread would pay. */
  wants(changes: number): boolean {
    const { mode } = this.#options;
    if (this.#hasNone) return false;
    if (mode !== "when busy") return mode === "always";
    // While the thread writes, everything goes through it, or the two would wait for each other's lock.
    if (changes < BUSY_GROUP) return this.#underWay > 0;
    this.#busyChanges += changes;
    if (this.#busyChanges < START_AFTER) return false;
    return this.#linked()?.state === "ready";
  }

  /** Undefined when nothing was written, for whatever reason: then the main thread is to write. Throws commit_unknown. */
  async write(
    orders: readonly Order[],
    now: () => number | undefined,
  ): Promise<readonly Answer[] | undefined> {
    const link = this.#linked();
    if (link === undefined) return undefined;
    this.#underWay += 1;
    try {
      if (link.state === "starting") await link.started;
      return await link.write(orders, this.#options.shapes, now());
    } finally {
      this.#underWay -= 1;
    }
  }

  #linked(): ThreadLink | undefined {
    const { file, patienceMs, clockWatch } = this.#options;
    try {
      const watched = clockWatch?.trusted;
      this.#link ??= new ThreadLink({ file, patienceMs, ...(watched && { watched }) });
    } catch {
      this.#hasNone = true;
    }
    return this.#link;
  }

  async close(): Promise<void> {
    await this.#link?.close();
  }
}

type Settle = (reply: ThreadReply | "lost") => void;

/** Beside this file, as source and as built. */
const BODY = new URL(
  import.meta.url.endsWith(".ts") ? "./write-thread.ts" : "./write-thread.js",
  import.meta.url,
);

/** The main thread's end of the line to the write thread. */
export class ThreadLink {
  readonly #worker: Worker;
  /** Those who wait for an answer, oldest first. */
  readonly #waiting: Settle[] = [];
  #sent = 0;
  /** How many groups the thread has handed back unwritten, as far as is known here. */
  #handedBack = 0;
  state: "starting" | "ready" | "ended" = "starting";
  /** Settles when it is ready or has ended. */
  readonly started: Promise<void>;
  /** How long the last group took. */
  tookMs = 0;

  constructor(data: ThreadData, body: URL = BODY) {
    this.#worker = new Worker(body, { workerData: data });
    // While nobody waits for it, it must not keep the process alive.
    this.#worker.unref();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.started = promise;
    this.#worker.on("message", (message: ThreadReply | "ready") => {
      if (message === "ready") {
        this.state = "ready";
        return resolve();
      }
      this.tookMs = message.tookMs;
      if (message.answers === undefined && !message.isUnknown) this.#handedBack += 1;
      const settle = this.#waiting.shift();
      if (this.#waiting.length === 0) this.#worker.unref();
      settle?.(message);
    });
    // An error is followed by the exit, which says all there is to say.
    this.#worker.on("error", () => {});
    this.#worker.once("exit", () => {
      this.state = "ended";
      resolve();
      for (const settle of this.#waiting.splice(0)) settle("lost");
    });
  }

  /**
   * Undefined when nothing was written, for whatever reason. Throws commit_unknown when the group may have been written: the
   * thread ended while it had it, or its commit failed on the way to the disk.
   */
  async write(
    orders: readonly Order[],
    shapes: readonly Shape[],
    now: number | undefined,
  ): Promise<readonly Answer[] | undefined> {
    if (this.state !== "ready") return undefined;
    const request: ThreadRequest = {
      orders: packOrders(orders),
      shapes: shapes.slice(this.#sent),
      now,
      handedBack: this.#handedBack,
    };
    this.#sent = shapes.length;
    const { promise, resolve } = Promise.withResolvers<ThreadReply | "lost">();
    this.#waiting.push(resolve);
    this.#worker.ref();
    this.#worker.postMessage(request);
    const reply = await promise;
    if (reply !== "lost" && !reply.isUnknown) return reply.answers && unpackAnswers(reply.answers);
    const hint = "Read the record again before you repeat anything.";
    throw new SallyportError("commit_unknown", {
      hint: reply === "lost" ? hint : UNCONFIRMED,
    });
  }

  async close(): Promise<void> {
    if (this.state === "ended") return;
    if (this.state === "starting") {
      await this.#worker.terminate();
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#worker.once("exit", () => resolve());
    this.#worker.ref();
    this.#worker.postMessage("close");
    await promise;
  }
}
