import type pg from "pg";
import {
  isServerAnswer,
  type PgClient,
  type PgPool,
  type PgQuery,
} from "../../src/store/postgres/connection.ts";

export interface CommitCounts {
  commits: number;
  /** COMMITs that were sent and never answered: whether they were written had to be found out. */
  ambiguous: number;
}

/** Also the call of the function that writes a group in one statement. */
const COMMITS = /^(COMMIT$|SELECT [a-z_]+\.commit_)/;

/** The pool as it is, with the fate of every COMMIT counted. */
export function countingPool(pool: pg.Pool, counts: CommitCounts): PgPool {
  const counted = (client: pg.PoolClient): PgClient => ({
    async query<R>(query: PgQuery): Promise<{ rows: R[] }> {
      if (!COMMITS.test(query.text)) return client.query(query as pg.QueryConfig) as Promise<never>;
      counts.commits += 1;
      try {
        return (await client.query(query as pg.QueryConfig)) as never;
      } catch (error) {
        if (!isServerAnswer(error)) counts.ambiguous += 1;
        throw error;
      }
    },
    release: (destroy) => client.release(destroy),
    on: (event: "error" | "notification", listener: (error: Error) => void) =>
      client.on(event as "error", listener),
    off: (event, listener) => client.off(event, listener),
  });
  return {
    connect: async () => counted(await pool.connect()),
    query: (query) => pool.query(query as pg.QueryConfig) as Promise<never>,
    on: (event, listener) => pool.on(event, listener),
  };
}
