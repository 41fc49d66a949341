import { SallyportError } from "../../model/errors.ts";
import { pendingMigrations } from "../migration.ts";
import { asStoreError, isServerAnswer, type PgClient, TYPES } from "./connection.ts";
import type { Lines } from "./lines.ts";
import { MIGRATIONS } from "./migrations/index.ts";

/** Any fixed number will do; it is only held while migrating, never on the hot path. */
const MIGRATION_LOCK = 7_255_971;

export interface MigrateOptions {
  readonly schema: string;
  readonly patienceMs: number;
  /** Looks only. A store that is not of this version is store_incompatible. */
  readonly readOnly: boolean;
}

/**
 * Brings the schema up to date, one process at a time. It looks first and creates only what is missing, so that a role
 * that may only read and write rows can open a store that its owner has migrated. Throws store_unavailable,
 * store_incompatible.
 */
export async function migrate(lines: Lines, options: MigrateOptions): Promise<void> {
  const { schema, patienceMs, readOnly } = options;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    const hint = "Use lower-case letters, digits and underscores.";
    throw new SallyportError("invalid_input", { what: "schema name", hint });
  }
  try {
    const current = await lines.using(patienceMs, (client) => versionOf(client, schema));
    const pending = pendingMigrations(MIGRATIONS, current ?? 0);
    if (pending.length === 0) return;
    if (readOnly) {
      const hint = "Run sallyport store migrate with the owner of the schema first.";
      const known = MIGRATIONS.at(-1)?.version ?? 0;
      throw new SallyportError("store_incompatible", { schema: current ?? 0, known, hint });
    }
    await inTurn(lines, patienceMs, (client) => bringUp(client, schema));
  } catch (error) {
    throw asStoreError(error);
  }
}

/** Undefined when there is no such schema yet. */
async function versionOf(client: PgClient, schema: string): Promise<number | undefined> {
  const { rows: found } = await client.query<{ table: string | null }>({
    text: "SELECT to_regclass($1)::text AS table",
    values: [`${schema}.schema_version`],
  });
  if (typeof found[0]?.table !== "string") return undefined;
  const { rows } = await client.query<{ version: number }>({
    text: `SELECT coalesce(max(version), 0)::bigint AS version FROM ${schema}.schema_version`,
    types: TYPES,
  });
  return rows[0]?.version ?? 0;
}

async function bringUp(client: PgClient, schema: string): Promise<void> {
  let version = await versionOf(client, schema);
  if (version === undefined) {
    const { rows } = await client.query({
      text: "SELECT 1 FROM pg_namespace WHERE nspname = $1",
      values: [schema],
    });
    if (rows.length === 0) await client.query({ text: `CREATE SCHEMA ${schema}` });
    await client.query({
      text: `CREATE TABLE ${schema}.schema_version (version bigint PRIMARY KEY, name text NOT NULL)`,
    });
    version = 0;
  }
  for (const { version: next, name, sql } of pendingMigrations(MIGRATIONS, version)) {
    await client.query({ text: sql.replaceAll("$schema", schema) });
    await client.query({
      text: `INSERT INTO ${schema}.schema_version VALUES ($1, $2)`,
      values: [next, name],
    });
  }
}

/** In a transaction, alone among all processes that migrate. It may take as long as the data asks for. */
async function inTurn(
  lines: Lines,
  patienceMs: number,
  work: (client: PgClient) => Promise<void>,
): Promise<void> {
  const client = await lines.connect(patienceMs);
  try {
    await client.query({ text: "BEGIN ISOLATION LEVEL READ COMMITTED" });
    await client.query({ text: `SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})` });
    await work(client);
    await client.query({ text: "COMMIT" });
    client.release();
  } catch (error) {
    // Dropping the connection rolls back, whatever state it is in.
    if (isServerAnswer(error)) client.release(true);
    else lines.drop(client);
    throw error;
  }
}
