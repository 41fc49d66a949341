import { SallyportError } from "../../model/errors.ts";
import { DEFINITIONS } from "../../model/interaction.ts";
import { PICTURES } from "../../model/operation.ts";
import { RECORDS } from "../../model/records.ts";
import { systemTimers } from "../../util/timers.ts";
import { baselineOf, ddlOf, type Migration, POSTGRES, pendingMigrations } from "../ddl.ts";
import { CALL_INDEX_TABLES } from "./call-index.ts";
import {
  asStoreError,
  isServerAnswer,
  Lines,
  type PgClient,
  type PgPool,
  TYPES,
} from "./connection.ts";
import { FENCE, HOT_FUNCTION } from "./hot-function.ts";

// The tables of a store, how they are created, and which servers are refused.

/**
 * All writers of a tenant take turns on the row of its chain, so the order of insertion is also the order of commit. The row
 * is only locked, and the end of the chain is read from its last entry: a row that every turn writes would leave dead
 * versions behind that nothing can remove while a long snapshot (a dump, a report) is open.
 */
const AUDIT = `CREATE TABLE $schema.chains (
  tenant text PRIMARY KEY
) WITH (fillfactor = 50);
CREATE TABLE $schema.audit (
  tenant text NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  type text NOT NULL,
  subject text NOT NULL,
  session text NOT NULL,
  actor text NOT NULL,
  data text,
  salt text,
  data_hash text,
  hash text NOT NULL,
  PRIMARY KEY (tenant, seq)
);`;

const FIRST = baselineOf(RECORDS).map((record) => ddlOf(record, POSTGRES));
const BASELINE = [AUDIT, CALL_INDEX_TABLES, ...FIRST].join("\n");

/**
 * The log in blocks: one row per transaction and tenant. Bodies are compressed already. The old table keeps its entries under
 * another name, so that a process of the earlier version that still runs fails instead of writing a second end of a chain.
 */
const BLOCKS = `ALTER TABLE $schema.audit RENAME TO audit_entries;
ALTER INDEX $schema.audit_pkey RENAME TO audit_entries_pkey;
CREATE TABLE $schema.audit_blocks (
  tenant text NOT NULL,
  last bigint NOT NULL,
  at bigint NOT NULL,
  head bytea NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (tenant, last)
);
ALTER TABLE $schema.audit_blocks ALTER COLUMN body SET STORAGE EXTERNAL;
${ddlOf(DEFINITIONS, POSTGRES)}`;

/** A new column is one more value of the function's insert, so it comes with another function. */
const MACHINE_VERDICT = `ALTER TABLE $schema.decisions ADD COLUMN machine_verdict text;
${HOT_FUNCTION}`;

/** Most are too large for a page, and compressed already. */
const PICTURES_TABLE = `${ddlOf(PICTURES, POSTGRES)}
ALTER TABLE $schema.pictures ALTER COLUMN bytes SET STORAGE EXTERNAL;`;

/**
 * `$schema` stands for the schema of the store. After the first release a record changes by a further migration, and the
 * baseline stays what it was then.
 */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: "baseline", sql: BASELINE },
  { version: 2, name: "blocks", sql: BLOCKS },
  // A store that had it before this version also has the function of that version, which no process calls any more.
  { version: 3, name: "one statement", sql: FENCE },
  { version: 4, name: "machine verdict", sql: MACHINE_VERDICT },
  { version: 5, name: "pictures", sql: PICTURES_TABLE },
];

/** An arbitrary fixed number. The lock is only held while migrating. */
const MIGRATION_LOCK = 7_255_971;

export interface MigrateOptions {
  readonly schema: string;
  readonly patienceMs: number;
  /** Checks only: a store that is not of this version is store_incompatible. */
  readonly readOnly: boolean;
  readonly migrations?: readonly Migration[];
}

/**
 * Brings the schema up to date, one process at a time. It reads first and creates only what is missing, so that a role that
 * may only read and write rows can open a store that its owner has migrated. Throws store_unavailable, store_incompatible.
 */
export async function migrate(lines: Lines, options: MigrateOptions): Promise<void> {
  const { schema, patienceMs, readOnly, migrations = MIGRATIONS } = options;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    const hint = "Use lower-case letters, digits and underscores.";
    throw new SallyportError("invalid_input", { what: "schema name", hint });
  }
  try {
    const current = await lines.using(patienceMs, (client) => versionOf(client, schema));
    const pending = pendingMigrations(migrations, current ?? 0);
    if (pending.length === 0) return;
    if (readOnly) {
      const hint = "Run sallyport store migrate with the owner of the schema first.";
      const known = migrations.at(-1)?.version ?? 0;
      throw new SallyportError("store_incompatible", { schema: current ?? 0, known, hint });
    }
    await inTurn(lines, patienceMs, (client) => bringUp(client, schema, migrations));
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

async function bringUp(
  client: PgClient,
  schema: string,
  migrations: readonly Migration[],
): Promise<void> {
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
  for (const { version: next, name, sql } of pendingMigrations(migrations, version)) {
    await client.query({ text: sql.replaceAll("$schema", schema) });
    await client.query({
      text: `INSERT INTO ${schema}.schema_version VALUES ($1, $2)`,
      values: [next, name],
    });
  }
}

/** In a transaction, one process at a time, without a time limit: a migration takes as long as its data needs. */
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

/** One to write, one to listen and one to read. */
const LEAST_CONNECTIONS = 3;

/** A pool that is too small would hang at the first read without an error. Throws invalid_input. */
export function checkPool({ options }: PgPool, readOnly: boolean): void {
  const max = options?.max;
  const least = readOnly ? 1 : LEAST_CONNECTIONS;
  if (max === undefined || max >= least) return;
  const hint = `The pool has room for ${max}. One connection writes and one listens, so give it at least ${least}.`;
  throw new SallyportError("invalid_input", { what: "pool", max, least, hint });
}

interface Settings {
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly accepted: string | null;
}

/** Accepts an unsafe server for throwaway data: `-c sallyport.accept_unsafe_server=on`, or set for one database. */
const ACCEPTED = "sallyport.accept_unsafe_server";

const SETTINGS = `SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes, current_setting('${ACCEPTED}', true) AS accepted`;

/** Refuses a server that may lose or damage what it acknowledged when its machine stops. Throws store_incompatible. */
export async function refuseUnsafe(lines: Lines, patienceMs: number): Promise<void> {
  let settings: Settings | undefined;
  try {
    settings = (await lines.query<Settings>({ text: SETTINGS }, patienceMs)).rows[0];
  } catch (error) {
    throw asStoreError(error);
  }
  const off = unsafeOf(settings);
  if (off.length === 0 || settings?.accepted === "on") return;
  const hint = `${off.join(" and ")} of this server ${off.length === 1 ? "is" : "are"} off: after a crash of its machine acknowledged records are gone or damaged, and calls may run twice. Turn it on. For throwaway data only: ALTER DATABASE name SET ${ACCEPTED} = on.`;
  throw new SallyportError("store_incompatible", { off: off.join(", "), hint });
}

function unsafeOf(settings: Settings | undefined): string[] {
  return (["fsync", "full_page_writes"] as const).filter((name) => settings?.[name] !== "on");
}

export interface ServerFinding {
  readonly what: string;
  readonly ok: boolean;
  readonly text: string;
}

interface Server extends Settings {
  readonly version: string;
  readonly synchronous_commit: string;
  readonly in_recovery: boolean;
  readonly standby_names: string;
  readonly replicas: number;
  readonly provider: string;
  readonly locale: string;
  readonly stored_version: string | null;
  readonly actual_version: string | null;
}

const SERVER = `SELECT current_setting('server_version') AS version, current_setting('synchronous_commit') AS synchronous_commit,
pg_is_in_recovery() AS in_recovery, current_setting('synchronous_standby_names') AS standby_names,
(SELECT count(*)::int FROM pg_stat_replication) AS replicas,
d.datlocprovider::text AS provider, coalesce(d.datlocale, d.datcollate) AS locale,
d.datcollversion AS stored_version, pg_database_collation_actual_version(d.oid) AS actual_version, s.*
FROM pg_database AS d, (${SETTINGS}) AS s WHERE d.datname = current_database()`;

/** The server's settings that a store depends on, for `sallyport doctor`. Throws store_unavailable. */
export async function serverFindings(pool: PgPool): Promise<readonly ServerFinding[]> {
  const lines = new Lines({ pool, timers: systemTimers });
  try {
    const [server] = (await lines.query<Server>({ text: SERVER }, PATIENCE_MS)).rows;
    return server === undefined ? [] : findingsOf(server);
  } catch (error) {
    throw asStoreError(error);
  }
}
const PATIENCE_MS = 10_000;

function findingsOf(server: Server): ServerFinding[] {
  return [
    { what: "postgres", ...role(server) },
    { what: "postgres durability", ...durability(server) },
    { what: "postgres failover", ...failover(server) },
    { what: "postgres collation", ...collation(server) },
  ];
}

type Said = Omit<ServerFinding, "what">;

function role({ version, in_recovery }: Server): Said {
  const text = `version ${version}`;
  return { ok: true, text: in_recovery ? `${text}, a standby: it can only be read` : text };
}

function durability(server: Server): Said {
  const off = unsafeOf(server);
  if (off.length > 0) {
    const accepted = server.accepted === "on" ? ` (accepted by ${ACCEPTED})` : "";
    return {
      ok: false,
      text: `${off.join(" and ")} off${accepted}: a crash loses or damages records`,
    };
  }
  const { synchronous_commit } = server;
  const isRaised = synchronous_commit === "off" || synchronous_commit === "local";
  const raised = `synchronous_commit is ${synchronous_commit}; Sallyport raises it to on for its own writes`;
  return {
    ok: true,
    text: isRaised ? raised : `commits wait for the disk (${synchronous_commit})`,
  };
}

function failover({ replicas, standby_names, in_recovery }: Server): Said {
  if (in_recovery || replicas === 0) return { ok: true, text: "no standby is connected" };
  if (standby_names !== "") return { ok: true, text: `waits for ${standby_names}` };
  const text = `${replicas} standby follows without being waited for: a failover may lose what was acknowledged; set synchronous_standby_names`;
  return { ok: false, text };
}

/** Keys are compared as text. A language's collation is slower, and a library update that changes it damages the indexes. */
function collation({ provider, locale, stored_version, actual_version }: Server): Said {
  if (stored_version !== actual_version) {
    const text = `indexes were made with version ${stored_version} of the collation and this server has ${actual_version}: REINDEX DATABASE, then ALTER DATABASE ... REFRESH COLLATION VERSION`;
    return { ok: false, text };
  }
  const isPlain = provider === "b" || locale === "C" || locale === "POSIX";
  if (isPlain) return { ok: true, text: locale };
  const text = `${locale}: keys are compared by a language's rules; make the database with LOCALE 'C' to be faster and independent of the system's library`;
  return { ok: true, text };
}
