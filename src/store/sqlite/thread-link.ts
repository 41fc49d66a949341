import { Worker } from "node:worker_threads";
import { SallyportError } from "../../model/errors.ts";
import type { Answer, Order } from "./orders.ts";
import { packOrders, unpackAnswers } from "./packing.ts";
import type { Shape } from "./shapes.ts";
import type { ThreadData, ThreadReply, ThreadRequest } from "./write-thread.ts";

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
    };
    this.#sent = shapes.length;
    const { promise, resolve } = Promise.withResolvers<ThreadReply | "lost">();
    this.#waiting.push(resolve);
    this.#worker.ref();
    this.#worker.postMessage(request);
    const reply = await promise;
    if (reply !== "lost" && !reply.isUnknown) return reply.answers && unpackAnswers(reply.answers);
    const hint = "Read the record again before you repeat anything.";
    throw new SallyportError("commit_unknown", { hint });
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
