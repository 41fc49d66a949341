import { SallyportError } from "../../model/errors.ts";
import type { Timers } from "../../util/timers.ts";
import { type Change, type ChangeResult, startsEffect } from "../engine.ts";
import { GroupCommit, takeGroup, type Waiting } from "../group-commit.ts";
import { asStoreError, isAboutTheGroup, isLockTimeout, type Lines } from "./connection.ts";
import { lockMsOf, type SessionOptions, WriteSession } from "./session.ts";
import { ClockRefused, GroupSpoiled, HeadLost, type Seen } from "./writer.ts";

export interface WritePathOptions {
  readonly lines: Lines;
  readonly schema: string;
  /** Sends a group as one transaction; failures of that are handled here. */
  readonly writer: SessionOptions["writer"];
  /** Writes the groups that it knows in one statement. */
  readonly hot?: SessionOptions["hot"];
  readonly tail: LostTail;
  readonly timers: Timers;
  readonly patienceMs: number;
  readonly onCommit: () => void;
}

export interface WritePath {
  commit(tenant: string, change: Change): Promise<ChangeResult>;
  /** Waits for the changes already submitted. */
  drain(): Promise<void>;
  close(): void;
}

/** From a submitted change to its answer: grouped, written, retried, and looked up when the answer to a COMMIT was lost. */
export function writePath(options: WritePathOptions): WritePath {
  const { tail, timers } = options;
  const slow = new SlowLane({ ...options, session: new WriteSession(options) });
  const session = new WriteSession(options);
  const onHeld = (members: readonly Waiting[]) => slow.add(members);
  const divert = (one: Waiting) => slow.has(one.tenant) && slow.add([one]);
  const main = new GroupWriter({ ...options, session, divert, onHeld });
  const group = new GroupCommit({ write: (members) => main.write(members), timers });
  return {
    commit(tenant, change) {
      if (tail.of(tenant) === undefined) return group.submit(tenant, change);
      return tail.lookAgain(tenant).then(() => group.submit(tenant, change));
    },
    async drain() {
      await group.close();
      await slow.close();
    },
    close: () => session.close(),
  };
}

export interface GroupWriterOptions {
  readonly session: WriteSession;
  readonly tail: LostTail;
  readonly timers: Timers;
  readonly patienceMs: number;
  /** True when it took the member over, because its tenant is written by the slow lane. */
  readonly divert?: (one: Waiting) => boolean;
  /** Receives members of one tenant that wait for a locked row. They are not settled yet. */
  readonly onHeld: (members: readonly Waiting[], error: unknown) => void;
  readonly onCommit: () => void;
}

/** Time for an attempt even if its members have waited for long. */
const GRACE_MS = 1_000;

/** Writes groups and settles every member. A failure of one costs the others one more transaction, not their answer. */
export class GroupWriter {
  readonly #options: GroupWriterOptions;

  constructor(options: GroupWriterOptions) {
    this.#options = options;
  }

  async write(group: readonly Waiting[]): Promise<void> {
    const members = this.#own(group);
    if (members.length === 0) return;
    const { session, onCommit } = this.#options;
    try {
      const results = await session.commit(members, this.#deadlineOf(members));
      for (const [index, one] of members.entries()) {
        const result = results[index];
        if (result === undefined) one.reject(new SallyportError("commit_unknown"));
        else one.resolve(result);
      }
      onCommit();
    } catch (error) {
      await this.#failed(members, error);
    }
  }

  async #failed(members: readonly Waiting[], error: unknown): Promise<void> {
    if (error instanceof GroupSpoiled) {
      const rest = members.filter((one) => !error.refused.has(one));
      for (const [one, refusal] of error.refused) one.resolve(refusal);
      return this.write(rest);
    }
    if (error instanceof ClockRefused) {
      for (const [one, reason] of error.refused) one.reject(reason);
      return this.write(members.filter((one) => !error.refused.has(one)));
    }
    if (error instanceof HeadLost) {
      await this.#options.tail.note(error);
      return this.write(members);
    }
    if (isLockTimeout(error)) return this.#held(members, error);
    if (isAboutTheGroup(error)) return this.#halves(members, error);
    // The server is away. Members that came later still have time and are tried again.
    const now = this.#options.timers.elapsedMs();
    const late = members.filter(({ since }) => since + this.#options.patienceMs <= now);
    const isOver = late.length === 0 || error instanceof SallyportError;
    for (const one of isOver ? members : late) one.reject(asStoreError(error));
    if (!isOver) return this.write(members.filter((one) => !late.includes(one)));
  }

  /** The database refuses one of them; halving finds it in a few transactions. */
  async #halves(members: readonly Waiting[], error: unknown): Promise<void> {
    if (members.length === 1) {
      for (const one of members) one.reject(asStoreError(error));
      return;
    }
    const middle = Math.ceil(members.length / 2);
    await this.write(members.slice(0, middle));
    await this.write(members.slice(middle));
  }

  /** Another connection has locked a row. Only the tenants whose rows are locked wait for it. */
  async #held(members: readonly Waiting[], error: unknown): Promise<void> {
    const { session, onHeld } = this.#options;
    const tenants = Map.groupBy(members, ({ tenant }) => tenant);
    if (tenants.size === 1) return onHeld(members, error);
    const held = await session
      .heldOf([...tenants.keys()], this.#deadlineOf(members))
      .catch(() => new Set<string>());
    if (held.size > 0) {
      for (const tenant of held) onHeld(tenants.get(tenant) ?? [], error);
      return this.write(members.filter(({ tenant }) => !held.has(tenant)));
    }
    // The locked row is not a chain, or it is free again.
    for (const own of tenants.values()) await this.write(own);
  }

  /** Leaves out what the slow lane writes. After a loss it rejects effects, also those submitted before it was noticed. */
  #own(group: readonly Waiting[]): readonly Waiting[] {
    const { divert, tail } = this.#options;
    const own = divert === undefined ? group : group.filter((one) => !divert(one));
    if (!tail.isSet) return own;
    return own.filter((one) => {
      const lost = startsEffect(one.change) ? tail.of(one.tenant) : undefined;
      if (lost !== undefined) one.reject(lost);
      return lost === undefined;
    });
  }

  #deadlineOf(members: readonly Waiting[]): number {
    const { patienceMs, timers } = this.#options;
    const first = Math.min(...members.map(({ since }) => since));
    return Math.max(first + patienceMs, timers.elapsedMs() + GRACE_MS);
  }
}

const MAX_GROUP = 256;
const MAX_GROUP_BYTES = 4_000_000;
const MAX_WAITING = 10_000;

/**
 * Where tenants wait whose rows another connection has locked, so that they delay only each other. Such a tenant is written
 * here, in the order in which its changes were submitted, until its queue is empty; then it is written with the others again.
 * The lane has a connection of its own while anything waits. It is here for isolation, not for speed.
 */
export class SlowLane {
  readonly #options: Omit<GroupWriterOptions, "onHeld">;
  readonly #writer: GroupWriter;
  readonly #queues = new Map<string, readonly Waiting[]>();
  /** What the current attempt could not write. */
  #held: readonly Waiting[] = [];
  #error: unknown;
  #running: Promise<void> | undefined;

  constructor(options: Omit<GroupWriterOptions, "onHeld">) {
    this.#options = options;
    this.#writer = new GroupWriter({
      ...options,
      onHeld: (members, error) => {
        this.#held = [...this.#held, ...members];
        this.#error = error;
      },
    });
  }

  has(tenant: string): boolean {
    return this.#queues.has(tenant);
  }

  /** Takes members of one tenant. Always true: they are settled here. */
  add(members: readonly Waiting[]): true {
    const tenant = members[0]?.tenant ?? "";
    const queue = this.#queues.get(tenant) ?? [];
    const room = Math.max(MAX_WAITING - queue.length, 0);
    this.#queues.set(tenant, [...queue, ...members.slice(0, room)]);
    for (const one of members.slice(room)) {
      const hint = "A row of this tenant is locked, and too many changes wait for it already.";
      one.reject(new SallyportError("store_busy", { waiting: queue.length, hint }));
    }
    this.#running ??= this.#run();
    return true;
  }

  /** Waits until every queued change is answered. */
  async close(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let waiting = this.#waiting(); waiting.length > 0; waiting = this.#waiting()) {
      for (const tenant of waiting) await this.#turnOf(tenant);
    }
    this.#options.session.close();
    this.#running = undefined;
  }

  #waiting(): string[] {
    return [...this.#queues].filter(([, queue]) => queue.length > 0).map(([tenant]) => tenant);
  }

  async #turnOf(tenant: string): Promise<void> {
    const { group, rest } = takeGroup(this.#queues.get(tenant) ?? [], MAX_GROUP, MAX_GROUP_BYTES);
    this.#queues.set(tenant, rest);
    this.#held = [];
    await this.#writer.write(group);
    const queue = [...this.#held, ...(this.#queues.get(tenant) ?? [])];
    if (this.#held.length === 0) {
      if (queue.length === 0) this.#queues.delete(tenant);
      return;
    }
    // A change that has no time for another attempt is rejected now.
    const { patienceMs, timers } = this.#options;
    const soon = timers.elapsedMs() + lockMsOf(patienceMs);
    const isLate = ({ since }: Waiting) => since + patienceMs <= soon;
    for (const one of queue.filter(isLate)) one.reject(asStoreError(this.#error));
    this.#queues.set(
      tenant,
      queue.filter((one) => !isLate(one)),
    );
  }
}

/**
 * Remembers that the server lost what it had acknowledged: a lagging standby was promoted, or an older copy was put in place
 * under a running process. From then on no effect begins, because its approval may have been used in the lost part, until an
 * operator begins another epoch (`sallyport store restored`). Everything else continues.
 */
export class LostTail {
  readonly #seen = new Map<string, Seen>();
  readonly #fences = new Map<string, number>();
  readonly #epochs: () => Promise<ReadonlyMap<string, string>>;
  #error: SallyportError | undefined;
  /** The epoch of each tenant when the loss was noticed; undefined until it was read. */
  #then: ReadonlyMap<string, string> | undefined;
  readonly #cleared = new Set<string>();

  /** `epochs` reads the current epoch of each tenant. */
  constructor(epochs: () => Promise<ReadonlyMap<string, string>>) {
    this.#epochs = epochs;
  }

  /** What this process saw last of a tenant's chain. */
  seenOf(tenant: string): Seen | undefined {
    return this.#seen.get(tenant);
  }

  remember({ tenant, seq, hash }: Seen & { readonly tenant: string }): void {
    this.#seen.set(tenant, { seq, hash });
  }

  /** See `HOT_FUNCTION`: 0 until a statement of any process had to be made harmless. */
  fenceOf(tenant: string): number {
    return this.#fences.get(tenant) ?? 0;
  }

  rememberFence(tenant: string, fence: number): void {
    if (fence === 0) this.#fences.delete(tenant);
    else this.#fences.set(tenant, fence);
  }

  /** Whether anything was found to be lost. */
  get isSet(): boolean {
    return this.#error !== undefined;
  }

  /** Accepts the chain as it is now, and blocks effects. */
  async note({ tenant, seen, found }: HeadLost): Promise<void> {
    this.#seen.delete(tenant);
    this.#cleared.clear();
    const hint =
      "The database lost what it had acknowledged, as a failover to a standby that lags does. Nothing is executed until you have looked: stop the processes, run sallyport store restored, start them.";
    this.#error ??= new SallyportError("store_rolled_back", { remembered: seen, found, hint });
    this.#then = undefined;
    await this.#read();
  }

  /** The error to reject effects of this tenant with; undefined while they may begin. */
  of(tenant: string): SallyportError | undefined {
    return this.#cleared.has(tenant) ? undefined : this.#error;
  }

  /** Checks whether an operator has begun another epoch since. */
  async lookAgain(tenant: string): Promise<void> {
    if (this.of(tenant) === undefined) return;
    const now = await this.#read();
    if (now === undefined || this.#then === undefined) return;
    if (now.get(tenant) !== this.#then.get(tenant)) this.#cleared.add(tenant);
  }

  async #read(): Promise<ReadonlyMap<string, string> | undefined> {
    try {
      const now = await this.#epochs();
      this.#then ??= now;
      return now;
    } catch {
      // The epochs cannot be read now, so effects stay blocked.
      return undefined;
    }
  }
}
