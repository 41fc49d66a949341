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

/** Checks one tenant's entries as they come, and keeps only where it stands. */
export class ChainCheck {
  readonly #tenant: string;
  readonly #problems: ProblemList;
  readonly #anchors: readonly AnchoredPoint[];
  /** A head the caller trusts; what lies before it is not looked at. */
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

  /** When the oldest entry that no anchor covers was written. */
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
    // The head stays where it is, or one misplaced entry would make all that follow look wrong.
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
      // Only a text that no entry can have, such as half a character, cannot be hashed.
      this.#add("wrong_hash", entry, reasonOf(error));
    }
  }

  /** Several anchors may speak of one number, when several processes anchored it; all must agree. */
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

/** Anchors in the order of writing, as a sink's `read` or `readAnchors` gives them. Shape: pulled. */
export type AnchorSource = AsyncIterable<Anchor> | Iterable<Anchor>;

/** What a valid anchor says: at this number the trail had this hash. */
export interface AnchoredPoint {
  readonly seq: number;
  readonly hash: string;
}

export interface CheckedAnchors {
  readonly count: number;
  /** When the newest was made; empty without any. */
  readonly lastAt: string;
  /** Ascending by number. */
  readonly points: ReadonlyMap<string, readonly AnchoredPoint[]>;
}

/**
 * Checks the list itself: each anchor signed with a known key, each following a line that stands before it, each writer's
 * count without a hole. What is not signed properly is reported and then not believed. Takes about 300 bytes of memory
 * for each anchor, which is for every 64th entry of a busy trail.
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
      // An anchor that was sent again after a failure stands there twice and counts once.
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
