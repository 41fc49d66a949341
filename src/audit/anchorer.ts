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
  /** A tenant is anchored when it has so many new entries, */
  readonly everyEntries?: number;
  /** or when the oldest of them is that old. */
  readonly everyMs?: number;
  /** Keys that signed older anchors in the sink, or sign for other processes; the signer's own is known. */
  readonly publicKeys?: readonly (string | KeyObject)[];
  /** Shape: push. What it throws is dropped: whoever listens cannot stop the anchoring. */
  readonly onProblem?: (problem: AnchorProblem) => void;
}

export interface AnchorerStatus {
  /** Anchors written by this anchorer. */
  readonly written: number;
  /** What no anchor covered at the last look, and for how long at most. */
  readonly blindWindow: { readonly entries: number; readonly sinceMs: number };
  /** What is wrong at the moment; empty when all is well. */
  readonly problems: readonly AnchorProblem[];
}

export interface Anchorer extends AsyncDisposable {
  /** Anchors everything there is now. Rejects when store, signer or sink fail, after telling `onProblem`. */
  flush(): Promise<void>;
  status(): AnchorerStatus;
  /** Stops, after an attempt to anchor what is left that takes no longer than `everyMs`. Does not reject. */
  close(): Promise<void>;
}

/** Every commit gives a hint; a moment's patience turns a burst of them into one look. */
const SETTLE_MS = 50;
const FIRST_RETRY_MS = 1_000;

/**
 * Follows a store and anchors the end of each trail, every 64 entries or every 10 s, whichever comes first; at the start,
 * whatever is found without an anchor. Before it signs it checks that the trail still holds what it signed last: a
 * rewritten trail gets no new anchor. Failures are told, shown in `status` and retried; they never stop it. Throws
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
    // While something fails, hints must not shorten the wait: a busy store would turn it into a storm.
    if (failures > 0 || isHinted) return;
    isHinted = true;
    wake();
  });

  let last: Promise<void> = Promise.resolve();
  let nextFlush: Promise<void> | undefined;
  /** One round at a time, in the order they were asked for. */
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
    // Hints may be lost, so it looks by itself often enough to keep its promise without them.
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
    // What goes wrong now has been told; whoever closes has nothing left to do about it.
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

export interface RoundParts {
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

/** Looks once at all tenants and anchors those that are due. The caller runs one round at a time. */
class AnchorRound {
  readonly #parts: RoundParts;
  /** Signed and handed to the sink, but not confirmed: it may or may not be there, so it is sent again as it is. */
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
    // Heads after anchors: the other way round an anchor by another process would seem to be ahead of the trail.
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

  /** A head that stands at or before its last anchor needs no new one, but it can contradict the old one. */
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

  /** Looks at both ends of what the anchor would cover, which costs two reads; the whole is for `audit verify`. */
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
