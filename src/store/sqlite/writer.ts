import { type ChainHead, emptyHead } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { CLOCK, SWITCHES } from "../../model/switch.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import { type Clock, toIso } from "../../util/clock.ts";
import { invariant } from "../../util/error-text.ts";
import type { Random } from "../../util/random.ts";
import type { ClockWatch } from "../clock-watch.ts";
import type { Cell } from "../engine.ts";
import { Turn } from "../turn.ts";
import { Chains, isCommitInDoubt, overwriteFailedCommit } from "./chains.ts";
import { type Database, databaseClock, NOW_SQL, type Statement } from "./database.ts";

import {
  type Answer,
  type Cells,
  type EventOrder,
  type Order,
  type Place,
  type StepOrder,
  seal,
} from "./orders.ts";
import type { SetCell, Shape } from "./shapes.ts";

export interface WriterOptions {
  readonly database: Database;
  /** Grows while the writer works: an order names its shapes by their numbers. */
  readonly shapes: readonly Shape[];
  readonly random: Random;
  /** Compares the clock with time that nobody can set. */
  readonly clockWatch?: ClockWatch | undefined;
}

interface Prepared {
  readonly shape: Shape;
  readonly statement: Statement;
  readonly look: Statement;
  readonly change: Statement | undefined;
}

type Found = Cells | undefined;

/** A tenant's turn, and the number of its chain once there is one: a change that is refused begins none. */
interface ChainTurn {
  chain: number | undefined;
  readonly turn: Turn;
  /** What the clock said. */
  readonly time: number;
}

/** What is there instead of what a step asked for. */
interface Refused {
  readonly current: Found;
}

/** Writes a group of changes with their audit entries in one transaction. Synchronous: nothing comes between. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #prepared: Prepared[] = [];
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #mark: Statement;
  readonly #back: Statement;
  readonly #unmark: Statement;
  readonly #end: Statement;
  readonly #entry: Statement;
  readonly #accepted: Statement;
  readonly #clock: Clock;
  readonly chains: Chains;

  constructor(options: WriterOptions) {
    this.#options = options;
    const { database } = options;
    this.#clock = databaseClock(database);
    this.chains = new Chains(database);
    this.#begin = database.prepare("BEGIN IMMEDIATE");
    this.#commit = database.prepare("COMMIT");
    this.#mark = database.prepare("SAVEPOINT change");
    this.#back = database.prepare("ROLLBACK TO change");
    this.#unmark = database.prepare("RELEASE change");
    const end = `SELECT seq, hash, at, ${NOW_SQL} FROM audit WHERE ord > ? << 32 AND ord < (? + 1) << 32 ORDER BY ord DESC LIMIT 1`;
    this.#end = (database.prepare(end) as Statement).raw();
    const accepted = `SELECT state FROM ${SWITCHES.name} WHERE tenant = ? AND id = ?`;
    this.#accepted = (database.prepare(accepted) as Statement).pluck();
    this.#entry = database.prepare(
      "INSERT INTO audit (ord, at, type, subject, session, actor, data, salt, hash) VALUES ((? << 32) | ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
  }

  /**
   * Writes all changes of the group in one transaction and returns the answers in order. Throws commit_unknown when the
   * group may have been written; any other error means that nothing was written, which includes one member failing in a way
   * the database did not foresee, and clock_wrong, unless all of them are urgent. The time is the database's own, read when
   * the lock was got, unless a test supplies one.
   */
  write(
    group: readonly Order[],
    now: number | undefined,
    pace: "ordinary" | "urgent" = "ordinary",
  ): readonly Answer[] {
    const { database } = this.#options;
    this.#begin.run();
    try {
      let time = now;
      const turns = new Map<string, ChainTurn>();
      const answers = group.map((order) => {
        let turn = turns.get(order.tenant);
        if (turn === undefined) {
          turn = this.#turn(order.tenant, time);
          time ??= turn.time;
          turns.set(order.tenant, turn);
          const { clockTrouble } = turn.turn;
          if (clockTrouble !== undefined && pace === "ordinary") throw clockTrouble;
        }
        return this.#change(order, turn);
      });
      this.#commitGroup();
      return answers;
    } catch (error) {
      if (database.inTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  #commitGroup(): void {
    try {
      this.#commit.run();
    } catch (error) {
      if (isCommitInDoubt(error)) overwriteFailedCommit(this.#options.database, error);
      throw error;
    }
  }

  #turn(tenant: string, known: number | undefined): ChainTurn {
    const chain = this.chains.find(tenant);
    const end = this.#endOf(chain);
    const time = known ?? (end === undefined ? this.#clock.now() : Math.round(end[NOW] * 1000));
    const { random, clockWatch: watch } = this.#options;
    const accepted = () => String(this.#accepted.get(tenant, CLOCK) ?? "");
    const turn = new Turn(headOf(tenant, end), time, random, { watch, accepted });
    return { chain, time, turn };
  }

  #change(order: Order, its: ChainTurn): Answer {
    const { steps, tenant } = order;
    const { turn } = its;
    // A refusal after something was written needs a point to go back to; a last step alone does not.
    const savepoint = steps.length > 1 && steps.slice(0, -1).some((step) => this.#writes(step));
    if (savepoint) this.#mark.run();
    const rows: Cells[] = [];
    for (let index = 0; index < steps.length; index += 1) {
      const refused = this.#step(tenant, steps[index] as StepOrder, turn.now, rows);
      if (refused === undefined) continue;
      if (savepoint) {
        this.#back.run();
        this.#unmark.run();
      }
      return { step: index, current: refused.current };
    }
    for (const event of order.events) {
      if (!event.each) this.#append(event, rows, its);
      else for (const row of rows) this.#append(event, [row], its);
    }
    if (savepoint) this.#unmark.run();
    return { at: turn.now, seq: turn.head.seq, rows };
  }

  /** Adds the rows that the step leaves behind; answers what is there when it does not hold. */
  #step(tenant: string, step: StepOrder, at: number, rows: Cells[]): Refused | undefined {
    const { shape, statement, look, change } = this.#of(step);
    const values = step.times.length === 0 ? step.values : timed(step, at);
    if (shape.op === "insert") {
      const { changes, lastInsertRowid } = statement.run(values);
      if (changes > 0) rows.push([Number(lastInsertRowid), ...values]);
      return changes > 0 ? undefined : { current: look.get(tenant, step.id) as Found };
    }
    if (shape.sets !== undefined) {
      const found = look.get(tenant, step.id) as Found;
      const own = values.slice();
      own[shape.sets.length] = found?.[0] ?? null;
      if (found === undefined || statement.run(own).changes === 0) return { current: found };
      rows.push(afterSet(found, shape.sets, values));
      return undefined;
    }
    if (shape.change !== undefined && change !== undefined) {
      // Looks first and changes then: the rows that an UPDATE hands out come in no order.
      const { after } = shape.change;
      const best = (statement.all(values.slice(0, after)) as [number][]).map(([ord]) => ord);
      if (best.length === 0) return { current: undefined };
      const taken = change.all([...values.slice(after), JSON.stringify(best)]) as Cells[];
      const rank = new Map<Cell | undefined, number>(best.map((ord, index) => [ord, index]));
      rows.push(...taken.sort((a, b) => (rank.get(a[0]) ?? 0) - (rank.get(b[0]) ?? 0)));
      return undefined;
    }
    // What may be absent mostly is.
    if (shape.mayBeAbsent && look.get(tenant, step.id) === undefined) {
      rows.push([]);
      return undefined;
    }
    const row = statement.get(values) as Found;
    if (row === undefined) return { current: look.get(tenant, step.id) as Found };
    rows.push(row);
    return undefined;
  }

  #writes(step: StepOrder): boolean {
    return this.#of(step).shape.op !== "require";
  }

  #of({ shape: nr }: StepOrder): Prepared {
    let prepared = this.#prepared[nr];
    if (prepared === undefined) {
      const { database, shapes } = this.#options;
      const shape = shapes[nr];
      invariant(shape !== undefined, `no shape has the number ${nr}`);
      const statement = database.prepare(shape.sql) as Statement;
      prepared = {
        shape,
        statement: statement.reader ? statement.raw() : statement,
        look: (database.prepare(shape.look) as Statement).raw(),
        change: shape.change && (database.prepare(shape.change.sql) as Statement).raw(),
      };
      this.#prepared[nr] = prepared;
    }
    return prepared;
  }

  #append(event: EventOrder, rows: readonly Cells[], its: ChainTurn): void {
    const { draft, sealed } = this.#filled(event, rows);
    const entry = its.turn.chain(draft, sealed);
    const { tenant, seq, type, subject, session, actor, data, salt, hash } = entry;
    its.chain ??= this.chains.begin(tenant);
    this.#entry.run(
      its.chain,
      seq,
      its.turn.entryAt,
      type,
      subject,
      session,
      actor,
      data,
      salt,
      hash,
    );
  }

  /** An event with everything it speaks of filled in. Throws invalid_input. */
  #filled(event: EventOrder, rows: readonly Cells[]) {
    try {
      const { type, actor } = event;
      const subject = textOf(event.subject, rows);
      const session = textOf(event.session, rows);
      const sealed = event.sealed ?? seal(withFacts(event, rows), this.#options.random);
      return { draft: { type, subject, session, actor }, sealed };
    } catch (cause) {
      const hint = "What happened could not be put into the trail, so nothing was written.";
      throw new SallyportError("invalid_input", { what: "event", hint }, cause);
    }
  }

  /** The end of a tenant's chain, as this connection sees it now. */
  head(tenant: string): ChainHead {
    return headOf(tenant, this.#endOf(this.chains.find(tenant)));
  }

  #endOf(chain: number | undefined): End | undefined {
    return chain === undefined ? undefined : (this.#end.get(chain, chain) as End | undefined);
  }
}

/** The last entry's place, hash and time, and the time now. */
type End = readonly [seq: number, hash: string, at: number, now: number];
const NOW = 3;

function headOf(tenant: string, end: End | undefined): ChainHead {
  if (end === undefined) return emptyHead(tenant);
  const [seq, hash, at] = end;
  return { tenant, seq, hash, at: toIso(at) };
}

/** The row as an update leaves it. */
function afterSet(found: Cells, sets: readonly SetCell[], values: Cells): Cells {
  const row = found.slice();
  for (let index = 0; index < sets.length; index += 1) {
    const { cell, plus } = sets[index] as SetCell;
    const value = values[index] as Cell;
    const was = found[cell] as Cell;
    // As SQL adds: nothing and a number is nothing.
    row[cell] = plus ? (was === null ? null : Number(was) + Number(value)) : value;
  }
  return row;
}

function timed({ values, times }: StepOrder, at: number): Cell[] {
  const own = values.slice();
  for (const index of times) own[index] = at + (own[index] as number);
  return own;
}

function withFacts({ parts, facts }: EventOrder, rows: readonly Cells[]): string {
  let text = parts[0] ?? "";
  for (let index = 0; index < facts.length; index += 1) {
    const cell = cellOf(facts[index] as Place, rows);
    if (cell instanceof Uint8Array) throw new TypeError("a fact is made of bytes");
    text += canonicalJson(cell) + (parts[index + 1] ?? "");
  }
  return text;
}

function textOf(text: string | Place, rows: readonly Cells[]): string {
  if (typeof text === "string") return text;
  const cell = cellOf(text, rows);
  if (typeof cell !== "string") throw new TypeError(`cell ${text.cell} holds no text`);
  return cell;
}

function cellOf({ step, cell }: Place, rows: readonly Cells[]): Cell {
  const found = rows[step]?.[cell];
  if (found === undefined) throw new TypeError(`step ${step} left nothing behind`);
  return found;
}
