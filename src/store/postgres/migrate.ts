import { SallyportError } from "../../model/errors.ts";
import { pendingMigrations } from "../migration.ts";
import { asStoreError, type PgClient, type PgPool, TYPES } from "./connection.ts";
import { MIGRATIONS } from "./migrations/index.ts";

/** Any fixed number will do; it is only held while migrating, never on the hot path. */
const MIGRATION_LOCK = 7_255_971;

/** Brings the schema up to date, one process at a time. Throws store_unavailable, store_incompatible. */
export async function migrate(pool: PgPool, schema: string): Promise<void> {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    const hint = "Use lower-case letters, digits and underscores.";
    throw new SallyportError("invalid_input", { what: "schema name", hint });
  }
  let client: PgClient;
  try {
    client = await pool.connect();
  } catch (error) {
    throw asStoreError(error);
  }
  try {
    await client.query({ text: "BEGIN" });
    await client.query({ text: `SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})` });
    await client.query({ text: `CREATE SCHEMA IF NOT EXISTS ${schema}` });
    await client.query({
      text: `CREATE TABLE IF NOT EXISTS ${schema}.schema_version (version bigint PRIMARY KEY, name text NOT NULL)`,
    });
    const { rows } = await client.query<{ version: number }>({
      text: `SELECT coalesce(max(version), 0)::bigint AS version FROM ${schema}.schema_version`,
      types: TYPES,
    });
    for (const { version, name, sql } of pendingMigrations(MIGRATIONS, rows[0]?.version ?? 0)) {
      await client.query({ text: sql.replaceAll("$schema", schema) });
      await client.query({
        text: `INSERT INTO ${schema}.schema_version VALUES ($1, $2)`,
        values: [version, name],
      });
    }
    await client.query({ text: "COMMIT" });
    client.release();
  } catch (error) {
    // Dropping the connection rolls back, whatever state it is in.
    client.release(true);
    throw asStoreError(error);
  }
}
