import { type ChainHead, GENESIS } from "../model/audit-entry.ts";
import { type Anchor, type AnchorFacts, anchorHash, signatureProblem } from "./anchor.ts";
import type { PublicKeys } from "./signing-key.ts";
import type { AnchoredPoint } from "./verify-chain.ts";

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

/** The current problems. A failure is reported each time, a damaged chain once until it is intact again. */
export class AnchorProblems {
  readonly #onProblem: ((problem: AnchorProblem) => void) | undefined;
  readonly #current = new Map<string, AnchorProblem>();

  constructor(onProblem: ((problem: AnchorProblem) => void) | undefined) {
    this.#onProblem = onProblem;
  }

  get current(): readonly AnchorProblem[] {
    return [...this.#current.values()];
  }

  add(
    code: AnchorProblemCode,
    about: { readonly tenant?: string; readonly cause?: unknown } = {},
  ): void {
    const key = keyOf(code, about.tenant);
    const isKnown = about.tenant !== undefined && this.#current.has(key);
    const problem = { code, message: ANCHOR_PROBLEMS[code], ...about };
    this.#current.set(key, problem);
    if (isKnown) return;
    try {
      this.#onProblem?.(problem);
    } catch {
      // A listener must not be able to stop the anchoring.
    }
  }

  clear(codes: readonly AnchorProblemCode[], tenant?: string): void {
    for (const code of codes) this.#current.delete(keyOf(code, tenant));
  }
}

function keyOf(code: AnchorProblemCode, tenant: string | undefined): string {
  return `${code}\n${tenant ?? ""}`;
}
