import type { ClockWatch } from "../clock-watch.ts";
import type { Answer, Order } from "./orders.ts";
import type { Shape } from "./shapes.ts";
import { ThreadLink } from "./thread-link.ts";

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
