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
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { Random } from "../util/random.ts";
import { type ClockWatch, clockBehind, clockJumped, JUMP_MS } from "./clock-watch.ts";
import type { Cell, Change, EventPlan, Left, Row, Step } from "./engine.ts";

/**
 * One tenant's turn in a transaction: it found the chain ending at `head`, and it collects the entries to append. It has two
 * times. Records, leases and deadlines go by the clock; entries never go back behind the last one, because a trail does not
 * run backwards. A clock that is a little behind the trail stands still until it has caught up. When it is far behind, one of
 * the two is wrong, and nobody here can say which: going by the clock could revive what has expired, and going by the trail
 * would stop every lease and deadline for as long as the trail is ahead. Then nothing that goes by time is written until an
 * operator has said that the clock is right.
 */
export class Turn {
  /** What leases and deadlines go by, epoch milliseconds. */
  readonly now: number;
  /** Why nothing that goes by time may be written. */
  readonly clockTrouble: SallyportError | undefined = undefined;
  /** The time of the entries, epoch milliseconds. */
  readonly entryAt: number;
  readonly entries: AuditEntry[] = [];
  readonly #iso: string;
  readonly #random: Random;
  #head: ChainHead;

  /** `accepted` is asked only when the clock is far behind: up to which time the trail is known to be ahead. */
  constructor(head: ChainHead, read: number, random: Random, terms: ClockTerms = {}) {
    const jumpMs = Math.round(terms.watch?.jumpOf(read) ?? 0);
    // What must be written all the same gets the time that it should be.
    const clock = read - jumpMs;
    const iso = toIso(clock);
    const isBehind = iso < head.at;
    this.entryAt = isBehind ? Date.parse(head.at) : clock;
    const behindMs = this.entryAt - clock;
    const isFar = behindMs > JUMP_MS;
    const isAccepted = isFar && (terms.accepted?.() ?? "") >= head.at;
    this.now = isAccepted ? clock : this.entryAt;
    if (jumpMs !== 0) this.clockTrouble = clockJumped(jumpMs);
    else if (isFar && !isAccepted) this.clockTrouble = clockBehind(head.at, behindMs);
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

/** What a clock is compared with. */
export interface ClockTerms {
  readonly watch?: Pick<ClockWatch, "jumpOf"> | undefined;
  /** Up to which time an operator has said that the trail is ahead of a clock that is right; empty when nobody has. */
  readonly accepted?: () => string;
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

/** The events of a change, made from what its steps left behind. Throws when a plan speaks of what is not there. */
function draftsOf(plans: readonly EventPlan[], rows: readonly Row[]): EventDraft[] {
  return plans.flatMap((plan) =>
    plan.each === true ? rows.map((row) => draftOf(plan, [row])) : [draftOf(plan, rows)],
  );
}

function draftOf(plan: EventPlan, rows: readonly Row[]): EventDraft {
  const { type, subject, session, actor, data, facts } = plan;
  return {
    type,
    subject: textOf(subject, rows),
    session: textOf(session, rows),
    actor,
    data: facts === undefined ? data : withFacts(data, facts, rows),
  };
}

function withFacts(
  data: JsonObject,
  facts: Readonly<Record<string, Left>>,
  rows: readonly Row[],
): JsonObject {
  const filled: JsonObject = { ...data };
  for (const [name, left] of Object.entries(facts)) filled[name] = factOf(left, rows);
  return filled;
}

function textOf(text: string | Left, rows: readonly Row[]): string {
  if (typeof text === "string") return text;
  const cell = cellOf(text, rows);
  if (typeof cell !== "string") throw new TypeError(`the column ${text.left} holds no text`);
  return cell;
}

function factOf(left: Left, rows: readonly Row[]): JsonValue {
  const cell = cellOf(left, rows);
  if (cell instanceof Uint8Array) throw new TypeError(`the column ${left.left} holds bytes`);
  return cell;
}

function cellOf({ left, step = 0 }: Left, rows: readonly Row[]): Cell {
  const cell = rows[step]?.[left];
  if (cell === undefined) throw new TypeError(`step ${step} leaves no column ${left} behind`);
  return cell;
}

/**
 * Facts go into the trail as they stand in the row, past redaction: so they may be numbers and the names we give to
 * records and states, never a text that came from outside.
 */
export function isOpenFact({ left, step = 0 }: Left, steps: readonly Step[]): boolean {
  return steps[step]?.table.columns[left] === "int" || OPEN_TEXT.test(left);
}

const OPEN_TEXT = /^(id|[a-z_]+_id|state|status|kind|[a-z_]*hash)$/;
