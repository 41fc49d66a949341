// Several calls of one message: which run side by side and which alone, and how they are canceled.

import type { CallAnswer, CallRequest } from "../model/operation.ts";
import type { Progress } from "../tools/tool.ts";
import { errorText, invariant } from "../util/error-text.ts";
import { systemTimers, type Timers } from "../util/timers.ts";

export interface OrchestrateOptions {
  /** Callback: one call from gate to answer. What it throws becomes a failed answer of this call alone. */
  run(call: CallRequest, hooks: CallHooks): Promise<CallAnswer>;
  /** Callback, asked just before a call could start. Anything but true, also a throw, means that it runs alone. */
  isConcurrencySafe(tool: string): boolean;
  /** Zero or less: 10. */
  readonly maxAtOnce?: number;
  /** Reaches running calls, and keeps the others from starting. */
  readonly signal?: AbortSignal;
  /** Push: while a call runs. What it throws is dropped, since news about a call must not change the call. */
  onProgress?(callId: string, report: Progress): void;
  /** How long a cancelled call may take to say how far it came. 10 seconds unless told. */
  readonly graceMs?: number;
  readonly timers?: Timers;
}

export interface CallHooks {
  /** Of this call alone. */
  readonly signal: AbortSignal;
  progress(report: Progress): void;
}

export interface CallResult {
  readonly callId: string;
  readonly tool: string;
  /** Place in the batch, from 0. Tells calls apart when a model uses one id twice. */
  readonly index: number;
  readonly answer: CallAnswer;
}

/**
 * Runs a batch of calls and gives one result for each, as they finish. Neighbouring safe calls run together; any other
 * waits for everything before it and holds up everything after it, so that order around writes is kept. Shape: pulled.
 * It starts when first read and can be read once. A slow reader holds up nothing; one that leaves early aborts what is
 * running and does not wait for it.
 *
 *     for await (const { callId, answer } of orchestrate(calls, options)) console.log(callId, answer.text);
 */
export function orchestrate(
  calls: readonly CallRequest[],
  options: OrchestrateOptions,
): AsyncIterableIterator<CallResult> {
  // A copy: the caller may go on with its list, and each place in it gets one result.
  const batch = new Batch([...calls], options);
  return orchestrateQueue({
    begin: (outlet) => batch.begin(outlet),
    abandon: () => batch.abandon(),
  });
}

const DEFAULT_AT_ONCE = 10;
const DEFAULT_GRACE_MS = 10_000;

interface Running {
  readonly index: number;
  readonly call: CallRequest;
  readonly isSafe: boolean;
  readonly stop: AbortController;
}

class Batch {
  readonly #calls: readonly CallRequest[];
  readonly #options: OrchestrateOptions;
  readonly #atOnce: number;
  readonly #running = new Set<Running>();
  readonly #settled = new AbortController();
  readonly #onAbort = () => this.#cancel();
  #outlet: Outlet<CallResult> | undefined;
  /** The first call that has not been started. */
  #next = 0;

  constructor(calls: readonly CallRequest[], options: OrchestrateOptions) {
    invariant(
      calls.every((call) => call),
      "a batch has a place without a call",
    );
    const { maxAtOnce = 0 } = options;
    this.#calls = calls;
    this.#options = options;
    this.#atOnce = maxAtOnce > 0 ? Math.max(1, Math.floor(maxAtOnce)) : DEFAULT_AT_ONCE;
  }

  begin(outlet: Outlet<CallResult>): void {
    this.#outlet = outlet;
    this.#options.signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#goOn();
  }

  abandon(): void {
    this.#next = this.#calls.length;
    const left = [...this.#running];
    this.#running.clear();
    this.#close();
    for (const { stop } of left) stop.abort(new Error("The results are no longer read."));
  }

  /** Any callback may cancel or abandon the batch while it is asked, so that everything is looked at again after it. */
  #goOn(): void {
    for (let call = this.#calls[this.#next]; call; call = this.#calls[this.#next]) {
      const index = this.#next;
      if (this.#options.signal?.aborted) {
        this.#next += 1;
        this.#deliver(index, call, notStarted(this.#options.signal.reason));
        continue;
      }
      const isSafe = this.#isSafe(call);
      if (this.#next !== index) continue;
      if (!this.#hasRoomFor(isSafe)) return;
      this.#next += 1;
      this.#start({ index, call, isSafe, stop: new AbortController() });
    }
    if (this.#running.size === 0) this.#close();
  }

  #isSafe({ tool }: CallRequest): boolean {
    try {
      return this.#options.isConcurrencySafe(tool) === true;
    } catch {
      return false;
    }
  }

  #hasRoomFor(isSafe: boolean): boolean {
    if (this.#running.size === 0) return true;
    if (!isSafe || this.#running.size >= this.#atOnce) return false;
    return this.#running.values().every((other) => other.isSafe);
  }

  #start(running: Running): void {
    this.#running.add(running);
    const hooks: CallHooks = {
      signal: running.stop.signal,
      progress: (report) => void this.#report(running, report),
    };
    void answerOf(this.#options, running.call, hooks).then((answer) =>
      this.#settle(running, answer),
    );
  }

  /** Async, so that a listener that rejects is as harmless as one that throws. What has answered reports no more. */
  async #report(running: Running, report: Progress): Promise<void> {
    if (!this.#running.has(running)) return;
    try {
      await this.#options.onProgress?.(running.call.callId, report);
    } catch {
      // The listener's own trouble: neither the call nor its neighbours can do anything about it.
    }
  }

  /** The first answer counts. What comes after it, or after the reader has left, is dropped. */
  #settle(running: Running, answer: CallAnswer): void {
    if (!this.#running.delete(running)) return;
    this.#deliver(running.index, running.call, answer);
    this.#goOn();
  }

  #deliver(index: number, { callId, tool }: CallRequest, answer: CallAnswer): void {
    this.#outlet?.push({ callId, tool, index, answer });
  }

  /** Only a running call knows how far it came, so it is asked to stop and given some time to say so. */
  #cancel(): void {
    const { signal, graceMs = DEFAULT_GRACE_MS, timers = systemTimers } = this.#options;
    for (const { stop } of [...this.#running]) stop.abort(signal?.reason);
    this.#goOn();
    if (this.#running.size === 0) return;
    const giveUp = () => {
      for (const running of [...this.#running]) this.#settle(running, ignoredCancellation(graceMs));
    };
    // It rejects when all have answered, and then nothing is left to give up.
    timers.sleep(graceMs, this.#settled.signal).then(giveUp, giveUp);
  }

  #close(): void {
    this.#settled.abort();
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#outlet?.end();
  }
}

type Failed = Extract<CallAnswer, { answer: "failed" }>;

/** Runs one call and gives its answer, or one in its place. Never rejects, whatever `run` throws or gives. */
async function answerOf(
  options: Pick<OrchestrateOptions, "run">,
  call: CallRequest,
  hooks: CallHooks,
): Promise<CallAnswer> {
  try {
    const answer: unknown = await options.run(call, hooks);
    if (isCallAnswer(answer)) return answer;
    return failed("The call ended with something that is no answer.", MAY_HAVE_HAPPENED);
  } catch (error) {
    const what = hooks.signal.aborted
      ? "The call was cancelled while it ran"
      : "The call broke off without an answer";
    return failed(`${what} (${errorText(error)}).`, MAY_HAVE_HAPPENED);
  }
}

function notStarted(reason: unknown): Failed {
  return failed(
    `Not started: the calls were cancelled before this one's turn came (${errorText(reason)}).`,
    "Nothing was executed. Ask for it again if it is still wanted.",
  );
}

function ignoredCancellation(graceMs: number): Failed {
  return failed(
    `The call was cancelled while it ran and gave no answer within ${graceMs} ms.`,
    MAY_HAVE_HAPPENED,
  );
}

/**
 * These stay `failed` although `unknown` would say it better: an unknown outcome carries the operation that a probe or a
 * person settles, and a `run` that breaks its contract has not reported an operation.
 */
const MAY_HAVE_HAPPENED = "It may have taken effect all the same: look before asking again.";

function failed(what: string, advice: string): Failed {
  return { answer: "failed", text: `${what} ${advice}` };
}

const KINDS: Readonly<Record<CallAnswer["answer"], true>> = {
  done: true,
  pending: true,
  denied: true,
  failed: true,
  unknown: true,
};

/** As much as a reader needs to tell what became of the call; the types vouch for the rest. */
function isCallAnswer(value: unknown): value is CallAnswer {
  if (typeof value !== "object" || value === null) return false;
  const { answer, text } = value as Partial<CallAnswer>;
  return typeof answer === "string" && Object.hasOwn(KINDS, answer) && typeof text === "string";
}

/** The writing end. Pushing never waits: results that were not requested yet are kept. */
export interface Outlet<Item> {
  push(item: Item): void;
  /** No more will come. What is kept can still be read. */
  end(): void;
}

export interface Source<Item> {
  /** Called once, at the first request. */
  begin(outlet: Outlet<Item>): void;
  /** The reader went away before the end; nothing that comes now is kept. */
  abandon(): void;
}

const DONE = { done: true, value: undefined } as const;

/**
 * Results as they come, read once. An async generator would be shorter, but its `return` waits for a pending `next`: a
 * reader that gives up while it waits, as a destroyed stream does, could not stop what it waits for.
 */
export function orchestrateQueue<Item>(source: Source<Item>): AsyncIterableIterator<Item> {
  const kept: Item[] = [];
  const readers: ((result: IteratorResult<Item, undefined>) => void)[] = [];
  let state: "fresh" | "open" | "ended" = "fresh";

  function push(value: Item): void {
    if (state === "ended") return;
    const reader = readers.shift();
    if (reader === undefined) kept.push(value);
    else reader({ done: false, value });
  }

  function end(): void {
    state = "ended";
    for (const reader of readers.splice(0)) reader(DONE);
  }

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      if (state === "fresh") {
        state = "open";
        source.begin({ push, end });
      }
      if (kept.length > 0) return { done: false, value: kept.shift() as Item };
      if (state === "ended") return DONE;
      return new Promise((resolve) => readers.push(resolve));
    },
    async return() {
      const wasOpen = state === "open";
      kept.length = 0;
      end();
      if (wasOpen) source.abandon();
      return DONE;
    },
  };
}
