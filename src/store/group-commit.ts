import { SallyportError } from "../model/errors.ts";
import type { Timers } from "../util/timers.ts";
import { checkTake } from "./check-take.ts";
import type { Change, ChangeResult, Step } from "./engine.ts";

/** One asked-for change that waits for its group. */
export interface Waiting {
  readonly tenant: string;
  readonly change: Change;
  resolve(result: ChangeResult): void;
  reject(error: unknown): void;
}

export interface GroupCommitOptions {
  /** Writes a group in one transaction and settles every member, at once or later; it must not throw. */
  readonly write: (group: readonly Waiting[]) => Promise<void> | undefined;
  readonly timers: Timers;
  /** Larger groups share more of one fsync, and make each member wait longer. */
  readonly maxGroup?: number;
  /** How many groups may be under way at once; whoever writes them keeps their order. One, unless told otherwise. */
  readonly lanes?: () => number;
  /** Whether so many waiting changes are better written as two groups, one while the other is answered. */
  readonly split?: (waiting: number) => boolean;
  /**
   * Of a caller who has been alone for a while so many changes are written at once, before others get the chance to join,
   * which takes as long as a page of the write itself. None, unless told otherwise: it holds up the event loop that much.
   */
  readonly loneRun?: number;
  /** Past this many waiting changes new ones are refused, so that memory stays bounded when the disk cannot follow. */
  readonly maxWaiting?: number;
}

/**
 * Changes asked for at the same time share one transaction and so one fsync. The first one waits until the event loop has
 * run what is ready, which is when the others arrive; a lone caller waits for nobody.
 */
export class GroupCommit {
  readonly #options: Required<GroupCommitOptions>;
  readonly #underWay = new Set<Promise<void>>();
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  /** How many groups in a row had one member although others had had the chance to join. */
  #lone = 0;
  /** How many changes were written at once since others had the chance. */
  #sinceTurn = 0;
  /** Whoever comes while this is set comes together with the one that was just written at once. */
  #wroteNow = false;
  #closed = false;

  constructor(options: GroupCommitOptions) {
    this.#options = { ...DEFAULTS, ...options };
  }

  submit(tenant: string, change: Change): Promise<ChangeResult> {
    if (this.#closed) return Promise.reject(new SallyportError("store_closed"));
    if (this.#waiting.length >= this.#options.maxWaiting) {
      const hint = "Ask again in a moment, or let fewer callers write at once.";
      return Promise.reject(
        new SallyportError("store_busy", { waiting: this.#waiting.length, hint }),
      );
    }
    return new Promise((resolve, reject) => {
      checkTake(change);
      const one = { tenant, change, resolve, reject };
      if (this.#isAlone()) return this.#writeNow(one);
      this.#waiting.push(one);
      this.#running ??= this.#run();
    });
  }

  /** Refuses new changes and waits for those already asked for. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    await Promise.all(this.#underWay);
  }

  async #run(): Promise<void> {
    const { lanes, maxGroup, split, timers } = this.#options;
    while (this.#waiting.length > 0) {
      while (this.#underWay.size >= lanes()) await Promise.race(this.#underWay);
      await new Promise<void>((resolve) => timers.soon(resolve));
      const all = this.#waiting.length;
      const half = this.#underWay.size === 0 && split(all);
      const { group, rest } = takeGroup(this.#waiting, half ? Math.ceil(all / 2) : maxGroup);
      this.#waiting = rest;
      this.#lone = all === 1 ? this.#lone + 1 : 0;
      this.#sinceTurn = 0;
      this.#start(group);
    }
    this.#running = undefined;
  }

  #isAlone(): boolean {
    if (this.#lone < LONE || this.#sinceTurn >= this.#options.loneRun) return false;
    return !this.#wroteNow && this.#running === undefined && this.#underWay.size === 0;
  }

  #writeNow(one: Waiting): void {
    this.#sinceTurn += 1;
    this.#wroteNow = true;
    queueMicrotask(() => {
      this.#wroteNow = false;
    });
    this.#start([one]);
  }

  #start(group: readonly Waiting[]): void {
    const written = this.#options.write(group);
    if (written === undefined) return;
    const writing = written.then(() => {
      this.#underWay.delete(writing);
    });
    this.#underWay.add(writing);
  }
}

const DEFAULTS = {
  maxGroup: 256,
  maxWaiting: 50_000,
  loneRun: 0,
  lanes: () => 1,
  split: () => false,
};

/** So many groups of one in a row, and the caller counts as alone. */
const LONE = 8;

/**
 * The longest run of waiting changes that may share a transaction in any order: when two changes touch the same record and
 * one of them writes it, they must be seen one after the other, so the second one waits for the next group.
 */
export function takeGroup(
  waiting: readonly Waiting[],
  maxGroup: number,
): { group: Waiting[]; rest: Waiting[] } {
  // A lone caller is in nobody's way.
  if (waiting.length === 1) return { group: [...waiting], rest: [] };
  const written = new Set<string>();
  const looked = new Set<string>();
  const group: Waiting[] = [];
  const rest: Waiting[] = [];
  const seen = Math.min(waiting.length, SCAN * maxGroup);
  for (const one of waiting.slice(0, seen)) {
    let free = group.length < maxGroup;
    for (const step of one.change.steps) {
      const key = keyOf(one.tenant, step);
      if (key === undefined) continue;
      if (written.has(key) || (step.op !== "require" && looked.has(key))) free = false;
    }
    (free ? group : rest).push(one);
    // A change left for later holds its records too, or a third one would overtake it.
    for (const step of one.change.steps) {
      const key = keyOf(one.tenant, step);
      if (key !== undefined) (step.op === "require" ? looked : written).add(key);
    }
  }
  return { group, rest: rest.concat(waiting.slice(seen)) };
}

/** How far behind a group's worth we look for members: enough to fill it past conflicts, and no work that grows. */
const SCAN = 4;

/**
 * A take names no record, and it needs none: it is a change of one step, so it comes before or after each of the others,
 * and finds its rows either way.
 */
function keyOf(tenant: string, step: Step): string | undefined {
  if (step.op === "take") return undefined;
  return `${step.table.name}\n${tenant}\n${step.id}`;
}
