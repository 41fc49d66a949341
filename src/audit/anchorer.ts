import type { KeyObject } from "node:crypto";
import type { ChainHead } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import type { AuditReader, Store } from "../store/store.ts";
import { type Clock, systemClock, toIso } from "../util/clock.ts";
import { type Random, systemRandom } from "../util/random.ts";
import { systemTimers, type Timers, withDeadline } from "../util/timers.ts";
import { type Anchor, type AnchorSink, signAnchor } from "./anchor.ts";
import {
  AnchorBook,
  type AnchorLimits,
  type AnchorProblem,
  type AnchorProblemCode,
  AnchorProblems,
} from "./anchor-book.ts";
import { type AnchorSigner, publicKeys } from "./signing-key.ts";

export interface AnchorerOptions {
  readonly store: Pick<Store, "heads" | "tenant" | "onCommit">;
  readonly signer: AnchorSigner;
  readonly sink: AnchorSink;
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly random?: Random;
  /** A tenant is anchored when it has this many new entries, */
  readonly everyEntries?: number;
  /** or when the oldest of them has this age. */
  readonly everyMs?: number;
  /** Keys of older anchors in the sink or of other processes; the signer's own key is known. */
  readonly publicKeys?: readonly (string | KeyObject)[];
  /** Shape: push. Errors it throws are dropped: a listener cannot stop the anchoring. */
  readonly onProblem?: (problem: AnchorProblem) => void;
}

interface AnchorerStatus {
  /** Anchors written by this anchorer. */
  readonly written: number;
  /** The entries without an anchor at the last check, and their age at most. */
  readonly blindWindow: { readonly entries: number; readonly sinceMs: number };
  /** The current problems; empty when there are none. */
  readonly problems: readonly AnchorProblem[];
}

export interface Anchorer extends AsyncDisposable {
  /** Anchors everything now. Rejects when store, signer or sink fail, after calling `onProblem`. */
  flush(): Promise<void>;
  status(): AnchorerStatus;
  /** Stops after one attempt to anchor the rest, within `everyMs`. Does not reject. */
  close(): Promise<void>;
}

/** Every commit sends a hint; a short delay turns a burst of them into one check. */
const SETTLE_MS = 50;
const FIRST_RETRY_MS = 1_000;

/**
 * Follows a store and anchors the end of each chain, every 64 entries or every 10 s, whichever comes first; at the
 * start, everything without an anchor. Before signing it checks that the chain still contains what it signed last: a
 * rewritten chain gets no new anchor. Failures are reported, shown in `status` and retried; they never stop it. Throws
 * invalid_input when the signer's key id does not belong to its public key.
 */
export function createAnchorer(options: AnchorerOptions): Anchorer {
  const { store, clock = systemClock, timers = systemTimers, random = systemRandom } = options;
  const { everyEntries = 64, everyMs = 10_000 } = options;
  const keys = publicKeys([options.signer.publicKey, ...(options.publicKeys ?? [])]);
  if (!keys.has(options.signer.keyId)) {
    const hint = "Give a signer whose keyId belongs to its publicKey.";
    throw new SallyportError("invalid_input", { what: "signer", hint });
  }
  const book = new AnchorBook(Buffer.from(random.bytes(8)).toString("hex"), keys);
  const problems = new AnchorProblems(options.onProblem);
  const limits = { everyEntries, everyMs };
  const round = new AnchorRound({ ...options, clock, timers, limits, book, problems });

  let isClosed = false;
  let isHinted = false;
  let failures = 0;
  let wake = () => {};
  const stopListening = store.onCommit(() => {
    // During failures hints must not shorten the delay: a busy store would cause a retry storm.
    if (failures > 0 || isHinted) return;
    isHinted = true;
    wake();
  });

  let last: Promise<void> = Promise.resolve();
  let nextFlush: Promise<void> | undefined;
  /** One round at a time, in the order of the requests. */
  function queue(mode: "what is due" | "everything"): Promise<void> {
    const result = last.then(async () => {
      if (mode === "everything") nextFlush = undefined;
      try {
        await round.run(mode);
        failures = 0;
      } catch (error) {
        failures += 1;
        throw error;
      }
    });
    last = result.catch(() => {});
    return result;
  }

  /** Does not keep the process alive. */
  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = timers.after(ms, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
  }

  function waitMs(): number {
    if (failures > 0) return Math.min(everyMs, FIRST_RETRY_MS * 2 ** (failures - 1));
    // Hints may be lost, so it also polls often enough to keep its interval.
    const { since } = book.waiting;
    const untilDue = since === undefined ? 0 : since + everyMs - clock.now();
    return untilDue > 0 ? Math.min(untilDue, everyMs / 4) : everyMs / 4;
  }

  async function follow(): Promise<void> {
    while (!isClosed) {
      isHinted = false;
      await queue("what is due").catch(() => {});
      if (!isHinted && !isClosed) await pause(waitMs());
      if (isHinted && !isClosed) await pause(SETTLE_MS);
    }
  }
  const following = follow();

  function flush(): Promise<void> {
    nextFlush ??= queue("everything");
    return nextFlush;
  }

  let closing: Promise<void> | undefined;
  function close(): Promise<void> {
    isClosed = true;
    stopListening();
    wake();
    // Errors have been reported; the closing caller has nothing left to do.
    closing ??= withDeadline(() => following.then(flush), everyMs, timers).catch(() => {});
    return closing;
  }

  return {
    flush,
    status() {
      const { entries, since } = book.waiting;
      const sinceMs = since === undefined ? 0 : Math.max(0, clock.now() - since);
      return {
        written: book.written,
        blindWindow: { entries, sinceMs },
        problems: problems.current,
      };
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface RoundParts {
  readonly store: Pick<Store, "heads" | "tenant">;
  readonly signer: AnchorSigner;
  readonly sink: AnchorSink;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly limits: AnchorLimits;
  readonly book: AnchorBook;
  readonly problems: AnchorProblems;
}

const TRAIL_CODES = ["trail_cut", "trail_rewritten", "head_mismatch", "tenant_missing"] as const;

/** Checks all tenants once and anchors those that are due. The caller runs one round at a time. */
class AnchorRound {
  readonly #parts: RoundParts;
  /** Signed and sent to the sink but not confirmed: it may be there or not, so it is sent again unchanged. */
  #unconfirmed: Anchor | undefined;
  #hasReadSink = false;

  constructor(parts: RoundParts) {
    this.#parts = parts;
  }

  /** Rejects, after reporting it, when store, signer or sink fail. A damaged trail is only reported. */
  async run(mode: "what is due" | "everything"): Promise<void> {
    const { store, clock, book, problems, limits } = this.#parts;
    await this.#attempt("sink_failed", () => this.#readSink());
    if (this.#unconfirmed !== undefined) await this.#append(this.#unconfirmed);
    // Heads after anchors: in the other order an anchor of another process would seem ahead of the chain.
    const heads = await this.#attempt("store_failed", () => store.heads());
    for (const tenant of book.missing(heads)) problems.add("tenant_missing", { tenant });
    for (const head of heads) this.#compare(head);
    const everything = { everyEntries: 1, everyMs: 0 };
    const due = book.look(heads, clock.now(), mode === "everything" ? everything : limits);
    for (const head of due) await this.#anchor(head);
  }

  async #readSink(): Promise<void> {
    const { sink, book } = this.#parts;
    const anchors = sink.news?.() ?? (this.#hasReadSink ? [] : sink.read());
    for await (const anchor of anchors) book.learn(anchor);
    this.#hasReadSink = true;
  }

  /** A head at or before its last anchor needs no new one, but it can contradict the old one. */
  #compare({ tenant, seq, hash }: ChainHead): void {
    const { book, problems } = this.#parts;
    const last = book.anchored(tenant);
    if (last === undefined || seq > last.seq) return;
    if (seq < last.seq) problems.add("trail_cut", { tenant });
    else if (hash !== last.hash) problems.add("trail_rewritten", { tenant });
    else problems.clear(TRAIL_CODES, tenant);
  }

  async #anchor(head: ChainHead): Promise<void> {
    const { store, signer, clock, book, problems } = this.#parts;
    const { tenant } = head;
    const reader = store.tenant(tenant).audit;
    const wrong = await this.#attempt("store_failed", () => this.#inspect(reader, head));
    if (wrong !== undefined) {
      problems.add(wrong, { tenant });
      return;
    }
    problems.clear(TRAIL_CODES, tenant);
    const facts = book.begin(head, toIso(clock.now()));
    await this.#append(await this.#attempt("signer_failed", () => signAnchor(signer, facts)));
  }

  /**
   * Checks both ends of the range that the anchor would cover, which takes two reads; `audit verify` checks all of it.
   */
  async #inspect(reader: AuditReader, head: ChainHead): Promise<AnchorProblemCode | undefined> {
    const last = this.#parts.book.anchored(head.tenant);
    if (last !== undefined && (await hashAt(reader, last.seq)) !== last.hash)
      return "trail_rewritten";
    return (await hashAt(reader, head.seq)) === head.hash ? undefined : "head_mismatch";
  }

  async #append(anchor: Anchor): Promise<void> {
    const { sink, timers, limits, book, problems } = this.#parts;
    this.#unconfirmed = anchor;
    const stopWatch = timers.after(limits.everyMs, () => problems.add("sink_slow"));
    try {
      await this.#attempt("sink_failed", () => sink.append(anchor));
    } finally {
      stopWatch();
      problems.clear(["sink_slow"]);
    }
    this.#unconfirmed = undefined;
    book.finish(anchor);
  }

  async #attempt<Result>(code: AnchorProblemCode, work: () => Promise<Result>): Promise<Result> {
    const { problems } = this.#parts;
    try {
      const result = await work();
      problems.clear([code]);
      return result;
    } catch (cause) {
      problems.add(code, { cause });
      throw cause;
    }
  }
}

async function hashAt(reader: AuditReader, seq: number): Promise<string | undefined> {
  const [entry] = await reader.read({ after: seq - 1, limit: 1 });
  return entry?.seq === seq ? entry.hash : undefined;
}
