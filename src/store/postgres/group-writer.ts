import { SallyportError } from "../../model/errors.ts";
import { invariant } from "../../util/error-text.ts";
import type { Timers } from "../../util/timers.ts";
import type { ChangeResult, Row, Step, Table } from "../engine.ts";
import { holds, isEffect } from "../evaluate.ts";
import type { Waiting } from "../group-commit.ts";
import type { Turn } from "../turn.ts";
import { asStoreError, isAboutTheGroup, isLockTimeout } from "./connection.ts";
import { HeadLost, type LostTail } from "./lost-tail.ts";
import type { WriteSession } from "./session.ts";
import type { Keyed, Work } from "./statements.ts";

export interface GroupWriterOptions {
  readonly session: WriteSession;
  readonly tail: LostTail;
  readonly timers: Timers;
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
    const now = this.#options.timers.elapsedMs();
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
    const { patienceMs, timers } = this.#options;
    const first = Math.min(...members.map(({ since }) => since));
    return Math.max(first + patienceMs, timers.elapsedMs() + GRACE_MS);
  }
}

/** One change of a group that is being written. */
export interface Member {
  readonly waiting: Waiting;
  readonly turn: Turn;
  /** What its steps left behind, as far as they held. */
  readonly rows: Row[];
  /** Set when it was refused, and at the end. */
  answer: ChangeResult | undefined;
}

/** Some changes did not hold after a part of them was written: the transaction must go, and the rest be written again. */
export class GroupSpoiled extends Error {
  override readonly name = "GroupSpoiled";
  /** What those are told. It was read with the turn in hand, so it is true although nothing was written. */
  readonly refused: ReadonlyMap<Waiting, ChangeResult>;

  constructor(refused: ReadonlyMap<Waiting, ChangeResult>) {
    super("a change of the group was refused half way");
    this.refused = refused;
  }
}

/** Changes that nobody may make while the clock cannot be trusted. Nothing was written. */
export class ClockRefused extends Error {
  override readonly name = "ClockRefused";
  readonly refused: ReadonlyMap<Waiting, SallyportError>;

  constructor(refused: ReadonlyMap<Waiting, SallyportError>) {
    super("the clock of the database cannot be trusted");
    this.refused = refused;
  }
}

/** Records as a step left or met them. No two changes of a group write the same one, or look at one that another writes. */
export class Left {
  readonly #tables = new Map<Table, Map<string, Row>>();

  put(table: Table, rows: readonly Row[]): void {
    const kept = this.#tables.get(table) ?? new Map<string, Row>();
    this.#tables.set(table, kept);
    for (const row of rows) kept.set(`${row["tenant"]}\n${row["id"]}`, row);
  }

  get({ tenant, step }: Work<Keyed>): Row | undefined {
    return this.#tables.get(step.table)?.get(`${tenant}\n${step.id}`);
  }
}

/** Goes over what the steps left behind, up to the first that does not hold; gives that one back. */
export function firstRefused(member: Member, left: Left): Keyed | undefined {
  const { waiting, turn, rows } = member;
  for (const step of waiting.change.steps) {
    if (step.op === "take") continue;
    const row = left.get({ tenant: waiting.tenant, step });
    if (!isMet(step, row, turn.now)) return step;
    rows.push(row ?? {});
  }
  return undefined;
}

function isMet(step: Keyed, row: Row | undefined, at: number): boolean {
  if (step.op !== "require") return row !== undefined;
  return row === undefined ? step.absent === "holds" : holds(row, step.where, at);
}

/** Its steps were sent together: true when one of them wrote something, which has to be rolled back. */
export function refuse(member: Member, left: Left, current: Row | undefined): boolean {
  const { waiting, rows } = member;
  member.answer = { committed: false, step: rows.length, current };
  const { tenant, change } = waiting;
  return change.steps.some((step) => isWrite(step) && left.get({ tenant, step }) !== undefined);
}

function isWrite(step: Step): step is Exclude<Keyed, { op: "require" }> {
  return step.op !== "take" && step.op !== "require";
}

export function isTaker({ change }: Waiting): boolean {
  return change.steps[0]?.op === "take";
}

export function answerOf({ answer }: Member): ChangeResult {
  invariant(answer !== undefined, "every member of a group gets an answer");
  return answer;
}

export function seal(member: Member): void {
  if (member.answer !== undefined) return;
  const { waiting, turn, rows } = member;
  turn.append(waiting.change, rows);
  const { seq, hash } = turn.head;
  member.answer = { committed: true, at: turn.now, rows, seq, hash };
}
