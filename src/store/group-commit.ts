import { SallyportError } from "../model/errors.ts";
import type { Timers } from "../util/timers.ts";
import { type Change, type ChangeResult, checkTake, type Step } from "./engine.ts";
import { isUrgent, sizeOf } from "./evaluate.ts";

/** One asked-for change that waits for its group. */
export interface Waiting {
  readonly tenant: string;
  readonly change: Change;
  /** When it was asked for, by the stopwatch of the timers. */
  readonly since: number;
  /** About how many bytes it is. */
  readonly size: number;
  resolve(result: ChangeResult): void;
  reject(error: unknown): void;
}

export interface GroupCommitOptions {
  /** Writes a group in one transaction and settles every member, at once or later. */
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
  /** A group is closed at about this many bytes; a change larger than that is written alone. */
  readonly maxGroupBytes?: number;
  /** Past this many waiting changes new ones are refused, so that memory stays bounded when the disk cannot follow. */
  readonly maxWaiting?: number;
  readonly maxWaitingBytes?: number;
  /** The most that one tenant may have waiting, so that there is room left for the others. */
  readonly maxWaitingOfTenant?: number;
  readonly maxWaitingBytesOfTenant?: number;
}

/**
 * Changes asked for at the same time share one transaction and so one fsync. The first one waits until the event loop has
 * run what is ready, which is when the others arrive; a lone caller waits for nobody. Urgent changes (`isUrgent`) go into the
 * next group and are never refused for want of room.
 */
export class GroupCommit {
  readonly #options: Required<GroupCommitOptions>;
  readonly #underWay = new Set<Promise<void>>();
  readonly #load = new Load();
  #urgent: Waiting[] = [];
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
    const urgent = isUrgent(change);
    const size = sizeOf(change);
    const busy = urgent ? undefined : this.#load.refusal(tenant, size, this.#options);
    if (busy !== undefined) return Promise.reject(busy);
    return new Promise((resolve, reject) => {
      checkTake(change);
      const one = {
        tenant,
        change,
        since: this.#options.timers.elapsedMs(),
        size,
        resolve,
        reject,
      };
      if (this.#isAlone()) return this.#writeNow(one);
      (urgent ? this.#urgent : this.#waiting).push(one);
      this.#load.add(one);
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
    const { lanes, timers } = this.#options;
    while (this.#urgent.length + this.#waiting.length > 0) {
      while (this.#underWay.size >= lanes()) await Promise.race(this.#underWay);
      await new Promise<void>((resolve) => timers.soon(resolve));
      this.#start(this.#nextGroup());
    }
    this.#running = undefined;
  }

  #nextGroup(): readonly Waiting[] {
    const { maxGroup, maxGroupBytes, split } = this.#options;
    const urgent = this.#urgent;
    const queue = urgent.length === 0 ? this.#waiting : urgent.concat(this.#waiting);
    const all = queue.length;
    const half = this.#underWay.size === 0 && split(all);
    const most = half ? Math.ceil(all / 2) : maxGroup;
    const { group, rest } = takeGroup(queue, most, maxGroupBytes);
    this.#waiting = rest;
    if (urgent.length > 0) {
      const left = new Set(rest);
      this.#urgent = urgent.filter((one) => left.has(one));
      this.#waiting = rest.slice(this.#urgent.length);
    }
    for (const one of group) this.#load.remove(one);
    this.#lone = all === 1 ? this.#lone + 1 : 0;
    this.#sinceTurn = 0;
    return group;
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
    const failed = (error: unknown) => {
      for (const one of group) one.reject(error);
    };
    try {
      const written = this.#options.write(group);
      if (written === undefined) return;
      const writing = written.catch(failed).then(() => {
        this.#underWay.delete(writing);
      });
      this.#underWay.add(writing);
    } catch (error) {
      failed(error);
    }
  }
}

/** How much waits, altogether and of each tenant. */
class Load {
  readonly #tenants = new Map<string, { count: number; bytes: number }>();
  #count = 0;
  #bytes = 0;

  add({ tenant, size }: Waiting): void {
    const own = this.#tenants.get(tenant) ?? { count: 0, bytes: 0 };
    own.count += 1;
    own.bytes += size;
    this.#tenants.set(tenant, own);
    this.#count += 1;
    this.#bytes += size;
  }

  remove({ tenant, size }: Waiting): void {
    this.#count -= 1;
    this.#bytes -= size;
    const own = this.#tenants.get(tenant);
    if (own === undefined) return;
    own.count -= 1;
    own.bytes -= size;
    if (own.count === 0) this.#tenants.delete(tenant);
  }

  /** Set when there is no room for another change of this size. */
  refusal(
    tenant: string,
    size: number,
    most: Required<GroupCommitOptions>,
  ): SallyportError | undefined {
    const { count, bytes } = this.#tenants.get(tenant) ?? { count: 0, bytes: 0 };
    // What waits for nobody is taken, however large it is.
    const isFull = (number: number, waiting: number, mostNumber: number, mostBytes: number) =>
      number >= mostNumber || (number > 0 && waiting + size > mostBytes);
    if (isFull(count, bytes, most.maxWaitingOfTenant, most.maxWaitingBytesOfTenant)) {
      const hint = "This tenant has too much waiting. Ask again in a moment.";
      return new SallyportError("store_busy", { waiting: count, bytes, hint });
    }
    if (!isFull(this.#count, this.#bytes, most.maxWaiting, most.maxWaitingBytes)) return undefined;
    const hint = "Ask again in a moment, or let fewer callers write at once.";
    return new SallyportError("store_busy", { waiting: this.#count, bytes: this.#bytes, hint });
  }
}

const DEFAULTS = {
  maxGroup: 256,
  maxGroupBytes: 4_000_000,
  maxWaiting: 50_000,
  maxWaitingBytes: 256_000_000,
  maxWaitingOfTenant: 25_000,
  maxWaitingBytesOfTenant: 128_000_000,
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
  maxBytes: number,
): { group: Waiting[]; rest: Waiting[] } {
  // A lone caller is in nobody's way.
  if (waiting.length === 1) return { group: [...waiting], rest: [] };
  const written = new Set<string>();
  const looked = new Set<string>();
  const group: Waiting[] = [];
  const rest: Waiting[] = [];
  let bytes = 0;
  const seen = Math.min(waiting.length, SCAN * maxGroup);
  for (const one of waiting.slice(0, seen)) {
    let free = group.length < maxGroup && (group.length === 0 || bytes + one.size <= maxBytes);
    for (const step of one.change.steps) {
      const key = keyOf(one.tenant, step);
      if (key === undefined) continue;
      if (written.has(key) || (step.op !== "require" && looked.has(key))) free = false;
    }
    (free ? group : rest).push(one);
    if (free) bytes += one.size;
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
