import {
  type AuditEntry,
  type ChainHead,
  dataHash,
  emptyHead,
  entryHash,
  GENESIS,
  headAfter,
} from "../model/audit-entry.ts";
import type { Instant } from "../model/names.ts";
import { type Anchor, anchorHash, signatureProblem } from "./anchor.ts";
import type { PublicKeys } from "./signing-key.ts";
import { type ProblemList, reasonOf, type TenantReport } from "./verify.ts";

/** Checks one tenant's entries in a stream, and keeps only its position. */
export class ChainCheck {
  readonly #tenant: string;
  readonly #problems: ProblemList;
  readonly #anchors: readonly AnchoredPoint[];
  /** A head that the caller trusts; earlier entries are not checked. */
  readonly #from: ChainHead | undefined;
  #head: ChainHead;
  #nextAnchor = 0;
  #entries = 0;
  #erased = 0;
  #unanchoredSince: Instant | undefined;

  constructor(
    tenant: string,
    problems: ProblemList,
    anchors: readonly AnchoredPoint[] = [],
    from?: ChainHead,
  ) {
    this.#tenant = tenant;
    this.#problems = problems;
    this.#anchors = anchors;
    this.#from = from;
    this.#head = from ?? emptyHead(tenant);
    if (from !== undefined) this.#compareWithAnchors(from.seq, from.hash);
  }

  /** When the oldest entry without an anchor was written. */
  get unanchoredSince(): Instant | undefined {
    return this.#unanchoredSince;
  }

  get isEmpty(): boolean {
    return this.#entries === 0 && this.#from === undefined;
  }

  take(entry: AuditEntry): void {
    const { seq, hash } = entry;
    if (this.#from !== undefined && seq <= this.#from.seq) {
      if (seq === this.#from.seq && hash !== this.#from.hash) this.#add("wrong_checkpoint", entry);
      return;
    }
    this.#entries += 1;
    this.#checkContent(entry);
    this.#compareWithAnchors(seq, hash);
    const expected = this.#head.seq + 1;
    // The head stays, or one misplaced entry would make all later ones look wrong.
    if (!(seq >= expected)) {
      this.#add("out_of_order", entry);
      return;
    }
    if (seq > expected) {
      const missing = seq - expected;
      this.#add(expected === 1 ? "missing_start" : "gap", entry, `${missing} missing`);
    } else if (entry.prev !== this.#head.hash) this.#add("broken_link", entry);
    if (entry.at < this.#head.at) this.#add("time_backwards", entry);
    if (seq > this.#anchoredSeq()) this.#unanchoredSince ??= entry.at;
    this.#head = headAfter(entry);
  }

  finish(): TenantReport {
    const { seq } = this.#head;
    const anchored = this.#anchoredSeq();
    if (anchored > seq) {
      const fact = `it ends at ${seq}, anchors go up to ${anchored}`;
      const code = this.isEmpty ? "anchored_tenant_missing" : "cut_off";
      this.#problems.add(code, { tenant: this.#tenant, seq }, fact);
    }
    return {
      tenant: this.#tenant,
      entries: this.#entries,
      head: this.#head,
      erased: this.#erased,
      anchoredSeq: anchored,
      unanchored: Math.max(0, seq - Math.max(anchored, this.#from?.seq ?? 0)),
    };
  }

  #checkContent(entry: AuditEntry): void {
    const { data, salt } = entry;
    try {
      if (entryHash(entry) !== entry.hash) this.#add("wrong_hash", entry);
      if (data === null && salt === null) this.#erased += 1;
      else if (data === null || salt === null) this.#add("half_erased", entry);
      else if (dataHash(salt, data) !== entry.dataHash) this.#add("wrong_data", entry);
    } catch (error) {
      // Only a text that no entry can have, such as a lone surrogate, cannot be hashed.
      this.#add("wrong_hash", entry, reasonOf(error));
    }
  }

  /** Several processes may have anchored one number; all anchors must agree. */
  #compareWithAnchors(seq: number, hash: string): void {
    for (;;) {
      const anchor = this.#anchors[this.#nextAnchor];
      if (anchor === undefined || anchor.seq > seq) return;
      this.#nextAnchor += 1;
      if (anchor.seq === seq && anchor.hash !== hash) {
        this.#add("anchor_mismatch", { seq });
      }
    }
  }

  #anchoredSeq(): number {
    return this.#anchors.at(-1)?.seq ?? 0;
  }

  #add(code: Parameters<ProblemList["add"]>[0], at: { readonly seq: number }, fact?: string): void {
    this.#problems.add(code, { tenant: this.#tenant, seq: at.seq }, fact);
  }
}

/** Anchors in the order of writing, from a sink's `read` or from `readAnchors`. Shape: pulled. */
export type AnchorSource = AsyncIterable<Anchor> | Iterable<Anchor>;

/** The statement of a valid anchor: at this number the chain had this hash. */
export interface AnchoredPoint {
  readonly seq: number;
  readonly hash: string;
}

export interface CheckedAnchors {
  readonly count: number;
  /** When the newest was created; empty without any. */
  readonly lastAt: string;
  /** Ascending by number. */
  readonly points: ReadonlyMap<string, readonly AnchoredPoint[]>;
}

/**
 * Checks the list itself: each anchor signed with a known key, each following an earlier line, each writer's numbering
 * without a gap. An anchor with an invalid signature is reported and not trusted. Takes about 300 bytes of memory for
 * each anchor, which is for every 64th entry of a busy chain.
 */
export async function checkAnchors(
  anchors: AnchorSource,
  keys: PublicKeys,
  problems: ProblemList,
): Promise<CheckedAnchors> {
  const lines = new Set([GENESIS]);
  const counts = new Map<string, number>();
  const points = new Map<string, AnchoredPoint[]>();
  let count = 0;
  let lastAt = "";
  try {
    for await (const anchor of anchors) {
      const line = anchorHash(anchor);
      // An anchor that was sent again after a failure occurs twice and counts once.
      if (lines.has(line)) continue;
      const isLinked = lines.has(anchor.prev);
      lines.add(line);
      const { tenant, seq, hash, writer, n } = anchor;
      const wrong = signatureProblem(anchor, keys);
      if (wrong === "bad_signature") {
        problems.add("anchor_signature", anchor);
        continue;
      }
      if (!isLinked || n !== (counts.get(writer) ?? 0) + 1) {
        problems.add("anchor_hole", anchor, `anchor ${n} of writer ${writer}`);
      }
      counts.set(writer, n);
      if (wrong === "unknown_key") {
        problems.add("anchor_key_unknown", anchor, anchor.keyId);
        continue;
      }
      count += 1;
      if (anchor.at > lastAt) lastAt = anchor.at;
      const known = points.get(tenant);
      if (known === undefined) points.set(tenant, [{ seq, hash }]);
      else known.push({ seq, hash });
    }
  } catch (error) {
    problems.add("anchors_unreadable", { tenant: "" }, reasonOf(error));
  }
  for (const list of points.values()) list.sort((a, b) => a.seq - b.seq);
  return { count, lastAt, points };
}
