import type { ChainHead } from "../model/audit-entry.ts";
import type { AuditReader, Store } from "../store/store.ts";
import { type Clock, toIso } from "../util/clock.ts";
import type { Timers } from "../util/timers.ts";
import { type Anchor, type AnchorSink, signAnchor } from "./anchor.ts";
import type { AnchorBook, AnchorLimits } from "./anchor-book.ts";
import type { AnchorProblemCode, AnchorProblems } from "./anchor-problems.ts";
import type { AnchorSigner } from "./signing-key.ts";

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
export class AnchorRound {
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
