import os from "node:os";
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
import type { Cell, Change, EventPlan, Left, Row, Step } from "./engine.ts";

/**
 * One tenant's turn in a transaction. It starts from the end of the chain, `head`, and collects the entries to append. It has
 * two times: `now` for records, leases and deadlines, and `entryAt`, which is never earlier than the last entry. If the clock
 * is slightly behind the trail, the time of the last entry is used until the clock has caught up. If it is far behind, either
 * the clock or the trail is wrong, and the code cannot tell which: trusting the clock could revive expired leases, trusting
 * the trail would freeze every lease and deadline. Then only urgent changes are written until an operator confirms the clock.
 */
export class Turn {
  /** The time for leases and deadlines, epoch milliseconds. */
  readonly now: number;
  /** Set while the clock cannot be trusted: only urgent changes may be written. */
  readonly clockTrouble: SallyportError | undefined = undefined;
  /** The time of the entries, epoch milliseconds. */
  readonly entryAt: number;
  readonly entries: AuditEntry[] = [];
  readonly #iso: string;
  readonly #random: Random;
  #head: ChainHead;

  /** Calls `terms.accepted` only when the clock is far behind the trail. */
  constructor(head: ChainHead, read: number, random: Random, terms: ClockTerms = {}) {
    const jumpMs = Math.round(terms.watch?.jumpOf(read) ?? 0);
    // Urgent changes are written even now, with the corrected time.
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

  /** Appends one event whose data is already sealed. */
  chain(draft: Omit<EventDraft, "data">, sealed: SealedData): AuditEntry {
    const entry = chainEntry(this.#head, draft, this.#iso, sealed);
    this.#head = headAfter(entry);
    return entry;
  }

  /** Seals all events of a change, or none if one of them cannot be recorded. Throws invalid_input. */
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
      const hint = "The event could not be recorded in the trail, so nothing was written.";
      throw new SallyportError("invalid_input", { what: "event", hint }, cause);
    }
    if (sealed.length === 0) {
      // The entry also distinguishes a COMMIT whose answer was lost from one that never happened.
      const hint = "A change needs at least one event, because every change of state is audited.";
      throw new SallyportError("invalid_input", { what: "change", hint });
    }
    this.#head = head;
    this.entries.push(...sealed);
    return sealed;
  }
}

/** What the clock is compared with. */
export interface ClockTerms {
  readonly watch?: Pick<ClockWatch, "jumpOf"> | undefined;
  /** An operator confirmed that the clock is right and the trail is ahead, up to this time; empty if not confirmed. */
  readonly accepted?: () => string;
}

/** More than 128 bits per entry, so that an erased value cannot be guessed from its hash. */
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

/** Salts are generated in batches: encoding a single one costs more than the hash of its entry. */
const SALTS = 64;
const SALT_CHARS = 22;
const pools = new WeakMap<Random, { readonly text: string; used: number }>();

/** The events of a change, built from the rows of its steps. Throws when a plan refers to a row or column that is missing. */
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
 * Facts are copied from the row into the trail without redaction. So only numbers and our own names of records and states
 * are allowed, never text from outside.
 */
export function isOpenFact({ left, step = 0 }: Left, steps: readonly Step[]): boolean {
  return steps[step]?.table.columns[left] === "int" || OPEN_TEXT.test(left);
}

const OPEN_TEXT = /^(id|[a-z_]+_id|state|status|kind|[a-z_]*hash)$/;

/** Ordinary clock corrections are smaller than this. */
export const JUMP_MS = 60_000;
/** A clock that has run evenly for this long after a jump is trusted again. */
const SETTLED_MS = 30_000;
/** How often the machine's uptime is recorded; reading it takes a few microseconds. */
const UPTIME_EVERY_MS = 10_000;

/** A reading of the clock, with the monotonic time at which it was taken. */
export interface Reading {
  readonly now: number;
  /** Monotonic milliseconds, the same in all threads. Does not advance while the machine sleeps. */
  readonly elapsed: number;
}

/** Time that cannot be set. */
export interface SteadyTime {
  elapsedMs(): number;
  /** Since the machine was started, including sleep. */
  uptimeMs(): number;
}

export const systemSteadyTime: SteadyTime = {
  elapsedMs: () => Number(process.hrtime.bigint()) / 1e6,
  uptimeMs: () => os.uptime() * 1_000,
};

/**
 * Compares the clock that decides about leases and deadlines with monotonic time. A wrong reading must not be stored: leases
 * taken with it would last for days once the clock is right again.
 */
export class ClockWatch {
  readonly #time: SteadyTime;
  #trusted: Reading | undefined;
  /** The last recorded uptime of the machine, with the reading of the clock at that time. */
  #noted: { readonly now: number; readonly elapsed: number; readonly uptime: number } | undefined;
  /** The first reading after a jump, while it is not trusted. */
  #jumped: Reading | undefined;

  constructor(time: SteadyTime = systemSteadyTime, trusted?: Reading) {
    this.#time = time;
    this.#trusted = trusted;
  }

  /** The last trusted reading; another thread can continue from it. */
  get trusted(): Reading | undefined {
    return this.#trusted;
  }

  /** The current monotonic time. */
  elapsedMs(): number {
    return this.#time.elapsedMs();
  }

  /**
   * The jump of the clock in milliseconds while the new time is not trusted; 0 when the clock is fine. `asked` is the monotonic
   * time of the query: the answer of a remote clock may be processed long after it was given.
   */
  jumpOf(now: number, asked = this.#time.elapsedMs()): number {
    const reading = this.#placed(now, asked);
    const jump = this.#trusted === undefined ? 0 : gapOf(this.#trusted, reading);
    if (Math.abs(jump) <= JUMP_MS || this.#hasSlept(now) || this.#isSettled(reading)) {
      this.#trust(reading);
      return 0;
    }
    return jump;
  }

  /** The clock was read at some time between `asked` and now. Assumes the moment that fits best. */
  #placed(now: number, asked: number): Reading {
    const latest = this.#time.elapsedMs();
    const fitting =
      this.#trusted === undefined ? asked : this.#trusted.elapsed + now - this.#trusted.now;
    return { now, elapsed: Math.min(Math.max(fitting, asked), latest) };
  }

  #hasSlept(now: number): boolean {
    if (this.#noted === undefined) return false;
    const awake = this.#time.uptimeMs() - this.#noted.uptime;
    return Math.abs(now - this.#noted.now - awake) <= JUMP_MS;
  }

  #isSettled(reading: Reading): boolean {
    if (this.#jumped === undefined || Math.abs(gapOf(this.#jumped, reading)) > JUMP_MS) {
      this.#jumped = reading;
      return false;
    }
    return reading.elapsed - this.#jumped.elapsed >= SETTLED_MS;
  }

  #trust(reading: Reading): void {
    this.#trusted = reading;
    const isOld =
      this.#noted === undefined || reading.elapsed - this.#noted.elapsed >= UPTIME_EVERY_MS;
    if (isOld || this.#jumped !== undefined) {
      this.#noted = { ...reading, uptime: this.#time.uptimeMs() };
    }
    this.#jumped = undefined;
  }
}

/** A reading that deadlines may be computed from before they are written. Throws clock_wrong. */
export function trustedTime(
  now: number,
  watch: Pick<ClockWatch, "jumpOf"> | undefined,
  asked?: number,
): number {
  const jumpMs = watch?.jumpOf(now, asked) ?? 0;
  if (jumpMs !== 0) throw clockJumped(jumpMs);
  return now;
}

/** How much further the clock has moved between two readings than monotonic time. */
function gapOf(from: Reading, to: Reading): number {
  return to.now - from.now - (to.elapsed - from.elapsed);
}

export function clockJumped(jumpMs: number): SallyportError {
  const by = `${span(Math.abs(jumpMs))} ${jumpMs > 0 ? "forward" : "back"}`;
  const hint = `The store's clock jumped ${by}. Only the kill switch and outcomes are written until it is right again or has run evenly for ${SETTLED_MS / 1_000} seconds: check the clock of the machine that the store runs on.`;
  return new SallyportError("clock_wrong", { jumpMs: Math.round(jumpMs), hint });
}

export function clockBehind(trailAt: string, behindMs: number): SallyportError {
  const hint = `The store's clock is ${span(behindMs)} behind the last entry of the trail (${trailAt}). If it is wrong now, correct it. If it was wrong when that entry was written, run sallyport store clock --accept.`;
  return new SallyportError("clock_wrong", { trailAt, behindMs, hint });
}

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
] as const;

function span(ms: number): string {
  const [name, length] = UNITS.find(([, least]) => ms >= least) ?? ["second", 1_000];
  const count = Math.round(ms / length);
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}
