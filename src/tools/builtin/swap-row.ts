import { Refusal } from "./refusal.ts";
import type { SqlDatabase, SqlRow, SqlWork } from "./sql-database.ts";
import { sqlStatements } from "./sql-statements.ts";
import { expectColumns, type SqlTable, writableOf } from "./sql-table.ts";

export interface SwapInput {
  readonly table: string;
  readonly key: SqlRow;
  readonly version: number;
  readonly set: SqlRow;
}

/** What came of a compare-and-swap. A conflict is an answer and not an error: the world moved (I-15). */
export type Swapped =
  | {
      readonly ok: true;
      readonly before: SqlRow;
      readonly after: SqlRow;
      readonly version: number;
      readonly attempts: number;
    }
  | {
      readonly ok: false;
      readonly code: "version_conflict" | "not_found";
      readonly expectedVersion: number;
      readonly currentVersion: number | null;
      readonly current: SqlRow | null;
      readonly attempts: number;
    };

export interface SwapOptions {
  readonly end: "commit" | "rollback";
  /** How often to read again and try with the version that is there now. 0: a conflict is the agent's to think about. */
  readonly retryBudget: number;
}

/** Changes one row if it still has the expected version. Each attempt is one transaction around one guarded UPDATE. */
export async function swapRow(
  database: SqlDatabase,
  table: SqlTable,
  input: SwapInput,
  { end, retryBudget }: SwapOptions,
): Promise<Swapped> {
  checkSwap(table, input);
  let version = input.version;
  for (let attempts = 1; ; attempts += 1) {
    const tried = { ...input, version };
    const swapped = await database.transaction(
      () => attempt(database, table, tried, attempts),
      end,
    );
    if (swapped.ok || swapped.currentVersion === null || attempts > retryBudget) return swapped;
    version = swapped.currentVersion;
  }
}

/** The row as it is now; undefined when there is none. */
export async function readRow(
  database: SqlDatabase,
  table: SqlTable,
  key: SqlRow,
): Promise<SqlRow | undefined> {
  const query = sqlStatements(database, table).row(key, { lock: false });
  const { rows } = await database.read(query, 1);
  return rows[0];
}

/** Throws a Refusal unless the key is whole and only columns are set that may be. */
export function checkSwap(table: SqlTable, { key, set }: SwapInput): void {
  expectColumns(Object.keys(key), table.key, "key");
  expectColumns(Object.keys(set), writableOf(table), "set");
  if (table.key.every((column) => Object.hasOwn(key, column) && key[column] !== null)) return;
  throw new Refusal(
    "unusable",
    `The key is not whole. Nothing was done. It needs a value for each of: ${table.key.join(", ")}.`,
  );
}

function* attempt(
  database: SqlDatabase,
  table: SqlTable,
  { key, version, set }: SwapInput,
  attempts: number,
): SqlWork<Swapped> {
  const statements = sqlStatements(database, table);
  const before = (yield statements.row(key, { lock: true })).rows[0];
  const { affected } = yield statements.swap(key, version, set);
  const now = (yield statements.row(key, { lock: false })).rows[0];
  if (affected === 1 && before !== undefined && now !== undefined) {
    return { ok: true, before, after: now, version: versionOf(table, now), attempts };
  }
  // More than one row for a whole key: the declared key is not one. Thrown, so that nothing of it is kept.
  if (affected > 0) {
    throw new Refusal(
      "unusable",
      `The key of ${table.name} does not name one row, so nothing was changed. Tell the operator.`,
    );
  }
  const current = now ?? null;
  return {
    ok: false,
    code: current === null ? "not_found" : "version_conflict",
    expectedVersion: version,
    currentVersion: current === null ? null : versionOf(table, current),
    current,
    attempts,
  };
}

function versionOf(table: SqlTable, row: SqlRow): number {
  return Number(row[table.version]);
}
