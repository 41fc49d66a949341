import os from "node:os";
import type { ChainHead } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { CLOCK, SWITCHES } from "../model/switch.ts";
import { toIso } from "../util/clock.ts";
import { checkReason } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { NOW } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** A clock that is corrected in passing moves by less. */
export const JUMP_MS = 60_000;
/** A clock that has run evenly for this long since it jumped is believed again. */
const SETTLED_MS = 30_000;
/** How often it is noted how long the machine has been running: asking takes a few microseconds. */
const UPTIME_EVERY_MS = 10_000;

/** What a clock said, and when that was by time that nobody can set. */
export interface Reading {
  readonly now: number;
  /** Monotonic milliseconds, the same in all threads. Stands still while the machine sleeps. */
  readonly elapsed: number;
}

/** Time that nobody can set. */
export interface SteadyTime {
  elapsedMs(): number;
  /** Since the machine was started, sleep included. */
  uptimeMs(): number;
}

export const systemSteadyTime: SteadyTime = {
  elapsedMs: () => Number(process.hrtime.bigint()) / 1e6,
  uptimeMs: () => os.uptime() * 1_000,
};

/**
 * Compares the clock that decides about leases and deadlines with time that nobody can set. A reading that cannot be right
 * must not get into the store: leases taken by it would last for days once the clock is right again.
 */
export class ClockWatch {
  readonly #time: SteadyTime;
  #trusted: Reading | undefined;
  /** When the machine's uptime was noted last, and what the clock said then. */
  #noted: { readonly now: number; readonly elapsed: number; readonly uptime: number } | undefined;
  /** The first reading after a jump, while it is not believed. */
  #jumped: Reading | undefined;

  constructor(time: SteadyTime = systemSteadyTime, trusted?: Reading) {
    this.#time = time;
    this.#trusted = trusted;
  }

  /** The last reading that was believed; another thread can go on from it. */
  get trusted(): Reading | undefined {
    return this.#trusted;
  }

  /** When it is now, by time that nobody can set. */
  elapsedMs(): number {
    return this.#time.elapsedMs();
  }

  /**
   * By how many milliseconds the clock has jumped, while that is not believed; 0 when nothing is wrong with it. `asked` is
   * when the clock was asked: an answer from elsewhere may have been read long after it was given.
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

  /** The clock was read at some time between the question and now: at the one that fits best. */
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

/** How much further the clock has moved between two readings than time did. */
function gapOf(from: Reading, to: Reading): number {
  return to.now - from.now - (to.elapsed - from.elapsed);
}

export function clockJumped(jumpMs: number): SallyportError {
  const by = `${span(Math.abs(jumpMs))} ${jumpMs > 0 ? "forward" : "back"}`;
  const hint = `The store's clock went ${by} at once. Nothing that goes by time is written until it is right again or has run evenly for ${SETTLED_MS / 1_000} seconds: check the clock of the machine that the store runs on.`;
  return new SallyportError("clock_wrong", { jumpMs: Math.round(jumpMs), hint });
}

export function clockBehind(trailAt: string, behindMs: number): SallyportError {
  const hint = `The store's clock is ${span(behindMs)} behind the last entry of the trail (${trailAt}). If it is wrong now, set it right. If it was wrong when that entry was written, run sallyport store clock --accept.`;
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

/** How the clock and the end of the trail compare. */
export interface ClockLook {
  readonly clockAt: string;
  readonly trailAt: string;
  /** How far the clock is behind the trail, in milliseconds; 0 or less when it is not. */
  readonly behindMs: number;
  /** `refused`: nothing that goes by time is written. `accepted`: an operator has said that the clock is right. */
  readonly state: "right" | "refused" | "accepted";
}

/** What an operator can do about a trail that is ahead of the clock. */
export interface ClockMark {
  look(): Promise<ClockLook>;
  /** Says that the clock is right and the trail ahead of it: from now on leases and deadlines go by the clock. */
  accept(reason: string, by: By): Promise<ClockLook>;
}

export interface ClockMarkParts {
  readonly head: () => Promise<ChainHead>;
  readonly now: () => Promise<number>;
}

export function engineClockMark(engine: TenantEngine, { head, now }: ClockMarkParts): ClockMark {
  async function look(): Promise<ClockLook> {
    const [{ at: trailAt }, clock, mark] = await Promise.all([
      head(),
      now(),
      engine.get(SWITCHES, CLOCK),
    ]);
    const behindMs = Date.parse(trailAt) - clock;
    const isAccepted = String(mark?.["state"] ?? "") >= trailAt;
    const far = isAccepted ? "accepted" : "refused";
    const state = behindMs <= JUMP_MS ? "right" : far;
    return { clockAt: toIso(clock), trailAt, behindMs, state };
  }

  return {
    look,
    async accept(reason, by) {
      checkName("actor", by.actor);
      checkReason(reason);
      for (;;) {
        const seen = await look();
        if (seen.state !== "refused") return seen;
        const { trailAt, clockAt } = seen;
        const set = SWITCHES.row({ state: trailAt, reason, updatedAt: NOW });
        const data = { trailAt, clockAt, reason: reason.toWellFormed() };
        const events = [
          { type: "store.clock_accepted", subject: CLOCK, session: "", actor: by.actor, data },
        ];
        const row = { table: SWITCHES, id: CLOCK } as const;
        // Either of them is refused when the row is not, or is, there; the next look shows what holds.
        const changed = await engine.commit({
          steps: [{ ...row, op: "update", where: {}, set }],
          events,
        });
        if (changed.committed) continue;
        await engine.commit({ steps: [{ ...row, op: "insert", row: set }], events });
      }
    },
  };
}
