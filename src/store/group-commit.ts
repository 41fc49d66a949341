import { SallyportError } from "../model/errors.ts";
import type { Timers } from "../util/timers.ts";
import {
  type Change,
  type ChangeResult,
  checkTake,
  isUrgent,
  type Step,
  sizeOf,
} from "./engine.ts";

/** A submitted change that waits for its group. */
export interface Waiting {
  readonly tenant: string;
  readonly change: Change;
  /** When it was submitted, by the stopwatch of the timers. */
  readonly since: number;
  /** Approximate size in bytes. */
  readonly size: number;
  resolve(result: ChangeResult): void;
  reject(error: unknown): void;
}

export interface GroupCommitOptions {
  /** Writes a group in one transaction and settles every member. */
  readonly write: (group: readonly Waiting[]) => Promise<void>;
  readonly timers: Timers;
  /** In a larger group more changes share one fsync, and each of them waits longer. */
  readonly maxGroup?: number;
  /** How many groups may be in flight concurrently; `write` keeps their order. Default: one. */
  readonly lanes?: () => number;
  /** Whether this number of waiting changes is better written as two groups, one while the other is answered. */
  readonly split?: (waiting: number) => boolean;
  /** A group is closed at about this many bytes; a change larger than that is written alone. */
  readonly maxGroupBytes?: number;
  /** With this many changes waiting, new ones are refused, so that a slow disk does not fill the memory. */
  readonly maxWaiting?: number;
  readonly maxWaitingBytes?: number;
  /** The limit for one tenant, so that there is room left for the others. */
  readonly maxWaitingOfTenant?: number;
  readonly maxWaitingBytesOfTenant?: number;
}

/**
 * Changes submitted at the same time share one transaction and so one fsync. The first one waits until the event loop has
 * run what is ready, so that concurrent ones can join. Urgent changes (`isUrgent`) go into the next group and are never
 * refused because the queue is full.
 */
export class GroupCommit {
  readonly #options: Required<GroupCommitOptions>;
  readonly #underWay = new Set<Promise<void>>();
  readonly #load = new Load();
  #urgent: Waiting[] = [];
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
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
      (urgent ? this.#urgent : this.#waiting).push(one);
      this.#load.add(one);
      this.#running ??= this.#run();
    });
  }

  /** Refuses new changes and waits for those already submitted. */
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
    return group;
  }

  #start(group: readonly Waiting[]): void {
    const writing = this.#write(group).then(() => {
      this.#underWay.delete(writing);
    });
    this.#underWay.add(writing);
  }

  async #write(group: readonly Waiting[]): Promise<void> {
    try {
      await this.#options.write(group);
    } catch (error) {
      for (const one of group) one.reject(error);
    }
  }
}

/** The size of the queue, in total and per tenant. */
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

  /** The error when there is no room for another change of this size, otherwise undefined. */
  refusal(
    tenant: string,
    size: number,
    most: Required<GroupCommitOptions>,
  ): SallyportError | undefined {
    const { count, bytes } = this.#tenants.get(tenant) ?? { count: 0, bytes: 0 };
    // A change that is alone in the queue is accepted, however large it is.
    const isFull = (number: number, waiting: number, mostNumber: number, mostBytes: number) =>
      number >= mostNumber || (number > 0 && waiting + size > mostBytes);
    if (isFull(count, bytes, most.maxWaitingOfTenant, most.maxWaitingBytesOfTenant)) {
      const hint = "This tenant has too many changes waiting. Try again in a moment.";
      return new SallyportError("store_busy", { waiting: count, bytes, hint });
    }
    if (!isFull(this.#count, this.#bytes, most.maxWaiting, most.maxWaitingBytes)) return undefined;
    const hint = "Try again in a moment, or let fewer callers write concurrently.";
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
  lanes: () => 1,
  split: () => false,
};

/**
 * The longest run of waiting changes that may share a transaction in any order. When two changes touch the same record and
 * one of them writes it, the second waits for the next group, because their order matters.
 */
export function takeGroup(
  waiting: readonly Waiting[],
  maxGroup: number,
  maxBytes: number,
): { group: Waiting[]; rest: Waiting[] } {
  // A single change cannot conflict.
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
    // A change that is left for later also blocks its records, or a third one would overtake it.
    for (const step of one.change.steps) {
      const key = keyOf(one.tenant, step);
      if (key !== undefined) (step.op === "require" ? looked : written).add(key);
    }
  }
  return { group, rest: rest.concat(waiting.slice(seen)) };
}

/** How many times the group size is searched for members: enough to fill the group past conflicts, at bounded cost. */
const SCAN = 4;

/**
 * A take names no record and has no conflict: it is a change of one step, so it comes before or after each of the others,
 * and its result is valid either way.
 */
function keyOf(tenant: string, step: Step): string | undefined {
  if (step.op === "take") return undefined;
  return `${step.table.name}\n${tenant}\n${step.id}`;
}
