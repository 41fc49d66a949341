import type { Clock } from "../../src/util/clock.ts";
import type { Timers } from "../../src/util/timers.ts";
import type { Luck } from "./luck.ts";

/** Something that waits: a process, an actor, the wire. When it dies, all its waits are forgotten. */
export interface Owner {
  readonly name: string;
}

/** A continuation that waits for its turn. Nothing in a simulation goes on but through one of these. */
export interface Parked {
  readonly owner: Owner;
  readonly label: string;
  /** Virtual time from which on it may be chosen. */
  readonly dueAt: number;
  run(): void;
  /** What it leaves behind on the wire when its owner dies: a request that was sent may still arrive. */
  readonly orphan?: () => void;
}

/** The one queue of everything that may happen next, and the virtual time, which moves only here. */
export class RunQueue {
  readonly trace: string[] = [];
  readonly #luck: Luck;
  #parked: Parked[] = [];
  #time = 0;

  constructor(luck: Luck) {
    this.#luck = luck;
  }

  /** Milliseconds since the run began; never goes back. */
  get time(): number {
    return this.#time;
  }

  get size(): number {
    return this.#parked.length;
  }

  park(
    owner: Owner,
    label: string,
    run: () => void,
    { delayMs = 0, orphan }: { delayMs?: number; orphan?: () => void } = {},
  ): () => void {
    const dueAt = this.#time + delayMs;
    const parked: Parked = { owner, label, dueAt, run, ...(orphan && { orphan }) };
    this.#parked.push(parked);
    return () => this.#remove(this.#parked.indexOf(parked));
  }

  /** Resolves when its turn comes. */
  turn(owner: Owner, label: string, delayMs = 0): Promise<void> {
    return new Promise((resolve) => {
      this.park(owner, label, resolve, { delayMs });
    });
  }

  /** Forgets everything that this owner waits for, and gives it back. */
  drop(owner: Owner): readonly Parked[] {
    const dropped = this.#parked.filter((parked) => parked.owner === owner);
    this.#parked = this.#parked.filter((parked) => parked.owner !== owner);
    return dropped;
  }

  /** Resumes one of those whose time has come; false when nothing waits. */
  step(): boolean {
    let due = this.#due();
    if (due.length === 0) {
      if (this.#parked.length === 0) return false;
      this.#time = Math.min(...this.#parked.map(({ dueAt }) => dueAt));
      due = this.#due();
    } else if (this.#luck.percent(30)) {
      this.#time += this.#luck.below(20);
    }
    const parked = this.#luck.pick(due);
    this.#remove(this.#parked.indexOf(parked));
    this.trace.push(`${this.#time} ${parked.owner.name} ${parked.label}`);
    parked.run();
    return true;
  }

  /** Time passes while nothing runs. */
  pass(ms: number): void {
    this.#time += ms;
  }

  /** Waits of one owner, in virtual time. */
  timersOf(owner: Owner): Timers {
    const after = (ms: number, fn: () => void) =>
      this.park(owner, `timer ${ms}`, fn, { delayMs: Math.ceil(ms) });
    return {
      after,
      elapsedMs: () => this.time,
      soon: (fn) => void this.park(owner, "soon", fn),
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason);
          const aborted = () => {
            cancel();
            reject(signal?.reason);
          };
          const cancel = after(ms, () => {
            signal?.removeEventListener("abort", aborted);
            resolve();
          });
          signal?.addEventListener("abort", aborted, { once: true });
        }),
    };
  }

  #due(): readonly Parked[] {
    return this.#parked.filter(({ dueAt }) => dueAt <= this.#time);
  }

  #remove(index: number): void {
    if (index >= 0) this.#parked.splice(index, 1);
  }
}

/** Virtual time as one machine's wall clock shows it: right or wrong, and movable. */
export class WallClock implements Clock {
  readonly #queue: RunQueue;
  /** By how much it was moved altogether: time that passed while everybody slept. */
  jumped = 0;
  #offset: number;

  constructor(queue: RunQueue, startMs: number) {
    this.#queue = queue;
    this.#offset = startMs;
  }

  now(): number {
    return this.#queue.time + this.#offset;
  }

  jump(ms: number): void {
    this.#offset += ms;
    this.jumped += ms;
  }
}

/** Runs every promise that can continue: after this, the rest is parked. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
