import pg from "pg";
import { MIGRATIONS } from "../../src/store/postgres/schema.ts";
import type { Work } from "../rounds.ts";
import {
  ANSWER,
  ASK,
  type Cell,
  type Commit,
  type Insert,
  insertedRow,
  type Sample,
  type Update,
  updatedCells,
} from "./question-rows.ts";
import { bodiesOf, HEAD, postgresBlock } from "./rows.ts";

const SCHEMA = "floor";

/** The same by hand on PostgreSQL: each kind of row write of a group is one statement, each commit one transaction. */
export async function postgresQuestionFloors(
  url: string,
  sample: Sample,
): Promise<{
  ask(size: number, total: number): Work;
  answer(size: number): Work;
  close(): Promise<void>;
}> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE SCHEMA ${SCHEMA}`);
  for (const { sql } of MIGRATIONS) await client.query(sql.replaceAll("$schema", SCHEMA));
  await client.query(
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off",
  );
  let ids = 0;
  let seq = 0;
  let waiting: { id: string; session: string }[] = [];

  /** Statements with their constants; $1 are the ids, $2 the sessions. */
  function prepared({ writes, entries }: Commit, nr: number) {
    const all = writes.map((write, index) => ({
      name: `${nr}-${index}`,
      ...("insert" in write ? inserting(write) : updating(write)),
    }));
    const bodyOf = bodiesOf(sample.entries.filter((_, index) => entries.includes(index)));
    return { all, bodyOf, entries: entries.length };
  }

  function inserting(write: Insert) {
    const row = insertedRow(sample, write);
    const values: Cell[] = [];
    const cells = Object.entries(row).map(([column, cell]) => {
      if (column === "id") return write.insert === "operations" ? "x.id || '.0'" : "x.id";
      if (column === "session_id") return "x.session";
      if (column === "decision_id") return "x.id";
      return constant(cell, values, 2);
    });
    const text = `INSERT INTO ${SCHEMA}.${write.insert} (${Object.keys(row)}) SELECT ${cells} FROM unnest($1::text[], $2::text[]) AS x(id, session)`;
    return { text, values };
  }

  function updating(write: Update) {
    const { update, where } = write;
    const values: Cell[] = [];
    const row = updatedCells(sample, write);
    const cells = Object.entries(row).map(
      ([name, cell]) => `${name} = ${constant(cell, values, 2)}`,
    );
    // Spelled as in the product, so that only the id offers an index.
    const tests = Object.entries(where).map(([name, cell]) =>
      typeof cell === "number"
        ? `d.${name} + 0 = ${constant(cell, values, 2)}`
        : `d.${name} || '' = ${constant(cell, values, 2)}`,
    );
    const id = update === "operations" ? "x.id || '.0'" : "x.id";
    const text = `UPDATE ${SCHEMA}.${update} AS d SET ${cells} FROM unnest($1::text[], $2::text[]) AS x(id, session) WHERE d.id = ${id} AND d.tenant || '' = 'bench' AND ${tests.join(" AND ")}`;
    return { text, values };
  }

  const block = postgresBlock(SCHEMA);
  const plans = {
    ask: ASK.map(prepared),
    answer: ANSWER.map((one, nr) => prepared(one, nr + ASK.length)),
  };

  async function together(commits: typeof plans.ask, group: typeof waiting): Promise<void> {
    const own = [group.map(({ id }) => id), group.map(({ session }) => session)];
    for (const { all, bodyOf, entries } of commits) {
      await client.query("BEGIN");
      for (const { name, text, values } of all) {
        const { rowCount } = await client.query({ name, text, values: [...own, ...values] });
        if (rowCount !== group.length)
          throw new Error(`${rowCount} rows instead of ${group.length}: ${text}`);
      }
      seq += group.length * entries;
      const values = ["bench", seq, Date.now(), HEAD, bodyOf(group.length)];
      await client.query({ ...block, values });
      await client.query("COMMIT");
    }
  }

  return {
    ask: (size, total) => async () => {
      waiting = Array.from({ length: total }, (_, n) => {
        ids += 1;
        const id = `019a8b00-0000-7000-8000-${String(ids).padStart(12, "0")}`;
        return { id, session: `session-1-${n % size}` };
      });
      for (let from = 0; from < total; from += size) {
        await together(plans.ask, waiting.slice(from, from + size));
      }
      return total;
    },
    answer: (size) => async () => {
      for (let from = 0; from < waiting.length; from += size) {
        await together(plans.answer, waiting.slice(from, from + size));
      }
      return waiting.length;
    },
    close: () => client.end(),
  };
}

function constant(cell: Cell, values: Cell[], before: number): string {
  if (cell === null) return "NULL";
  const type = typeof cell === "number" ? "bigint" : cell instanceof Uint8Array ? "bytea" : "text";
  return `$${values.push(cell) + before}::${type}`;
}
