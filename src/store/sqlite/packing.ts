import type { Cell } from "../engine.ts";
import {
  type Answer,
  type Cells,
  cellsOfInsert,
  type EventOrder,
  type Place,
  type StepOrder,
  type StepStatement,
  type WriteOrder,
} from "./orders.ts";

// Orders and answers on their way between the threads, as one flat list of plain values. Of nested objects every name is
// written and read again: with them, and with whole rows in the answers, 64 callers make a third fewer gated calls a second
// (docs/decisions/2026-11-19-flat-lists-between-threads.md). Lists are preceded by their length.

export type Packed = readonly Cell[];

/** What the write thread is sent for a group. */
export interface PackedOrders {
  readonly packed: Packed;
  /** Statements that were not sent before; an order names its statement by its place among all that were sent. */
  readonly statements: readonly StepStatement[];
}

/** The main thread's end: knows which statements the thread has. */
export class Packer {
  readonly #numbers = new Map<StepStatement, number>();

  pack(orders: readonly WriteOrder[]): PackedOrders {
    const cells: Cell[] = [orders.length];
    const statements: StepStatement[] = [];
    for (const { tenant, steps, events } of orders) {
      cells.push(tenant, steps.length);
      for (const { statement, id, values, times } of steps) {
        cells.push(this.#numberOf(statement, statements), id);
        addList(cells, values);
        addList(cells, times);
      }
      cells.push(events.length);
      for (const event of events) addEvent(cells, event);
    }
    return { packed: cells, statements };
  }

  #numberOf(statement: StepStatement, added: StepStatement[]): number {
    let number = this.#numbers.get(statement);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(statement, number);
      added.push(statement);
    }
    return number;
  }
}

/** The write thread's end. */
export class Unpacker {
  readonly #statements: StepStatement[] = [];

  /** Every request has to be unpacked, also one that is returned unwritten: later ones refer to its statements. */
  unpack({ packed, statements }: PackedOrders): WriteOrder[] {
    this.#statements.push(...statements);
    const reader = new Reader(packed);
    return reader.list(() => ({
      tenant: reader.text(),
      steps: reader.list(() => this.#step(reader)),
      events: reader.list(() => eventIn(reader)),
    }));
  }

  #step(reader: Reader): StepOrder {
    const statement = this.#statements[reader.number()] as StepStatement;
    const id = reader.text();
    return { statement, id, values: reader.cells(), times: reader.cells() as readonly number[] };
  }
}

function addEvent(cells: Cell[], event: EventOrder): void {
  const { type, subject, session, actor, parts, facts, sealed, each } = event;
  cells.push(type);
  addTextOrPlace(cells, subject);
  addTextOrPlace(cells, session);
  cells.push(actor, each ? 1 : 0);
  addList(cells, parts);
  cells.push(facts.length);
  for (const { step, cell } of facts) cells.push(step, cell);
  if (sealed === undefined) cells.push(null);
  else cells.push(sealed.data, sealed.salt, sealed.dataHash);
}

function eventIn(reader: Reader): EventOrder {
  const type = reader.text();
  const subject = textOrPlaceIn(reader);
  const session = textOrPlaceIn(reader);
  const actor = reader.text();
  const each = reader.number() === 1;
  const parts = reader.cells() as readonly string[];
  const facts = reader.list(() => ({ step: reader.number(), cell: reader.number() }));
  const data = reader.next();
  const sealed =
    data === null
      ? undefined
      : { data: data as string, salt: reader.text(), dataHash: reader.text() };
  return { type, subject, session, actor, each, parts, facts, sealed };
}

/** A place begins with a number. */
function addTextOrPlace(cells: Cell[], one: string | Place): void {
  if (typeof one === "string") cells.push(one);
  else cells.push(one.step, one.cell);
}

function textOrPlaceIn(reader: Reader): string | Place {
  const first = reader.next();
  return typeof first === "string" ? first : { step: first as number, cell: reader.number() };
}

/** Of a row that was inserted only its number: the main thread has the rest. */
const INSERTED = -1;

export function packAnswers(orders: readonly WriteOrder[], answers: readonly Answer[]): Packed {
  const cells: Cell[] = [];
  for (const [index, answer] of answers.entries()) {
    if ("step" in answer) {
      cells.push(null, answer.step);
      if (answer.current === undefined) cells.push(null);
      else addList(cells, answer.current);
      continue;
    }
    const { at, seq, rows } = answer;
    cells.push(at, seq, rows.length);
    const steps = orders[index]?.steps ?? [];
    for (const [place, row] of rows.entries()) {
      if (steps[place]?.statement.op === "insert") cells.push(INSERTED, row[0] as Cell);
      else addList(cells, row);
    }
  }
  return cells;
}

export function unpackAnswers(orders: readonly WriteOrder[], packed: Packed): Answer[] {
  const reader = new Reader(packed);
  return orders.map(({ steps }): Answer => {
    const at = reader.next();
    if (at === null) return { step: reader.number(), current: reader.maybeCells() };
    const seq = reader.number();
    let place = 0;
    const rows = reader.list((): Cells => {
      const step = steps[place] as StepOrder;
      place += 1;
      const length = reader.number();
      if (length === INSERTED) return cellsOfInsert(reader.next(), step, at as number);
      return reader.take(length);
    });
    return { at: at as number, seq, rows };
  });
}

function addList(cells: Cell[], list: readonly Cell[]): void {
  cells.push(list.length);
  for (const one of list) cells.push(one);
}

/** Both ends are of one version, in one process: what is read is what was packed. */
class Reader {
  readonly #cells: Packed;
  #at = 0;

  constructor(cells: Packed) {
    this.#cells = cells;
  }

  next(): Cell {
    const cell = this.#cells[this.#at] as Cell;
    this.#at += 1;
    return cell;
  }

  number(): number {
    return this.next() as number;
  }

  text(): string {
    return this.next() as string;
  }

  list<One>(read: () => One): One[] {
    const all: One[] = [];
    for (let left = this.number(); left > 0; left -= 1) all.push(read());
    return all;
  }

  take(length: number): Cells {
    const from = this.#at;
    this.#at += length;
    return this.#cells.slice(from, this.#at);
  }

  cells(): Cells {
    return this.take(this.number());
  }

  maybeCells(): Cells | undefined {
    const length = this.next();
    return length === null ? undefined : this.take(length as number);
  }
}
