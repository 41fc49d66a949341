import { SallyportError } from "../../model/errors.ts";
import { errorCodeOf, errorText } from "../../util/error-text.ts";
import { ToolRefusal } from "./file-place.ts";
import type { SqlAnswer, SqlDatabase, SqlRow, SqlStatement, SqlValue } from "./sql-table.ts";

/** The parts of pg that are used. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
}

interface PostgresClient {
  query(query: PostgresQuery): Promise<{ rows: unknown[]; rowCount: number | null }>;
  release(destroy?: boolean): void;
  on(event: "error", listener: () => void): unknown;
  removeListener(event: "error", listener: () => void): unknown;
}

interface PostgresQuery {
  readonly text: string;
  readonly values: unknown[];
  /** One statement only: the server itself refuses `SELECT 1; COMMIT; DROP …`. */
  readonly queryMode: "extended";
  readonly types: { getTypeParser(oid: number): (text: string) => unknown };
}

interface PostgresDatabaseOptions {
  readonly name: string;
  readonly pool: PostgresPool;
  readonly statementTimeoutMs?: number;
}

/** The opener of the pool closes it. Use a role with only the rights that the tools need. */
export function postgresDatabase(options: PostgresDatabaseOptions): SqlDatabase {
  const { name, pool, statementTimeoutMs = 30_000 } = options;

  async function inTransaction<Result>(
    mode: "READ ONLY" | "READ WRITE",
    end: "COMMIT" | "ROLLBACK",
    work: (run: Run) => Promise<Result>,
  ): Promise<Result> {
    const client = await pool.connect().catch((error) => {
      const code = errorCodeOf(error);
      throw new ToolRefusal(
        "unusable",
        `The database cannot be reached (${code}). Try again later.`,
      );
    });
    // A connection that breaks between two statements emits an error event, which would end the process without a
    // listener.
    client.on("error", ignore);
    const run: Run = async (statement) => toAnswer(await client.query(toQuery(statement)));
    let isClean = false;
    // Untrusted SQL can leave state that a rollback keeps: advisory locks, dblink connections. DISCARD ALL would also
    // reset what the host sets on connecting, such as SET ROLE. So a connection that ran such SQL is used once.
    const isReusable = mode === "READ WRITE";
    try {
      await run(plain(`BEGIN ${mode}`));
      await run(plain(`SET LOCAL statement_timeout = ${Math.trunc(statementTimeoutMs)}`));
      const result = await work(run).catch(async (error) => {
        await run(plain("ROLLBACK"));
        isClean = true;
        throw error;
      });
      await (end === "COMMIT" ? commit(run) : run(plain("ROLLBACK")));
      isClean = true;
      return result;
    } finally {
      // A connection in an unknown state is not reused.
      if (isClean && isReusable) client.removeListener("error", ignore);
      client.release(!(isClean && isReusable));
    }
  }

  return {
    name,
    dialect: "postgres",
    read: ({ text, values }, maxRows) =>
      inTransaction("READ ONLY", "ROLLBACK", async (run) => {
        // A cursor accepts queries only, none that write inside WITH, and produces no more rows than requested.
        await run({ text: `DECLARE sallyport_query NO SCROLL CURSOR FOR ${text}`, values });
        const { rows } = await run(plain(`FETCH ${maxRows + 1} FROM sallyport_query`));
        return { rows: rows.slice(0, maxRows), more: rows.length > maxRows };
      }).catch((error) => {
        throw asRefusal(error, `: ${errorText(error)}`);
      }),
    transaction: (work, end) =>
      inTransaction("READ WRITE", end === "commit" ? "COMMIT" : "ROLLBACK", async (run) => {
        const steps = work();
        let step = steps.next();
        while (step.done !== true) step = steps.next(await run(step.value));
        // Checks deferred constraints now, also when there will be no commit.
        await run(plain("SET CONSTRAINTS ALL IMMEDIATE"));
        return step.value;
      }).catch((error) => {
        throw asRefusal(error, ` (${errorCodeOf(error)})`);
      }),
  };
}

type Run = (statement: SqlStatement) => Promise<SqlAnswer>;

async function commit(run: Run): Promise<void> {
  try {
    await run(plain("COMMIT"));
  } catch (error) {
    const hint = "The connection to the database was lost during the commit. Read the row again.";
    throw new SallyportError("outcome_unknown", { hint }, error);
  }
}

function ignore(): void {}

function plain(text: string): SqlStatement {
  return { text, values: [] };
}

function toQuery({ text, values }: SqlStatement): PostgresQuery {
  const types = { getTypeParser: (oid: number) => PARSERS[oid] ?? ((raw: string) => raw) };
  return { text, values: values.map(toPostgres), queryMode: "extended", types };
}

function toAnswer({ rows, rowCount }: { rows: unknown[]; rowCount: number | null }): SqlAnswer {
  return { rows: rows as SqlRow[], affected: rowCount ?? 0 };
}

/** Numbers and booleans where nothing is lost; all else stays the server's text, which it accepts unchanged. */
const number = (raw: string) =>
  Number.isFinite(Number(raw)) && String(Number(raw)) === raw ? Number(raw) : raw;
const PARSERS: Readonly<Record<number, (raw: string) => SqlValue>> = {
  16: (raw) => raw === "t",
  20: number,
  21: number,
  23: number,
  700: number,
  701: number,
};

function toPostgres(value: SqlValue): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("$int" in value) return value.$int;
  return "$real" in value ? value.$real : Buffer.from(value.$blob, "base64");
}

/** Server errors have a code of five characters; they roll the transaction back. */
function asRefusal(error: unknown, detail: string): unknown {
  if (error instanceof ToolRefusal || !/^[0-9A-Z]{5}$/.test(errorCodeOf(error))) return error;
  return new ToolRefusal(
    "unusable",
    `The database refused it${detail}. Nothing was changed. Check names and values; to change a row, use sql.update_row.`,
  );
}
