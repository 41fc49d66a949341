import { SallyportError } from "../../model/errors.ts";
import { stopwatch } from "../../util/clock.ts";
import { isEffect } from "../change-kinds.ts";
import type { Waiting } from "../group-commit.ts";
import { asStoreError, isAboutTheGroup, isLockTimeout } from "./connection.ts";
import { HeadLost, type LostTail } from "./lost-tail.ts";
import { ClockRefused, GroupSpoiled } from "./members.ts";
import type { WriteSession } from "./session.ts";

export interface GroupWriterOptions {
  readonly session: WriteSession;
  readonly tail: LostTail;
  readonly patienceMs: number;
  /** True when it took the member over, because its tenant is written elsewhere. */
  readonly divert?: (one: Waiting) => boolean;
  /** Told of members, all of one tenant, that wait for a row which somebody holds. They are not settled yet. */
  readonly onHeld: (members: readonly Waiting[], error: unknown) => void;
  readonly onCommit: () => void;
}

/** Who waited long already still gets this long for its turn. */
const GRACE_MS = 1_000;

/** Writes groups and settles every member. What is wrong with one of them costs the others one more transaction, not their answer. */
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
    // The server is away. Who came later than the others has time left, and is tried again.
    const now = stopwatch.now();
    const late = members.filter(({ since }) => since + this.#options.patienceMs <= now);
    const isOver = late.length === 0 || error instanceof SallyportError;
    for (const one of isOver ? members : late) one.reject(asStoreError(error));
    if (!isOver) return this.write(members.filter((one) => !late.includes(one)));
  }

  /** One of them is refused by the database; halving finds it in a few transactions. */
  async #halves(members: readonly Waiting[], error: unknown): Promise<void> {
    if (members.length === 1) {
      for (const one of members) one.reject(asStoreError(error));
      return;
    }
    const middle = Math.ceil(members.length / 2);
    await this.write(members.slice(0, middle));
    await this.write(members.slice(middle));
  }

  /** Somebody holds a row. Only the tenants whose rows are held wait for it. */
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
    // It is another row than a chain's, or it is free again.
    for (const own of tenants.values()) await this.write(own);
  }

  /** Without those that are written elsewhere; and after a loss no effect begins, also not one that was asked for before. */
  #own(group: readonly Waiting[]): readonly Waiting[] {
    const { divert, tail } = this.#options;
    const own = divert === undefined ? group : group.filter((one) => !divert(one));
    if (!tail.isSet) return own;
    return own.filter((one) => {
      const lost = isEffect(one.change) ? tail.of(one.tenant) : undefined;
      if (lost !== undefined) one.reject(lost);
      return lost === undefined;
    });
  }

  #deadlineOf(members: readonly Waiting[]): number {
    const first = Math.min(...members.map(({ since }) => since));
    return Math.max(first + this.#options.patienceMs, stopwatch.now() + GRACE_MS);
  }
}
