import pg from "pg";
import { MIGRATIONS } from "../../src/store/postgres/schema.ts";
import type { Work } from "../rounds.ts";
import { bodiesOf, DECISION, ENTRY, HEAD, postgresBlock, STEPS } from "./rows.ts";

const SCHEMA = "floor";
const { tool, raw, metadata } = DECISION;
/** Spelled as in the product: with a plan that goes through another index the floor would be ten times slower. */
const HIDDEN = "tenant || '' = 'bench' AND state || ''";

/** Plain `pg` over the same tables and indexes on the same durable server, and none of our code. */
export async function postgresFloors(url: string): Promise<{
  raw(connections: number, total: number): Work;
  rawWithEntry(connections: number, total: number): Work;
  group(size: number, total: number): Work;
  close(): Promise<void>;
}> {
  const pool = new pg.Pool({ connectionString: url, max: 16 });
  // A connection that the server closes before our goodbye arrives does not matter here.
  pool.on("error", () => {});
  const sql = MIGRATIONS.map((one) => one.sql.replaceAll("$schema", SCHEMA)).join("\n");
  await pool.query(`CREATE SCHEMA ${SCHEMA}; ${sql}`);
  let ids = 0;
  let seq = 0;
  let sessions = 0;
  let chains = 0;
  const newIds = (count: number): string[] =>
    Array.from({ length: count }, () => {
      ids += 1;
      return `019a8b00-0000-7000-8000-${String(ids).padStart(12, "0")}`;
    });

  const newSessions = (count: number): string[] =>
    Array.from({ length: count }, () => {
      sessions += 1;
      return `session-1-${sessions}`;
    });

  const insertOne = {
    name: "insert-one",
    text: `INSERT INTO ${SCHEMA}.decisions (tenant, id, session_id, state, source_tool, raw, diff_metadata, asked, created_at, updated_at) VALUES ('bench', $1, $2, 'pending_tech', $3, $4, $5, 0, $6, $6)`,
  };
  const updateOne = STEPS.map(([column, from, to, value]) => ({
    name: `update-one-${to}`,
    text: `UPDATE ${SCHEMA}.decisions SET ${column} = $1, state = '${to}', updated_at = $2 WHERE id = $3 AND ${HIDDEN} = '${from}'`,
    value,
  }));

  const block = postgresBlock(SCHEMA);
  const bodyOf = bodiesOf([ENTRY]);

  type Wrap = (write: () => Promise<unknown>) => Promise<void>;

  async function oneByOne(client: pg.PoolClient, count: number, wrap: Wrap): Promise<void> {
    const [session = ""] = newSessions(1);
    for (const id of newIds(count)) {
      const values = [id, session, tool, raw, metadata, Date.now()];
      await wrap(() => client.query({ ...insertOne, values }));
      for (const { name, text, value } of updateOne) {
        await wrap(() => client.query({ name, text, values: [value, Date.now(), id] }));
      }
    }
  }

  const bare: Wrap = async (write) => {
    await write();
  };

  /** Each connection numbers its own entries, so that they do not wait for each other. */
  function logging(client: pg.PoolClient, chain: string): Wrap {
    let nr = 0;
    return async (write) => {
      nr += 1;
      await client.query("BEGIN");
      await write();
      await client.query({ ...block, values: [chain, nr, Date.now(), HEAD, bodyOf(1)] });
      await client.query("COMMIT");
    };
  }

  async function atOnce(
    connections: number,
    total: number,
    wrapOf: (client: pg.PoolClient, chain: string) => Wrap,
  ) {
    const each = Math.ceil(total / connections);
    const workers = Array.from({ length: connections }, async () => {
      const client = await pool.connect();
      chains += 1;
      await oneByOne(client, each, wrapOf(client, `chain-${chains}`));
      client.release();
    });
    await Promise.all(workers);
    return each * connections;
  }

  const insertMany = {
    name: "insert-many",
    text: `INSERT INTO ${SCHEMA}.decisions (tenant, id, session_id, state, source_tool, raw, diff_metadata, asked, created_at, updated_at) SELECT 'bench', id, session, 'pending_tech', $3, $4, $5, 0, $6, $6 FROM unnest($1::text[], $2::text[]) AS x(id, session)`,
  };
  const updateMany = STEPS.map(([column, from, to, value]) => ({
    name: `update-many-${to}`,
    text: `UPDATE ${SCHEMA}.decisions SET ${column} = $1, state = '${to}', updated_at = $2 WHERE id = ANY($3) AND ${HIDDEN} = '${from}'`,
    value,
  }));

  async function together(client: pg.PoolClient, write: () => Promise<unknown>, entries: number) {
    await client.query("BEGIN");
    await write();
    seq += entries;
    await client.query({ ...block, values: ["bench", seq, Date.now(), HEAD, bodyOf(entries)] });
    await client.query("COMMIT");
  }

  return {
    /** One row, one commit per transition, so many connections at once. */
    raw: (connections, total) => () => atOnce(connections, total, () => bare),
    /** The same in a transaction with the block of one entry that the product writes beside each row. */
    rawWithEntry: (connections, total) => () => atOnce(connections, total, logging),
    /** The same writes as the product's, `size` transitions with the block of their entries per commit. */
    group: (size, total) => async () => {
      const client = await pool.connect();
      const names = newSessions(size);
      for (let done = 0; done < total; done += size) {
        const ids = newIds(size);
        const values = [ids, names, tool, raw, metadata, Date.now()];
        await together(client, () => client.query({ ...insertMany, values }), size);
        for (const { name, text, value } of updateMany) {
          const query = { name, text, values: [value, Date.now(), ids] };
          await together(client, () => client.query(query), size);
        }
      }
      client.release();
      return total;
    },
    close: () => pool.end(),
  };
}
