import { Worker } from "node:worker_threads";
import { SallyportError } from "../../model/errors.ts";
import type { Answer, WriteOrder } from "./orders.ts";
import { Packer, unpackAnswers } from "./packing.ts";
import type { ThreadData, ThreadReply, ThreadRequest } from "./write-thread-body.ts";
import { UNCONFIRMED } from "./writer.ts";

type Settle = (reply: ThreadReply | "lost") => void;

/** The file beside this one, as source and as built. */
const BODY = new URL(
  import.meta.url.endsWith(".ts") ? "./write-thread-body.ts" : "./write-thread-body.js",
  import.meta.url,
);

/**
 * Undefined where no thread can be started: under Node's permission model, for example, or at a limit of the system. A thread
 * whose file is missing, as in a bundle, starts and ends.
 */
export function startWriteThread(data: ThreadData): WriteThread | undefined {
  try {
    return new WriteThread(data);
  } catch {
    return undefined;
  }
}

/**
 * Executes orders on a thread of its own, so that SQL, the flush and checkpoints do not hold up the event loop, and the main
 * thread prepares one group while the other is written. It is an optimisation: everything it cannot write is returned to the
 * main thread.
 *
 * What it buys: with two free cores 1.4 to 1.6 times the cycles of 64 callers. It costs a fifth to a third more processor
 * time, so with no free core it buys nothing. See docs/decisions/2026-11-18-plain-engines.md.
 */
export class WriteThread {
  readonly #worker: Worker;
  readonly #packer = new Packer();
  /** Callers that wait for a reply, oldest first. */
  readonly #waiting: Settle[] = [];
  /** How many groups the thread has returned unwritten, as far as is known here. */
  #returned = 0;
  state: "starting" | "ready" | "ended" = "starting";
  /** Settles when the thread is ready or has ended. */
  readonly started: Promise<void>;
  /** How long the last group took. */
  tookMs = 0;

  constructor(data: ThreadData, body: URL = BODY) {
    this.#worker = new Worker(body, { workerData: data });
    // An idle thread must not keep the process alive.
    this.#worker.unref();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.started = promise;
    this.#worker.on("message", (message: ThreadReply | "ready") => {
      if (message === "ready") {
        this.state = "ready";
        return resolve();
      }
      this.tookMs = message.tookMs;
      if (message.answers === undefined && !message.isUnknown) this.#returned += 1;
      const settle = this.#waiting.shift();
      if (this.#waiting.length === 0) this.#worker.unref();
      settle?.(message);
    });
    // An error is followed by the exit, which is handled below.
    this.#worker.on("error", () => {});
    this.#worker.once("exit", () => {
      this.state = "ended";
      resolve();
      for (const settle of this.#waiting.splice(0)) settle("lost");
    });
  }

  get isWriting(): boolean {
    return this.#waiting.length > 0;
  }

  /**
   * Undefined when nothing was written, for whatever reason: then the main thread has to write. Throws commit_unknown when
   * the group may have been written: the thread ended while it had it, or its commit failed on the way to the disk.
   */
  async write(
    orders: readonly WriteOrder[],
    now: () => number | undefined,
  ): Promise<readonly Answer[] | undefined> {
    if (this.state === "starting") await this.started;
    if (this.state === "ended") return undefined;
    const packed = this.#packer.pack(orders);
    const request: ThreadRequest = { orders: packed, now: now(), returned: this.#returned };
    const { promise, resolve } = Promise.withResolvers<ThreadReply | "lost">();
    this.#waiting.push(resolve);
    this.#worker.ref();
    this.#worker.postMessage(request);
    const reply = await promise;
    if (reply !== "lost" && !reply.isUnknown) {
      return reply.answers && unpackAnswers(orders, reply.answers);
    }
    const hint = "Read the record again before you repeat anything.";
    throw new SallyportError("commit_unknown", { hint: reply === "lost" ? hint : UNCONFIRMED });
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
