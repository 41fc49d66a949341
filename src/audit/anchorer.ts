import type { KeyObject } from "node:crypto";
import { type ChainHead, GENESIS } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import type { AuditReader, Store } from "../store/store.ts";
import { type Clock, systemClock, toIso } from "../util/clock.ts";
import { type Random, systemRandom } from "../util/random.ts";
import { systemTimers, type Timers, withDeadline } from "../util/timers.ts";
import {
  type Anchor,
  type AnchorFacts,
  type AnchorSigner,
  type AnchorSink,
  anchorHash,
  type PublicKeys,
  publicKeys,
  signAnchor,
  signatureProblem,
} from "./anchor.ts";
import type { AnchoredPoint } from "./verify.ts";

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
  const problems = anchorProblems(options.onProblem);
  const limits = { everyEntries, everyMs };
  const runRound = anchorRound({ ...options, clock, timers, limits, book, problems });

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
  function queue(mode: RoundMode): Promise<void> {
    const result = last.then(async () => {
      if (mode === "everything") nextFlush = undefined;
      try {
        await runRound(mode);
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

type RoundMode = "what is due" | "everything";

const TRAIL_CODES = ["trail_cut", "trail_rewritten", "head_mismatch", "tenant_missing"] as const;

/**
 * Checks all tenants once and anchors those that are due. The caller runs one round at a time. Rejects, after reporting it,
 * when store, signer or sink fail. A damaged trail is only reported.
 */
function anchorRound(parts: RoundParts): (mode: RoundMode) => Promise<void> {
  const { store, signer, sink, clock, timers, limits, book, problems } = parts;
  /** Signed and sent to the sink but not confirmed: it may be there or not, so it is sent again unchanged. */
  let unconfirmed: Anchor | undefined;
  let hasReadSink = false;

  async function readSink(): Promise<void> {
    const anchors = sink.news?.() ?? (hasReadSink ? [] : sink.read());
    for await (const anchor of anchors) book.learn(anchor);
    hasReadSink = true;
  }

  /** A head at or before its last anchor needs no new one, but it can contradict the old one. */
  function compare({ tenant, seq, hash }: ChainHead): void {
    const last = book.anchored(tenant);
    if (last === undefined || seq > last.seq) return;
    if (seq < last.seq) problems.add("trail_cut", { tenant });
    else if (hash !== last.hash) problems.add("trail_rewritten", { tenant });
    else problems.clear(TRAIL_CODES, tenant);
  }

  async function anchorHead(head: ChainHead): Promise<void> {
    const { tenant } = head;
    const reader = store.tenant(tenant).audit;
    const wrong = await attempt("store_failed", () => inspect(reader, head));
    if (wrong !== undefined) return problems.add(wrong, { tenant });
    problems.clear(TRAIL_CODES, tenant);
    const facts = book.begin(head, toIso(clock.now()));
    await append(await attempt("signer_failed", () => signAnchor(signer, facts)));
  }

  /** Checks both ends of the range that the anchor would cover, with two reads; `audit verify` checks all of it. */
  async function inspect(
    reader: AuditReader,
    head: ChainHead,
  ): Promise<AnchorProblemCode | undefined> {
    const last = book.anchored(head.tenant);
    const isRewritten = last !== undefined && (await hashAt(reader, last.seq)) !== last.hash;
    if (isRewritten) return "trail_rewritten";
    return (await hashAt(reader, head.seq)) === head.hash ? undefined : "head_mismatch";
  }

  async function append(anchor: Anchor): Promise<void> {
    unconfirmed = anchor;
    const stopWatch = timers.after(limits.everyMs, () => problems.add("sink_slow"));
    try {
      await attempt("sink_failed", () => sink.append(anchor));
    } finally {
      stopWatch();
      problems.clear(["sink_slow"]);
    }
    unconfirmed = undefined;
    book.finish(anchor);
  }

  async function attempt<Result>(
    code: AnchorProblemCode,
    work: () => Promise<Result>,
  ): Promise<Result> {
    try {
      const result = await work();
      problems.clear([code]);
      return result;
    } catch (cause) {
      problems.add(code, { cause });
      throw cause;
    }
  }

  return async (mode) => {
    await attempt("sink_failed", readSink);
    if (unconfirmed !== undefined) await append(unconfirmed);
    // Heads after anchors: in the other order an anchor of another process would seem ahead of the chain.
    const heads = await attempt("store_failed", () => store.heads());
    for (const tenant of book.missing(heads)) problems.add("tenant_missing", { tenant });
    for (const head of heads) compare(head);
    const everything = { everyEntries: 1, everyMs: 0 };
    const due = book.look(heads, clock.now(), mode === "everything" ? everything : limits);
    for (const head of due) await anchorHead(head);
  };
}

async function hashAt(reader: AuditReader, seq: number): Promise<string | undefined> {
  const [entry] = await reader.read({ after: seq - 1, limit: 1 });
  return entry?.seq === seq ? entry.hash : undefined;
}

/** The state of an anchorer: what is anchored, what the next anchor links to, and which tenants wait since when. */
export class AnchorBook {
  readonly #writer: string;
  readonly #keys: PublicKeys;
  readonly #anchored = new Map<string, AnchoredPoint>();
  readonly #waiting = new Map<string, { since: number; entries: number }>();
  #written = 0;
  #link = GENESIS;
  #lookedAt: number | undefined;

  constructor(writer: string, keys: PublicKeys) {
    this.#writer = writer;
    this.#keys = keys;
  }

  /** The number of anchors written by this writer. */
  get written(): number {
    return this.#written;
  }

  anchored(tenant: string): AnchoredPoint | undefined {
    return this.#anchored.get(tenant);
  }

  /** Records an anchor found in the sink, by any writer. One with an invalid signature is linked to but not trusted. */
  learn(anchor: Anchor): void {
    this.#link = anchorHash(anchor);
    const { tenant, seq, hash } = anchor;
    if (seq <= (this.#anchored.get(tenant)?.seq ?? 0)) return;
    if (signatureProblem(anchor, this.#keys) === undefined)
      this.#anchored.set(tenant, { seq, hash });
  }

  /** The heads that are due now; for others with new entries it records since when they wait. */
  look(heads: readonly ChainHead[], now: number, limits: AnchorLimits): ChainHead[] {
    const isFirst = this.#lookedAt === undefined;
    const due = heads.filter((head) => {
      const entries = head.seq - (this.#anchored.get(head.tenant)?.seq ?? 0);
      if (entries <= 0) {
        this.#waiting.delete(head.tenant);
        return false;
      }
      // The entry may have come right after the last check. A clock that was set back must not delay it by a day.
      const known = this.#waiting.get(head.tenant)?.since ?? this.#lookedAt ?? Date.parse(head.at);
      const since = Math.min(known, now);
      this.#waiting.set(head.tenant, { since, entries });
      return isFirst || entries >= limits.everyEntries || now - since >= limits.everyMs;
    });
    this.#lookedAt = now;
    return due;
  }

  /** Tenants that have anchors but no chain any more. */
  missing(heads: readonly ChainHead[]): string[] {
    const present = new Set(heads.map((head) => head.tenant));
    return [...this.#anchored.keys()].filter((tenant) => !present.has(tenant));
  }

  /**
   * The content of this writer's next anchor. It must be finished before the next one starts, or both would have the
   * same number.
   */
  begin(head: ChainHead, at: string): AnchorFacts {
    const { tenant, seq, hash } = head;
    const n = this.#written + 1;
    return { writer: this.#writer, n, tenant, seq, hash, at, prev: this.#link };
  }

  /** The anchor is in the sink. The next check finds entries that were added meanwhile. */
  finish(anchor: Anchor): void {
    this.learn(anchor);
    this.#written += 1;
    this.#waiting.delete(anchor.tenant);
  }

  /** The number of entries without an anchor, and the earliest time of the oldest one. */
  get waiting(): { readonly entries: number; readonly since: number | undefined } {
    let entries = 0;
    let since: number | undefined;
    for (const one of this.#waiting.values()) {
      entries += one.entries;
      since = Math.min(since ?? one.since, one.since);
    }
    return { entries, since };
  }
}

export interface AnchorLimits {
  readonly everyEntries: number;
  readonly everyMs: number;
}

/** The problems of anchoring, each with its meaning and what to do. */
const ANCHOR_PROBLEMS = {
  sink_failed:
    "The anchor could not be written or read. It is tried again; until then the blind window grows.",
  sink_slow:
    "The place for anchors does not answer. Nothing is anchored until it does; look at that place.",
  signer_failed:
    "The anchor could not be signed. It is tried again; until then the blind window grows.",
  store_failed:
    "The store could not be read. It is tried again; until then the blind window grows.",
  trail_cut:
    "The trail is shorter than its last anchor: entries were deleted or an old copy was restored. Run audit verify.",
  trail_rewritten:
    "The entry at the last anchor has another hash: the trail was rewritten. It gets no new anchor. Run audit verify.",
  head_mismatch:
    "The end of the trail that the store reports is not in the trail. Run audit verify.",
  tenant_missing: "A tenant that was anchored has no trail any more. Run audit verify.",
} as const satisfies Record<string, string>;

export type AnchorProblemCode = keyof typeof ANCHOR_PROBLEMS;

export interface AnchorProblem {
  readonly code: AnchorProblemCode;
  readonly tenant?: string;
  readonly message: string;
  readonly cause?: unknown;
}

type AnchorProblems = ReturnType<typeof anchorProblems>;

/** The current problems. A failure is reported each time, a damaged chain once until it is intact again. */
function anchorProblems(onProblem: ((problem: AnchorProblem) => void) | undefined) {
  const all = new Map<string, AnchorProblem>();
  const keyOf = (code: AnchorProblemCode, tenant = "") => `${code}\n${tenant}`;
  return {
    get current(): readonly AnchorProblem[] {
      return [...all.values()];
    },
    add(code: AnchorProblemCode, about: Pick<AnchorProblem, "tenant" | "cause"> = {}): void {
      const key = keyOf(code, about.tenant);
      const isKnown = about.tenant !== undefined && all.has(key);
      const problem = { code, message: ANCHOR_PROBLEMS[code], ...about };
      all.set(key, problem);
      if (isKnown) return;
      try {
        onProblem?.(problem);
      } catch {
        // A listener must not be able to stop the anchoring.
      }
    },
    clear(codes: readonly AnchorProblemCode[], tenant?: string): void {
      for (const code of codes) all.delete(keyOf(code, tenant));
    },
  };
}
