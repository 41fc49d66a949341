import type { Cell } from "../engine.ts";
import type { Answer, Cells, EventOrder, Order, Place, StepOrder } from "./orders.ts";

/**
 * Orders and answers on their way between the threads, as one flat list: of nested objects every name would be written and
 * read again for each of them, which takes a third of what the writing itself does. Lists come behind their length.
 */
export type Packed = readonly Cell[];

export function packOrders(orders: readonly Order[]): Packed {
  const cells: Cell[] = [];
  packAll(cells, orders, ({ tenant, steps, events }) => {
    cells.push(tenant);
    packAll(cells, steps, (step) => packStep(cells, step));
    packAll(cells, events, (event) => packEvent(cells, event));
  });
  return cells;
}

function packStep(cells: Cell[], { shape, id, values, times }: StepOrder): void {
  cells.push(shape, id, values.length, ...values, times.length, ...times);
}

function packEvent(cells: Cell[], event: EventOrder): void {
  const { type, subject, session, actor, parts, facts, sealed, each } = event;
  cells.push(type);
  packTextOrPlace(cells, subject);
  packTextOrPlace(cells, session);
  cells.push(actor, parts.length, ...parts);
  packAll(cells, facts, ({ step, cell }) => cells.push(step, cell));
  if (sealed === undefined) cells.push(null);
  else cells.push(sealed.data, sealed.salt, sealed.dataHash);
  cells.push(each ? 1 : 0);
}

/** A text stands for itself, a place begins with a number. */
function packTextOrPlace(cells: Cell[], one: string | Place): void {
  if (typeof one === "string") cells.push(one);
  else cells.push(one.step, one.cell);
}

export function unpackOrders(packed: Packed): Order[] {
  const reader = new Reader(packed);
  return reader.list(() => ({
    tenant: reader.text(),
    steps: reader.list(() => unpackStep(reader)),
    events: reader.list(() => unpackEvent(reader)),
  }));
}

function unpackStep(reader: Reader): StepOrder {
  const shape = reader.number();
  const id = reader.text();
  return { shape, id, values: reader.cells(), times: reader.cells() as readonly number[] };
}

function unpackEvent(reader: Reader): EventOrder {
  const type = reader.text();
  const subject = unpackTextOrPlace(reader);
  const session = unpackTextOrPlace(reader);
  const actor = reader.text();
  const parts = reader.cells() as readonly string[];
  const facts = reader.list(() => ({ step: reader.number(), cell: reader.number() }));
  const data = reader.next();
  const sealed =
    data === null
      ? undefined
      : { data: data as string, salt: reader.text(), dataHash: reader.text() };
  return { type, subject, session, actor, parts, facts, sealed, each: reader.number() === 1 };
}

function unpackTextOrPlace(reader: Reader): string | Place {
  const first = reader.next();
  return typeof first === "string" ? first : { step: first as number, cell: reader.number() };
}

export function packAnswers(answers: readonly Answer[]): Packed {
  const cells: Cell[] = [];
  packAll(cells, answers, (answer) => {
    if ("step" in answer) {
      const { step, current } = answer;
      cells.push(null, step, ...(current === undefined ? [null] : [current.length, ...current]));
    } else {
      cells.push(answer.at, answer.seq);
      packAll(cells, answer.rows, (row) => cells.push(row.length, ...row));
    }
  });
  return cells;
}

export function unpackAnswers(packed: Packed): Answer[] {
  const reader = new Reader(packed);
  return reader.list(() => {
    const at = reader.next();
    if (at === null) return { step: reader.number(), current: reader.maybeCells() };
    const seq = reader.number();
    return { at: at as number, seq, rows: reader.list(() => reader.cells()) };
  });
}

function packAll<One>(cells: Cell[], all: readonly One[], pack: (one: One) => void): void {
  cells.push(all.length);
  for (const one of all) pack(one);
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
    const count = this.number();
    const all: One[] = [];
    for (let index = 0; index < count; index += 1) all.push(read());
    return all;
  }

  cells(): Cells {
    return this.maybeCells() ?? [];
  }

  maybeCells(): Cells | undefined {
    const count = this.next() as number | null;
    if (count === null) return undefined;
    const start = this.#at;
    this.#at += count;
    return this.#cells.slice(start, this.#at);
  }
}
