import {
  type AuditEntry,
  type ChainHead,
  chainEntry,
  type EventDraft,
  headAfter,
  type SealedData,
  sealEntry,
} from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import { toIso } from "../util/clock.ts";
import type { Random } from "../util/random.ts";
import type { Change, Row } from "./engine.ts";
import { draftsOf } from "./event-plans.ts";

/**
 * One tenant's turn in a transaction: it found the chain ending at `head`, it has one time for everything it writes, and
 * it collects the entries to append.
 */
export class Turn {
  /** Epoch milliseconds. Never before the last entry, whatever the clock did: a trail does not run backwards. */
  readonly at: number;
  readonly entries: AuditEntry[] = [];
  readonly #iso: string;
  readonly #random: Random;
  #head: ChainHead;

  constructor(head: ChainHead, now: number, random: Random) {
    const iso = toIso(now);
    const isBehind = iso < head.at;
    this.at = isBehind ? Date.parse(head.at) : now;
    this.#iso = isBehind ? head.at : iso;
    this.#head = head;
    this.#random = random;
  }

  get head(): ChainHead {
    return this.#head;
  }

  /** Appends one event whose data is sealed already. */
  chain(draft: Omit<EventDraft, "data">, sealed: SealedData): AuditEntry {
    const entry = chainEntry(this.#head, draft, this.#iso, sealed);
    this.#head = headAfter(entry);
    return entry;
  }

  /** Seals all events of a change or, if one of them cannot be put into the trail, none. Throws invalid_input. */
  append({ events }: Change, rows: readonly Row[]): readonly AuditEntry[] {
    const sealed: AuditEntry[] = [];
    let head = this.#head;
    try {
      for (const draft of draftsOf(events, rows)) {
        const entry = sealEntry(head, draft, this.#iso, newSalt(this.#random));
        sealed.push(entry);
        head = headAfter(entry);
      }
    } catch (cause) {
      const hint = "What happened could not be put into the trail, so nothing was written.";
      throw new SallyportError("invalid_input", { what: "event", hint }, cause);
    }
    if (sealed.length === 0) {
      // This also lets a COMMIT whose answer was lost be told from one that never happened.
      const hint = "No state changes without an entry in the trail: give the change an event.";
      throw new SallyportError("invalid_input", { what: "change", hint });
    }
    this.#head = head;
    this.entries.push(...sealed);
    return sealed;
  }
}

/** Over 128 bits per entry: enough that nobody guesses an erased value from its hash. */
export function newSalt(random: Random): string {
  let pool = pools.get(random);
  if (pool === undefined || pool.used === pool.text.length) {
    const { buffer, byteOffset, length } = random.bytes(SALTS * SALT_CHARS * 0.75);
    pool = { text: Buffer.from(buffer, byteOffset, length).toString("base64url"), used: 0 };
    pools.set(random, pool);
  }
  pool.used += SALT_CHARS;
  return pool.text.slice(pool.used - SALT_CHARS, pool.used);
}

/** Made so many at a time: spelling out a single one costs more than its entry's hash. */
const SALTS = 64;
const SALT_CHARS = 22;
const pools = new WeakMap<Random, { readonly text: string; used: number }>();
