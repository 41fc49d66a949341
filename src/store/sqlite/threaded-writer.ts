import { Worker } from "node:worker_threads";
import { SallyportError } from "../../model/errors.ts";
import type { Answer, Order } from "./orders.ts";
import type { Shape } from "./shapes.ts";
import type { ThreadData, ThreadReply, ThreadRequest } from "./write-thread.ts";

type Settle = (reply: ThreadReply | "lost") => void;

/**
 * The main thread's end of the write thread. It is a help and never needed: where no thread can be started (a bundle
 * without its file, a limit of the system), everything is written by the main thread.
 */
export class ThreadedWriter {
  readonly #worker: Worker;
  /** Those who wait for an answer, oldest first. */
  readonly #waiting: Settle[] = [];
  readonly #ready: Promise<boolean>;
  #underWay = 0;
  #sent = 0;
  #hasEnded = false;
  /** How long the last group took. */
  tookMs = 0;

  constructor(data: ThreadData) {
    const file = import.meta.url.endsWith(".ts") ? "./write-thread.ts" : "./write-thread.js";
    this.#worker = new Worker(new URL(file, import.meta.url), { workerData: data });
    // While nobody waits for it, it must not keep the process alive.
    this.#worker.unref();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#ready = promise;
    this.#worker.on("message", (message: ThreadReply | "ready") => {
      if (message === "ready") return resolve(true);
      const settle = this.#waiting.shift();
      if (this.#waiting.length === 0) this.#worker.unref();
      this.tookMs = message.tookMs;
      settle?.(message);
    });
    // An error is followed by the exit, which says all there is to say.
    this.#worker.on("error", () => {});
    this.#worker.once("exit", () => {
      this.#hasEnded = true;
      resolve(false);
      for (const settle of this.#waiting.splice(0)) settle("lost");
    });
  }

  /** How many groups it has not answered, those that wait for its start included. */
  get underWay(): number {
    return this.#underWay;
  }

  /**
   * Undefined when nothing was written, for whatever reason. Throws commit_unknown when the thread ended while it had the
   * group: it may have been written.
   */
  async write(
    orders: readonly Order[],
    shapes: readonly Shape[],
    now: () => number | undefined,
  ): Promise<readonly Answer[] | undefined> {
    this.#underWay += 1;
    try {
      if (!(await this.#ready) || this.#hasEnded) return undefined;
      return await this.#ask(orders, shapes, now());
    } finally {
      this.#underWay -= 1;
    }
  }

  async #ask(
    orders: readonly Order[],
    shapes: readonly Shape[],
    now: number | undefined,
  ): Promise<readonly Answer[] | undefined> {
    const request: ThreadRequest = { orders, shapes: shapes.slice(this.#sent), now };
    this.#sent = shapes.length;
    const { promise, resolve } = Promise.withResolvers<ThreadReply | "lost">();
    this.#waiting.push(resolve);
    this.#worker.ref();
    this.#worker.postMessage(request);
    const reply = await promise;
    if (reply !== "lost") return reply.answers;
    const hint = "Read the record again before you repeat anything.";
    throw new SallyportError("commit_unknown", { hint });
  }

  async close(): Promise<void> {
    if (!(await this.#ready) || this.#hasEnded) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#worker.once("exit", () => resolve());
    this.#worker.ref();
    this.#worker.postMessage("close");
    await promise;
  }
}
