import { canonicalJson } from "../../util/canonical-json.ts";
import { sha256Hex } from "../../util/hash.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import {
  type Answered,
  answerOrRefuse,
  jsonInput,
  ToolRefusal,
  undoFromResult,
} from "./file-place.ts";
import {
  declareTables,
  expectColumns,
  expectKey,
  openStaging,
  ROW_INPUT,
  readRow,
  type SqlDatabase,
  type SqlRow,
  type SqlTable,
  type SqlWork,
  type StagingDatabase,
  sqlResource,
  sqlStatements,
  tableInput,
  tableNamed,
  writableOf,
} from "./sql-table.ts";

export interface SqlRowOptions {
  readonly database: StagingDatabase;
  readonly tables: readonly SqlTable[];
  /** For sql.update_row only. Default 0: the agent reads the row again and decides (I-15). */
  readonly retryBudget?: number;
}

/** Changes one row by compare-and-swap. For staging and shadow tables, never for production tables (I-14). */
export function sqlUpdateRow({ retryBudget = 0, ...options }: SqlRowOptions): Tool {
  return rowTool(options, {
    name: "sql.update_row",
    description:
      "Changes one row of a staging table, if it still has the version you have read. The version is raised automatically. If the row was changed meanwhile, nothing is changed and you get the current row.",
    searchHint: "update change database row",
    retryBudget,
  });
}

/** Restores a row's old values. Never retries: a row that changed since contains later work (T9). */
export function sqlRestoreRow(options: Omit<SqlRowOptions, "retryBudget">): Tool {
  return rowTool(options, {
    name: "sql.restore_row",
    description: "Undoes a change of sql.update_row. Accepts only the input of its undo record.",
    searchHint: "undo database row change",
    retryBudget: 0,
  });
}

interface RowSheet {
  readonly name: string;
  readonly description: string;
  readonly searchHint: string;
  readonly retryBudget: number;
}

function rowTool(options: Omit<SqlRowOptions, "retryBudget">, sheet: RowSheet): Tool {
  const database = openStaging(options.database);
  const tables = declareTables(options.tables);
  const { retryBudget, ...listing } = sheet;
  const swap = (input: SwapInput, end: "commit" | "rollback") =>
    swapRow(database, tableNamed(tables, input.table), input, { end, retryBudget });
  return defineTool({
    ...listing,
    input: jsonInput<SwapInput>(
      {
        table: tableInput(tables),
        key: { ...ROW_INPUT, description: "The primary key, column by column." },
        version: { type: "integer", minimum: 0, description: "The row's version as you read it." },
        set: { ...ROW_INPUT, description: "New values, column by column." },
      },
      ["table", "key", "version", "set"],
    ),
    safety: {
      effect: "write",
      reversible: true,
      undoTool: "sql.restore_row",
      affects: ["database"],
    },
    permissionClass: "generic",
    auditOperation: "edit",
    resources: ({ input }) => [sqlResource(database, input.table, "write")],
    stateVersion: async ({ input }) => {
      const row = await readRow(database, tableNamed(tables, input.table), input.key);
      return row === undefined ? "absent" : sha256Hex(canonicalJson(row));
    },
    dryRun: async ({ input }) => {
      const swapped = await swap(input, "rollback");
      if (!swapped.ok) throw new ToolRefusal("conflict", failureText(input, swapped));
      return {
        summary: `would change one row of ${input.table}`,
        preview: `before: ${JSON.stringify(swapped.before)}\nafter:  ${JSON.stringify(swapped.after)}`,
        impact: { rows: 1, columns: Object.keys(input.set) },
      };
    },
    execute: ({ input }) =>
      answerOrRefuse<Swapped>(async () => toAnswer(input, await swap(input, "commit"))),
    undo: undoFromResult,
    probe: async ({ input }) => {
      const table = tableNamed(tables, input.table);
      const row = await readRow(database, table, input.key);
      if (row?.[table.version] === input.version) return { happened: false };
      return {
        happened: "unknown",
        reason: "the row has another version, raised by another writer",
      };
    },
  });
}

function toAnswer(input: SwapInput, swapped: Swapped): Answered<Swapped> {
  if (!swapped.ok) return { text: failureText(input, swapped), data: swapped, isError: true };
  const { before, version } = swapped;
  const old = Object.keys(input.set).map((column) => [column, before[column] ?? null] as const);
  const set: SqlRow = Object.fromEntries(old);
  const { table, key } = input;
  return {
    text: `Changed one row of ${table}; its version is now ${version}.`,
    data: swapped,
    undo: {
      tool: "sql.restore_row",
      input: JSON.parse(JSON.stringify({ table, key, version, set })),
      description: `put the old values of one row of ${table} back`,
      manualGuide: `Set the columns ${Object.keys(set).join(", ")} of the row back manually.`,
    },
  };
}

function failureText({ table }: SwapInput, failed: Swapped & { ok: false }): string {
  if (failed.code === "not_found") {
    return `There is no row with this key in ${table}. Nothing was changed. Look for it with sql.query.`;
  }
  return `The row of ${table} was changed meanwhile: it has version ${failed.currentVersion}, not ${failed.expectedVersion} (attempts: ${failed.attempts}). Nothing was changed. This is the row now: ${JSON.stringify(failed.current)}. Think again whether the change is still right, then call with the new version.`;
}

interface SwapInput {
  readonly table: string;
  readonly key: SqlRow;
  readonly version: number;
  readonly set: SqlRow;
}

/** The outcome of a compare-and-swap. A conflict is an answer, not an error (I-15). */
type Swapped =
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

interface SwapOptions {
  readonly end: "commit" | "rollback";
  /** How often to read again and retry with the current version. 0: the agent handles the conflict. */
  readonly retryBudget: number;
}

/** Changes one row if it still has the expected version. Each attempt is one transaction with one guarded UPDATE. */
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

/** Throws a ToolRefusal unless the key is complete and all columns may be set. */
function checkSwap(table: SqlTable, { key, set }: SwapInput): void {
  expectColumns(Object.keys(key), table.key, "key");
  expectColumns(Object.keys(set), writableOf(table), "set");
  expectKey(table, key);
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
  // More than one row for a complete key: the declared key is not unique. Throw, so that the change is rolled back.
  if (affected > 0) {
    throw new ToolRefusal(
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
