import { type ChainHead, GENESIS } from "../model/audit-entry.ts";
import { type Anchor, type AnchorFacts, anchorHash, signatureProblem } from "./anchor.ts";
import type { PublicKeys } from "./signing-key.ts";
import type { AnchoredPoint } from "./verify-anchors.ts";

/** What an anchorer knows: what is anchored, what the next anchor links to, and which tenants wait since when. */
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

  /** How many anchors this writer has written. */
  get written(): number {
    return this.#written;
  }

  anchored(tenant: string): AnchoredPoint | undefined {
    return this.#anchored.get(tenant);
  }

  /** Takes in an anchor that is in the sink, whoever wrote it. One with a wrong signature is linked to but not believed. */
  learn(anchor: Anchor): void {
    this.#link = anchorHash(anchor);
    const { tenant, seq, hash } = anchor;
    if (seq <= (this.#anchored.get(tenant)?.seq ?? 0)) return;
    if (signatureProblem(anchor, this.#keys) === undefined)
      this.#anchored.set(tenant, { seq, hash });
  }

  /** The heads that are due now; of the others with new entries it keeps since when they wait. */
  look(heads: readonly ChainHead[], now: number, limits: AnchorLimits): ChainHead[] {
    const isFirst = this.#lookedAt === undefined;
    const due = heads.filter((head) => {
      const entries = head.seq - (this.#anchored.get(head.tenant)?.seq ?? 0);
      if (entries <= 0) {
        this.#waiting.delete(head.tenant);
        return false;
      }
      // The entry may have come right after the last look. A clock that was set back must not make it wait for a day.
      const known = this.#waiting.get(head.tenant)?.since ?? this.#lookedAt ?? Date.parse(head.at);
      const since = Math.min(known, now);
      this.#waiting.set(head.tenant, { since, entries });
      return isFirst || entries >= limits.everyEntries || now - since >= limits.everyMs;
    });
    this.#lookedAt = now;
    return due;
  }

  /** Tenants that have anchors and no trail any more. */
  missing(heads: readonly ChainHead[]): string[] {
    const present = new Set(heads.map((head) => head.tenant));
    return [...this.#anchored.keys()].filter((tenant) => !present.has(tenant));
  }

  /** What this writer's next anchor says. It must be finished before another is begun, or both would have one number. */
  begin(head: ChainHead, at: string): AnchorFacts {
    const { tenant, seq, hash } = head;
    const n = this.#written + 1;
    return { writer: this.#writer, n, tenant, seq, hash, at, prev: this.#link };
  }

  /** The anchor is in the sink. What came meanwhile is found by the next look. */
  finish(anchor: Anchor): void {
    this.learn(anchor);
    this.#written += 1;
    this.#waiting.delete(anchor.tenant);
  }

  /** How many entries no anchor covers, and since when the oldest of them may have been there. */
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
