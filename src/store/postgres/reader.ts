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

/** Reads. Records requested by key at the same time share one round trip. */
export class Reader {
  readonly #options: ReaderOptions;
  /** By tenant and table; all of them are sent together. */
  #asked = new Map<string, Batch>();

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Planned anew each time: which plan is good depends on how much is stored. */
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
      if (this.#asked.size === 0) this.#options.timers.soon(() => void this.#read());
      const batch = this.#asked.get(key) ?? { tenant, table, waiting: [] };
      this.#asked.set(key, batch);
      batch.waiting.push({ id, resolve, reject });
    });
  }

  async #read(): Promise<void> {
    const batches = [...this.#asked.values()];
    this.#asked = new Map();
    try {
      const answers = await askedAgain(this.#options, (ms) => this.#ask(batches, ms));
      for (const [index, batch] of batches.entries()) settle(batch, answers[index]);
    } catch (error) {
      for (const batch of batches) settle(batch, { status: "rejected", reason: error });
    }
  }

  /** On one connection: one for each table would wake as many processes of the server. */
  #ask(batches: readonly Batch[], ms: number): Promise<PromiseSettledResult<{ rows: Row[] }>[]> {
    return this.#options.lines.using(ms, async (client) => {
      const asked = sentTogether(client, () =>
        batches.map((batch) => client.query<Row>(this.#byKeys(batch))),
      );
      const answers = await Promise.allSettled(asked);
      const cut = answers.find((one) => one.status === "rejected" && isLost(one.reason));
      if (cut?.status === "rejected") throw cut.reason;
      return answers;
    });
  }

  #byKeys({ tenant, table, waiting }: Batch): PgQuery {
    const from = `${this.#options.schema}.${table.name} AS d`;
    const text = `SELECT ${columnsOf(table, "d")} FROM ${from} WHERE ${byKey("d", "$1", "ANY($2)")}`;
    const ids = [...new Set(waiting.map(({ id }) => id))];
    return { name: statementName(text), text, values: [tenant, ids], types: TYPES };
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
    return this.query<Row>(text, values);
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

function settle(
  { waiting }: Batch,
  answer: PromiseSettledResult<{ rows: Row[] }> | undefined,
): void {
  if (answer?.status !== "fulfilled") {
    for (const { reject } of waiting) reject(asStoreError(answer?.reason));
    return;
  }
  const byId = new Map(answer.value.rows.map((row) => [row["id"], row]));
  const taken = new Set<string>();
  for (const { id, resolve } of waiting) {
    // Two callers of the same record must not share its bytes.
    const row = byId.get(id);
    resolve(row !== undefined && taken.has(id) ? structuredClone(row) : row);
    taken.add(id);
  }
}
