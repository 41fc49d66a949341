import type { SallyportError } from "../../model/errors.ts";
import { invariant } from "../../util/invariant.ts";
import type { ChangeResult, Row, Step, Table } from "../engine.ts";
import { holds } from "../evaluate.ts";
import type { Waiting } from "../group-commit.ts";
import type { Turn } from "../turn.ts";
import type { Keyed, Work } from "./statements.ts";

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
