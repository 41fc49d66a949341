import {
  type AuditEntry,
  type ChainHead,
  emptyHead,
  leafHash,
  linkHash,
  packBlock,
} from "../../model/audit-entry.ts";
import { type Clock, toIso } from "../../util/clock.ts";
import { invariant } from "../../util/error-text.ts";
import type { Random } from "../../util/random.ts";
import {
  type Cell,
  type Change,
  type ChangeResult,
  holds,
  isComparison,
  isNowPlus,
  isPlus,
  type Left,
  type Row,
  type Step,
  type Table,
} from "../engine.ts";
import type { Waiting } from "../group-commit.ts";
import { type ClockWatch, JUMP_MS, Turn } from "../turn.ts";
import { type PgClient, type PgQuery, TYPES } from "./connection.ts";
import { HOT_SHAPES, hotCall } from "./hot-function.ts";
import {
  type Keyed,
  look,
  parameters,
  shapeOfKeyed,
  statementName,
  type TenantStep,
} from "./statements.ts";
import type { LostTail } from "./write-path.ts";
import { KnownRows, type Written } from "./writer.ts";

// Groups whose steps the function of the schema knows are one statement: what Node would do between two round trips, the
// links of the chain, is done by the function. Everything else, and every refusal, is for the general path (`writer.ts`).

export interface HotOptions {
  readonly schema: string;
  readonly random: Random;
  readonly tail: LostTail;
  readonly clock?: Clock | undefined;
  readonly clockWatch?: ClockWatch | undefined;
}

/** The results of a group, and the ends of its chains. */
export type HotAnswer = Pick<Written, "results" | "ends">;

/** A group as one statement that commits by itself. */
export interface HotCall {
  readonly query: PgQuery;
  /** What the server answered. */
  answered(row: unknown): HotAnswer;
  /**
   * After a lost answer, in a transaction: undefined when it was not written, and then it never will be. Throws when it was
   * written and the records were changed since, so that its result cannot be told any more.
   */
  found(client: PgClient): Promise<HotAnswer | "changed since" | undefined>;
}

/** One tenant's part of the group: its entries, whose place in the chain is not known yet. */
interface Part {
  readonly tenant: string;
  readonly seen: Pick<ChainHead, "seq" | "hash">;
  readonly entries: AuditEntry[];
  readonly body: Buffer;
  readonly leaves: readonly string[];
}

/** Where the entries of a tenant came to stand. */
interface Place {
  /** The number and the hash of the entry before them. */
  readonly last: number;
  readonly prev: string;
  readonly at: number;
}

export class HotPath {
  readonly #options: HotOptions;

  constructor(options: HotOptions) {
    this.#options = options;
  }

  /** Undefined for a group with a step of another shape, an unknown fact, or a chain that this process has not seen yet. */
  prepare(group: readonly Waiting[]): HotCall | undefined {
    const { clock, clockWatch, schema, tail } = this.#options;
    // The first reading of a clock is judged by the general path.
    const trusted = clockWatch?.trusted;
    if (clockWatch !== undefined && trusted === undefined) return undefined;
    const works = worksOf(group);
    if (works === undefined) return undefined;
    const parts = this.#parts(group);
    if (parts === undefined) return undefined;
    const asked = clockWatch?.elapsedMs() ?? 0;
    // What the watch would accept now. While the statement waits, the window does not move with the clock: a minute is enough.
    const expected = trusted && trusted.now + asked - trusted.elapsed;
    const all = [...parts.values()];
    const text = hotCall(schema);
    const values = [
      all.map(({ tenant }) => tenant),
      all.map(({ tenant }) => tail.fenceOf(tenant)),
      all.map(({ seen }) => seen.seq),
      all.map(({ seen }) => seen.hash),
      all.map(({ leaves }) => leaves.join("")),
      all.map(({ body }) => body.toString("base64")),
      clock?.now() ?? null,
      Math.round((expected ?? 0) - (expected === undefined ? 0 : JUMP_MS)),
      Math.round(expected === undefined ? LAST_MS : expected + JUMP_MS),
      ...works.map((rows) => (rows.length === 0 ? null : JSON.stringify(rows))),
    ];
    return {
      query: { name: statementName(text), text, values, types: TYPES },
      answered: (row) => {
        const answer = read(row);
        clockWatch?.jumpOf(answer.now, asked);
        const left = new KnownRows();
        putRows(left, group, answer.rows);
        const places = all.map((_, index) => placeIn(answer, index));
        const done = resultsOf(group, all, places, left);
        for (const [index, { tenant }] of all.entries()) {
          const same = done.ends.get(tenant)?.hash === answer.heads[index];
          invariant(same, "the database made other links than this process");
        }
        return done;
      },
      found: (client) => this.#found(client, group, all),
    };
  }

  /** The entries of each tenant with all facts but their place; undefined when one of them is only known after the write. */
  #parts(group: readonly Waiting[]): ReadonlyMap<string, Part> | undefined {
    const { random, tail } = this.#options;
    const known = group.map(({ change }) => factsOf(change));
    if (known.includes(undefined)) return undefined;
    const turns = new Map<string, Turn>();
    for (const [index, { tenant, change }] of group.entries()) {
      if (tail.seenOf(tenant) === undefined || change.events.length === 0) return undefined;
      const turn = turns.get(tenant) ?? new Turn(emptyHead(tenant), 0, random);
      turns.set(tenant, turn);
      try {
        turn.append(change, known[index] ?? []);
      } catch {
        // The general path says what is wrong with it.
        return undefined;
      }
    }
    const parts = [...turns].map(([tenant, { entries }]): [string, Part] => {
      const seen = tail.seenOf(tenant) ?? emptyHead(tenant);
      const leaves = entries.map(leafHash);
      return [tenant, { tenant, seen, entries, body: Buffer.from(packBlock(entries)), leaves }];
    });
    return new Map(parts);
  }

  /**
   * Holds the locks of all its chains, so a statement that was written has ended, and one that was not finds the raised fence.
   * A body contains salts, so there is no other like it.
   */
  async #found(client: PgClient, group: readonly Waiting[], parts: readonly Part[]) {
    const { schema, tail } = this.#options;
    const tenants = parts.map(({ tenant }) => tenant);
    const lock = `SELECT tenant FROM ${schema}.chains WHERE tenant = ANY($1) ORDER BY tenant FOR UPDATE`;
    await client.query({ text: lock, values: [tenants] });
    const search = `SELECT b.last, b.at, coalesce((SELECT encode(p.head, 'hex') FROM ${schema}.audit_blocks AS p WHERE p.tenant = b.tenant AND p.last < b.last ORDER BY p.last DESC LIMIT 1), '') AS prev
FROM ${schema}.audit_blocks AS b WHERE b.tenant = $1 AND b.last > $2 AND b.body = $3`;
    const places: Place[] = [];
    for (const { tenant, seen, body, entries } of parts) {
      const values = [tenant, seen.seq, body];
      const { rows } = await client.query<Place>({ text: search, values, types: TYPES });
      const [block] = rows;
      if (block !== undefined) places.push({ ...block, last: block.last - entries.length });
    }
    if (places.length < parts.length) {
      const raise = `UPDATE ${schema}.chains SET fence = fence + 1 WHERE tenant = ANY($1) RETURNING tenant, fence`;
      const query = { text: raise, values: [tenants], types: TYPES };
      const { rows } = await client.query<{ tenant: string; fence: number }>(query);
      for (const { tenant, fence } of rows) tail.rememberFence(tenant, fence);
      return undefined;
    }
    const left = new KnownRows();
    for (const [table, works] of Map.groupBy(stepsOf(group), ({ step }) => step.table)) {
      left.put(table, (await client.query<Row>(look(schema, table, works))).rows);
    }
    const times = new Map(parts.map(({ tenant }, index) => [tenant, places[index]?.at ?? 0]));
    const isLeft = stepsOf(group).every(({ tenant, step }) =>
      isAsLeft(step, left.get({ tenant, step }), times.get(tenant) ?? 0),
    );
    return isLeft ? resultsOf(group, parts, places, left) : "changed since";
  }
}

/** The last millisecond whose text has the usual form. */
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

function stepsOf(group: readonly Waiting[]): TenantStep<Keyed>[] {
  return group.flatMap(({ tenant, change }) =>
    change.steps.flatMap((step) => (step.op === "take" ? [] : [{ tenant, step }])),
  );
}

/** The parameter rows of each shape, in the order in which the general path writes; undefined when a shape is unknown. */
function worksOf(group: readonly Waiting[]): (readonly object[])[] | undefined {
  const works = Array.from({ length: HOT_SHAPES.size }, () => new Map<string, object>());
  const longest = Math.max(...group.map(({ change }) => change.steps.length));
  for (let index = 0; index < longest; index += 1) {
    for (const { tenant, change } of group) {
      const step = change.steps[index];
      if (step === undefined) continue;
      const rows = step.op === "take" ? undefined : works[HOT_SHAPES.get(shapeOfKeyed(step)) ?? -1];
      if (rows === undefined || step.op === "take") return undefined;
      const row = parameters({ tenant, step });
      // Many changes require the same record, the kill switch.
      rows.set(step.op === "require" ? JSON.stringify(row) : `${tenant}\n${step.id}`, row);
    }
  }
  return works.map((rows) => [...rows.values()]);
}

/**
 * What is known of the rows of a change before it is written, as far as its events name it; undefined when something is not.
 */
function factsOf({ steps, events }: Change): Row[] | undefined {
  const rows = steps.map((): Record<string, Cell> => ({}));
  for (const { subject, session, facts, each } of events) {
    if (each === true) return undefined;
    for (const named of [subject, session, ...Object.values(facts ?? {})]) {
      if (typeof named === "string") continue;
      const { left, step = 0 } = named as Left;
      const cell = steps[step] && knownCell(steps[step], left);
      if (cell === undefined) return undefined;
      const row = rows[step];
      if (row !== undefined) row[left] = cell;
    }
  }
  return rows;
}

/** The value that a column has after a step, or undefined when only the database knows it. */
function knownCell(step: Step, column: string): Cell | undefined {
  if (step.op === "take" || step.op === "delete") return undefined;
  if (column === "id") return step.id;
  const written = step.op === "insert" ? step.row : step.op === "update" ? step.set : {};
  if (Object.hasOwn(written, column)) {
    const value = written[column] ?? null;
    return isNowPlus(value) || isPlus(value) ? undefined : value;
  }
  if (step.op === "insert" || !Object.hasOwn(step.where, column)) return undefined;
  const test = step.where[column] ?? null;
  return isComparison(test) ? undefined : test;
}

/** Whether a record is still as the step left it. What a step only required may have changed since. */
function isAsLeft(step: Keyed, row: Row | undefined, at: number): boolean {
  if (step.op === "require") return true;
  if (row === undefined || step.op === "delete") return false;
  for (const [column, value] of Object.entries(step.op === "insert" ? step.row : step.set)) {
    const before = isPlus(value) && step.op === "update" ? step.where[column] : undefined;
    if (isPlus(value) && typeof before !== "number") return false;
    const cell = isNowPlus(value)
      ? at + value.nowPlusMs
      : isPlus(value)
        ? Number(before) + value.plus
        : value;
    if (!holds(row, { [column]: cell }, at)) return false;
  }
  return true;
}

/** The answer of the function, as JSON. */
interface Answer {
  readonly now: number;
  readonly lasts: readonly number[];
  readonly ats: readonly number[];
  readonly prevs: readonly string[];
  readonly heads: readonly string[];
  /** Rows by shape. Inserts only leave their keys. */
  readonly rows: readonly (readonly Row[] | null)[];
}

function read(row: unknown): Answer {
  const { answer } = row as { readonly answer: string };
  return JSON.parse(answer) as Answer;
}

function placeIn({ lasts, ats, prevs }: Answer, index: number): Place {
  const [last, at, prev] = [lasts[index], ats[index], prevs[index]];
  invariant(
    last !== undefined && at !== undefined && prev !== undefined,
    "a chain was written without being answered",
  );
  return { last, at, prev };
}

function putRows(left: KnownRows, group: readonly Waiting[], rows: Answer["rows"]): void {
  const tables = new Map(stepsOf(group).map(({ step }) => [shapeOfKeyed(step), step.table]));
  for (const [shape, table] of tables) {
    const found = rows[HOT_SHAPES.get(shape) ?? -1] ?? [];
    left.put(
      table,
      found.map((row) => withBytes(table, row)),
    );
  }
}

/** JSON has bytes as text. */
function withBytes({ columns }: Table, { counts: _, ...row }: Row): Row {
  const cells: Record<string, Cell> = row;
  for (const [column, type] of Object.entries(columns)) {
    const cell = cells[column];
    if (type !== "bytes" || typeof cell !== "string") continue;
    cells[column] = new Uint8Array(Buffer.from(cell.slice(2), "hex"));
  }
  return cells;
}

/** A chain with its new entries, and how many of them belong to changes that were answered. */
interface Sealed {
  readonly at: number;
  readonly links: readonly ChainHead[];
  told: number;
}

function resultsOf(
  group: readonly Waiting[],
  parts: readonly Part[],
  places: readonly Place[],
  left: KnownRows,
): HotAnswer {
  const chains = new Map(
    parts.map((part, index): [string, Sealed] => {
      const place = places[index];
      invariant(place !== undefined, "a chain has no place for its entries");
      const chain: Sealed = { at: place.at, links: linksOf(part, place), told: 0 };
      return [part.tenant, chain];
    }),
  );
  const results = group.map(({ tenant, change }): ChangeResult => {
    const chain = chains.get(tenant);
    invariant(chain !== undefined, "a change belongs to a chain");
    chain.told += change.events.length;
    const end = chain.links[chain.told - 1];
    invariant(end !== undefined, "a change has entries");
    const rows = change.steps.map((step) => rowOf(tenant, step, left, chain.at));
    return { committed: true, at: chain.at, rows, seq: end.seq, hash: end.hash };
  });
  const ends = new Map(
    [...chains].flatMap(([tenant, { links }]) => {
      const end = links.at(-1);
      return end === undefined ? [] : [[tenant, end] as const];
    }),
  );
  return { results, ends };
}

/** The end of the chain after each entry. */
function linksOf({ tenant, leaves }: Part, { last, prev: before, at: ms }: Place): ChainHead[] {
  const at = toIso(ms);
  let prev = before;
  return leaves.map((leaf, index) => {
    const seq = last + index + 1;
    prev = linkHash({ at, prev, seq }, leaf);
    return { tenant, seq, hash: prev, at };
  });
}

function rowOf(tenant: string, step: Step, left: KnownRows, at: number): Row {
  if (step.op === "take") return {};
  const row = left.get({ tenant, step });
  if (step.op === "require") return row ?? {};
  invariant(row !== undefined, "a step that held left a row");
  return step.op === "insert" ? { ...insertedRow(tenant, step, at), ...row } : row;
}

/** The row of an insert, of which the database only adds `ord`. */
function insertedRow(tenant: string, step: Step & { readonly op: "insert" }, at: number): Row {
  const row: Record<string, Cell> = { tenant, id: step.id };
  for (const column of Object.keys(step.table.columns)) {
    const value = step.row[column] ?? null;
    invariant(!isPlus(value), "an insert has nothing to count up");
    if (value instanceof Uint8Array) row[column] = new Uint8Array(value);
    else row[column] = isNowPlus(value) ? at + value.nowPlusMs : value;
  }
  return row;
}
