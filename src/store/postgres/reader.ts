import type { Timers } from "../../util/timers.ts";
import {
  type Cell,
  type Comparison,
  isComparison,
  type Query,
  type Row,
  type Table,
} from "../engine.ts";
import {
  asStoreError,
  isCutLine,
  isServerAnswer,
  type Lines,
  type PgQuery,
  sentTogether,
  TYPES,
} from "./connection.ts";

import { byKey, columnsOf, statementName } from "./statements.ts";

interface Asked {
  readonly id: string;
  resolve(row: Row | undefined): void;
  reject(error: unknown): void;
}

/** A query with the promise of the one who asked it. */
interface Question {
  readonly query: PgQuery;
  resolve(rows: Row[]): void;
  reject(error: unknown): void;
}

export interface ReaderOptions {
  readonly lines: Lines;
  readonly schema: string;
  readonly timers: Timers;
  /** How long a read may take, all its tries together. */
  readonly patienceMs: number;
  /** SQL for the current time in milliseconds. */
  readonly now: () => string;
}

/** Records of one table that are read together. */
interface Batch {
  readonly tenant: string;
  readonly table: Table;
  readonly waiting: Asked[];
}

/** Reads. What is asked for in one turn of the event loop shares one connection and one round trip. */
export class Reader {
  readonly #options: ReaderOptions;
  /** Records by tenant and table. */
  #asked = new Map<string, Batch>();
  /** Other questions, which come after the records, because they may take longer. */
  #questions: Question[] = [];

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** On a connection of its own. Planned anew each time: which plan is good depends on how much is stored. */
  async query<R>(text: string, values: readonly unknown[]): Promise<R[]> {
    const { lines } = this.#options;
    try {
      const ask = (ms: number) => lines.query<R>({ text, values, types: TYPES }, ms);
      return (await askedAgain(this.#options, ask)).rows;
    } catch (error) {
      throw asStoreError(error);
    }
  }

  get(tenant: string, table: Table, id: string): Promise<Row | undefined> {
    const key = `${table.name}\n${tenant}`;
    return new Promise((resolve, reject) => {
      this.#readSoon();
      const batch = this.#asked.get(key) ?? { tenant, table, waiting: [] };
      this.#asked.set(key, batch);
      batch.waiting.push({ id, resolve, reject });
    });
  }

  /** The current time in milliseconds. */
  async now(): Promise<number> {
    const [row] = await this.#ask(`SELECT ${this.#options.now()} AS now`, []);
    return Number(row?.["now"] ?? 0);
  }

  #ask(text: string, values: readonly unknown[]): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      this.#readSoon();
      this.#questions.push({ query: { text, values, types: TYPES }, resolve, reject });
    });
  }

  #readSoon(): void {
    if (this.#asked.size > 0 || this.#questions.length > 0) return;
    this.#options.timers.soon(() => void this.#read());
  }

  async #read(): Promise<void> {
    const records = [...this.#asked.values()].map((batch) => this.#byKeys(batch));
    const questions = [...records, ...this.#questions];
    this.#asked = new Map();
    this.#questions = [];
    try {
      await askedAgain(this.#options, (ms) => this.#send(questions, ms));
    } catch (error) {
      for (const { reject } of questions) reject(asStoreError(error));
    }
  }

  /**
   * On one connection: one for each would wake as many processes of the server. Each is answered as soon as its rows are
   * here; asked again because the connection broke, it keeps its first answer.
   */
  #send(questions: readonly Question[], ms: number): Promise<void> {
    return this.#options.lines.using(ms, async (client) => {
      const sent = sentTogether(client, () =>
        questions.map(({ query }) => client.query<Row>(query)),
      );
      const answers = await Promise.allSettled(
        sent.map((one, index) => one.then(({ rows }) => questions[index]?.resolve(rows))),
      );
      for (const [index, answer] of answers.entries()) {
        if (answer.status === "fulfilled") continue;
        if (isLost(answer.reason)) throw answer.reason;
        questions[index]?.reject(asStoreError(answer.reason));
      }
    });
  }

  #byKeys({ tenant, table, waiting }: Batch): Question {
    const from = `${this.#options.schema}.${table.name} AS d`;
    const text = `SELECT ${columnsOf(table, "d")} FROM ${from} WHERE ${byKey("d", "$1", "ANY($2)")}`;
    const ids = [...new Set(waiting.map(({ id }) => id))];
    const query = { name: statementName(text), text, values: [tenant, ids], types: TYPES };
    return {
      query,
      resolve: (rows) => deal(waiting, rows),
      reject: (error) => {
        for (const { reject } of waiting) reject(error);
      },
    };
  }

  find(tenant: string, table: Table, query: Query): Promise<Row[]> {
    const values: unknown[] = [tenant];
    const tests = ["tenant = $1"];
    for (const [column, test] of Object.entries(query.where ?? {})) {
      tests.push(this.#condition(column, test, values));
    }
    if (query.afterOrd !== undefined) tests.push(`ord > $${values.push(query.afterOrd)}`);
    if (query.beforeOrd !== undefined) tests.push(`ord < $${values.push(query.beforeOrd)}`);
    const limit = `$${values.push(query.limit)}`;
    const order = query.newestFirst === true ? "ord DESC" : "ord";
    const text = `SELECT ${columnsOf(table)} FROM ${this.#options.schema}.${table.name} WHERE ${tests.join(" AND ")} ORDER BY ${order} LIMIT ${limit}`;
    // Planned anew each time, like `query`.
    return this.#ask(text, values);
  }

  #condition(column: string, test: Cell | Comparison, values: unknown[]): string {
    if (test === null) return `${column} IS NULL`;
    if (!isComparison(test)) return `${column} = $${values.push(test)}`;
    if ("oneOf" in test) return `${column} = ANY($${values.push([...test.oneOf])})`;
    const [bound, sign] = "atLeast" in test ? [test.atLeast, ">="] : [test.atMost, "<="];
    if (typeof bound === "number") return `${column} ${sign} $${values.push(bound)}`;
    return `${column} ${sign} ${this.#options.now()} + $${values.push(bound.nowPlusMs)}::bigint`;
  }
}

/** Repeats a read over another connection when the first turns out to be cut or spoiled. */
export async function askedAgain<Answer>(
  { timers, patienceMs }: Pick<ReaderOptions, "timers" | "patienceMs">,
  ask: (ms: number) => Promise<Answer>,
): Promise<Answer> {
  const deadline = timers.elapsedMs() + patienceMs;
  for (let left = MOST_CUT; ; left -= 1) {
    const ms = Math.max(deadline - timers.elapsedMs(), LEAST_MS);
    try {
      return await ask(ms);
    } catch (error) {
      if (left === 0 || timers.elapsedMs() >= deadline || !isCutLine(error)) throw error;
    }
  }
}

/** The connection is dead or must be dropped: no more answers come over it. */
function isLost(error: unknown): boolean {
  return !isServerAnswer(error);
}

/** More than even a large pool has idle: all of them may have been cut or spoiled at the same time. */
const MOST_CUT = 100;
/** The least time for an attempt, also when the deadline is near. */
const LEAST_MS = 50;

function deal(waiting: readonly Asked[], rows: readonly Row[]): void {
  const byId = new Map(rows.map((row) => [row["id"], row]));
  const taken = new Set<string>();
  for (const { id, resolve } of waiting) {
    // Two callers of the same record must not share its bytes.
    const row = byId.get(id);
    resolve(row !== undefined && taken.has(id) ? structuredClone(row) : row);
    taken.add(id);
  }
}
