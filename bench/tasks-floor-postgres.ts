import pg from "pg";
import { MIGRATIONS } from "../src/store/postgres/schema.ts";
import { bodiesOf, ENTRY, HEAD, postgresBlock } from "./floors/rows.ts";
import type { Work } from "./rounds.ts";
import { CLAIM_MS, FACTS, RESULT } from "./tasks-rows.ts";

const SCHEMA = "floor";

/** Plain `pg` over the same tables and indexes on the same durable server, and none of our code. */
export async function postgresTaskFloors(
  url: string,
  backlog: number,
): Promise<{
  raw(connections: number, total: number): Work;
  group(size: number, total: number): Work;
  close(): Promise<void>;
}> {
  const pool = new pg.Pool({ connectionString: url, max: 33 }).on("error", () => {});
  const sql = MIGRATIONS.map((one) => one.sql.replaceAll("$schema", SCHEMA)).join("\n");
  await pool.query(`CREATE SCHEMA ${SCHEMA}; ${sql}`);
  const ids = `'019a8b00-0000-7000-8000-' || lpad(i::text, 12, '0')`;
  const series = `generate_series(1, ${backlog}) AS i`;
  await pool.query(
    `INSERT INTO ${SCHEMA}.tasks (tenant, id, status, facts, version) SELECT 'bench', ${ids}, 'pending', $1, 1 FROM ${series}`,
    [FACTS],
  );
  await pool.query(
    `INSERT INTO ${SCHEMA}.task_queue (tenant, id, lane, role, priority, session_id, fence, version, facts_version, waits, dependents)
SELECT 'bench', ${ids}, 'ready', '', 0, '', 1, 1, 1, 0, 0 FROM ${series}`,
  );
  const take = {
    name: "take",
    text: `WITH best AS MATERIALIZED (SELECT id FROM ${SCHEMA}.task_queue WHERE tenant = 'bench' AND lane = 'ready' AND role = ''
ORDER BY priority DESC NULLS LAST, ord LIMIT $1 FOR UPDATE SKIP LOCKED)
UPDATE ${SCHEMA}.task_queue AS d SET lane = 'leased', claimer = 'worker', claimed_at = $2, lease_until = $3, fence = fence + 1, version = version + 1
FROM best WHERE d.id = best.id RETURNING d.id`,
  };
  const finish = {
    name: "finish",
    text: `WITH gone AS (DELETE FROM ${SCHEMA}.task_queue WHERE id = ANY($1) AND fence = 2 RETURNING id)
UPDATE ${SCHEMA}.tasks AS d SET status = 'completed', claimer = 'worker', claimed_at = $2, completed_at = $2, result = $3, fence = 2, version = 3
FROM gone WHERE d.id = gone.id`,
  };
  const block = postgresBlock(SCHEMA);
  const bodyOf = bodiesOf([ENTRY]);
  let seq = 0;

  async function claim(client: pg.PoolClient, count: number): Promise<string[]> {
    const values = [count, Date.now(), Date.now() + CLAIM_MS];
    const { rows } = await client.query<{ id: string }>({ ...take, values });
    return rows.map(({ id }) => id);
  }
  const complete = (client: pg.PoolClient, some: string[]) =>
    client.query({ ...finish, values: [some, Date.now(), RESULT] });
  async function logged(client: pg.PoolClient, entries: number): Promise<void> {
    seq += entries;
    const values = ["bench", seq, Date.now(), HEAD, bodyOf(entries)];
    await client.query({ ...block, values });
  }

  return {
    /** One task per commit, without a trail, so many connections at once. */
    raw: (connections, total) => async () => {
      const each = Math.ceil(total / connections);
      const workers = Array.from({ length: connections }, async () => {
        const client = await pool.connect();
        for (let n = 0; n < each; n += 1) await complete(client, await claim(client, 1));
        client.release();
      });
      await Promise.all(workers);
      return each * connections;
    },
    /** The same writes as the product's, `size` tasks with the block of their entries per commit. */
    group: (size, total) => async () => {
      const client = await pool.connect();
      for (let done = 0; done < total; done += size) {
        await client.query("BEGIN");
        const some = await claim(client, size);
        await logged(client, some.length);
        await client.query("COMMIT");
        await client.query("BEGIN");
        await complete(client, some);
        await logged(client, some.length);
        await client.query("COMMIT");
      }
      client.release();
      return total;
    },
    close: () => pool.end(),
  };
}
