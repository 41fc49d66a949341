import type pg from "pg";
import type { PgClient, PgPool, PgQuery } from "../../src/store/postgres/connection.ts";

export type Fault = "COMMIT is lost" | "answer to COMMIT is lost" | "SET is lost" | "get is lost";

/** A pool whose connections break at the faults of the list, one after the other, without a word from the server. */
export function faultyPool(
  pool: pg.Pool,
  faults: Fault[],
  /** Awaited after a connection broke and before its user gets the error. */
  meanwhile: () => Promise<void> = async () => {},
): PgPool {
  const withFaults = (client: pg.PoolClient): PgClient => ({
    async query<R>(query: PgQuery): Promise<{ rows: R[] }> {
      const fault = meant(faults[0], query.text) ? faults.shift() : undefined;
      if (fault === "answer to COMMIT is lost") await client.query("COMMIT");
      if (fault === undefined) return client.query(query as pg.QueryConfig) as Promise<never>;
      breakLine(client);
      await meanwhile();
      throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    },
    release: (destroy) => client.release(destroy),
    on: (event: "error" | "notification", listener: (error: Error) => void) =>
      client.on(event as "error", listener),
    off: (event, listener) => client.off(event, listener),
  });
  return {
    connect: async () => withFaults(await pool.connect()),
    query: (query) => pool.query(query as pg.QueryConfig) as Promise<never>,
  };
}

function meant(fault: Fault | undefined, text: string): boolean {
  if (fault === "SET is lost") return text.startsWith("SET ");
  if (fault === "get is lost") return text.startsWith("SELECT d.ord");
  return fault !== undefined && text === "COMMIT";
}

/** What a firewall or a dying machine does: no goodbye, the server finds out later. */
function breakLine(client: pg.PoolClient): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}
