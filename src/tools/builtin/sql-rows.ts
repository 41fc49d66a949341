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
  tableColumns,
  tableInput,
  tableNamed,
  writableOf,
} from "./sql-table.ts";

interface SqlRowsOptions {
  readonly database: StagingDatabase;
  readonly tables: readonly SqlTable[];
}

/** Adds and deletes rows of staging tables, with the tools that undo it (I-14). */
export function sqlRowTools(options: SqlRowsOptions): readonly Tool[] {
  return [insertRow(options), deleteRow(options), removeRow(options), putBackRow(options)];
}

interface RowInput {
  readonly table: string;
  readonly row: SqlRow;
}

interface KeyInput {
  readonly table: string;
  readonly key: SqlRow;
  readonly version: number;
}

type Change = "commit" | "rollback";

/** What the four tools have in common: one declared table of one staging database. */
function opened({ database: staging, tables: declared }: SqlRowsOptions) {
  const database = openStaging(staging);
  const tables = declareTables(declared);
  const row = {
    table: tableInput(tables),
    row: { ...ROW_INPUT, description: "The values, column by column, with the whole key." },
  };
  const key = {
    table: tableInput(tables),
    key: { ...ROW_INPUT, description: "The primary key, column by column." },
    version: { type: "integer", minimum: 0, description: "The row's version as you read it." },
  };
  return {
    database,
    named: (name: string) => tableNamed(tables, name),
    rowInput: jsonInput<RowInput>(row, ["table", "row"]),
    keyInput: jsonInput<KeyInput>(key, ["table", "key", "version"]),
    resources: ({ input }: { readonly input: { readonly table: string } }) => [
      sqlResource(database, input.table, "write"),
    ],
    versionAt: async (table: SqlTable, at: SqlRow) => {
      const found = await readRow(database, table, at);
      return found === undefined ? "absent" : sha256Hex(canonicalJson(found));
    },
  };
}

const WRITES = { permissionClass: "generic", undo: undoFromResult } as const;
const FIRST_VERSION = 1;

/** Adds one row with a complete key. Never replaces one; the version starts at 1. */
function insertRow(options: SqlRowsOptions): Tool {
  const { database, named, rowInput, resources, versionAt } = opened(options);
  const insert = ({ table: name, row }: RowInput, end: Change) => {
    const table = named(name);
    expectColumns(Object.keys(row), [...table.key, ...writableOf(table)], "row");
    expectKey(table, row);
    const versioned = { ...row, [table.version]: FIRST_VERSION };
    return database.transaction(() => addingForGood(database, table, versioned), end);
  };
  return defineTool({
    name: "sql.insert_row",
    description:
      "Adds one row to a staging table. Give the whole primary key and the values; the version is set automatically. An existing row is never replaced.",
    input: rowInput,
    safety: {
      effect: "write",
      reversible: true,
      undoTool: "sql.remove_row",
      affects: ["database"],
    },
    auditOperation: "write",
    searchHint: "insert add create database row",
    resources,
    ...WRITES,
    stateVersion: ({ input }) => versionAt(named(input.table), input.row),
    dryRun: async ({ input }) => ({
      summary: `would add one row to ${input.table}`,
      preview: `after: ${JSON.stringify(await insert(input, "rollback"))}`,
      impact: { rows: 1 },
    }),
    execute: ({ input }) =>
      answerOrRefuse<RowData>(async () => {
        const row = await insert(input, "commit");
        const table = named(input.table);
        const undo = { table: table.name, key: keyOf(table, row), version: FIRST_VERSION };
        return {
          ...answer(`Added one row to ${table.name}.`, row),
          undo: undoBy("sql.remove_row", undo, `remove the new row of ${table.name} again`),
        };
      }),
    probe: async ({ input }) => {
      const found = await readRow(database, named(input.table), input.row);
      if (found === undefined) return { happened: false };
      return { happened: "unknown", reason: "there is a row with this key, perhaps of another" };
    },
  });
}

/** Deletes one row by its version, after it has shown inside the transaction that the row can be put back. */
function deleteRow(options: SqlRowsOptions): Tool {
  const { database, named, keyInput, resources, versionAt } = opened(options);
  const remove = (input: KeyInput, end: Change) =>
    database.transaction(() => deletingForGood(database, named(input.table), input), end);
  return defineTool({
    name: "sql.delete_row",
    description:
      "Deletes one row of a staging table, if it still has the version you have read. If the row was changed meanwhile, nothing is deleted. A row that could not be put back exactly is not deleted.",
    input: keyInput,
    safety: {
      effect: "write",
      reversible: true,
      destructive: true,
      undoTool: "sql.put_back_row",
      affects: ["database"],
    },
    auditOperation: "delete",
    searchHint: "delete remove database row",
    resources,
    ...WRITES,
    stateVersion: ({ input }) => versionAt(named(input.table), input.key),
    dryRun: async ({ input }) => ({
      summary: `would delete one row of ${input.table}`,
      preview: `before: ${JSON.stringify(await remove(input, "rollback"))}`,
      impact: { rows: 1 },
    }),
    execute: ({ input }) =>
      answerOrRefuse<RowData>(async () => {
        const row = await remove(input, "commit");
        const undo = { table: input.table, row };
        return {
          ...answer(`Deleted one row of ${input.table}.`, row),
          undo: undoBy("sql.put_back_row", undo, `put the deleted row of ${input.table} back`),
        };
      }),
    probe: async ({ input }) => {
      const table = named(input.table);
      const found = await readRow(database, table, input.key);
      if (found?.[table.version] === input.version) return { happened: false };
      return { happened: "unknown", reason: "the row is gone or changed, perhaps by another" };
    },
  });
}

const UNDO_ONLY = { undoOnly: true, permissionClass: "generic" } as const;

/** Undoes an insert: removes the row if it has not changed since (T9). */
function removeRow(options: SqlRowsOptions): Tool {
  const { database, named, keyInput, resources, versionAt } = opened(options);
  return defineTool({
    name: "sql.remove_row",
    description: "Undoes sql.insert_row. It runs only as part of a rollback.",
    input: keyInput,
    safety: { effect: "write", destructive: true, affects: ["database"] },
    auditOperation: "delete",
    searchHint: "undo database insert",
    resources,
    ...UNDO_ONLY,
    stateVersion: ({ input }) => versionAt(named(input.table), input.key),
    execute: ({ input }) =>
      answerOrRefuse<RowData>(async () => {
        const table = named(input.table);
        const work = () => deleting(database, table, input);
        const row = await database.transaction(work, "commit");
        return answer(`Removed the new row of ${table.name} again.`, row);
      }),
    probe: async ({ input }) => {
      const table = named(input.table);
      const found = await readRow(database, table, input.key);
      if (found === undefined) {
        return { happened: true, result: answer(`The row of ${table.name} is gone.`, {}) };
      }
      if (found[table.version] === input.version) return { happened: false };
      return { happened: "unknown", reason: "the row was changed since" };
    },
  });
}

/** Undoes a delete: inserts the old row with its version, unless there is one with its key by now (T9). */
function putBackRow(options: SqlRowsOptions): Tool {
  const { database, named, rowInput, resources, versionAt } = opened(options);
  return defineTool({
    name: "sql.put_back_row",
    description: "Undoes sql.delete_row. It runs only as part of a rollback.",
    input: rowInput,
    safety: { effect: "write", affects: ["database"] },
    auditOperation: "write",
    searchHint: "undo database delete",
    resources,
    ...UNDO_ONLY,
    stateVersion: ({ input }) => versionAt(named(input.table), input.row),
    execute: ({ input }) =>
      answerOrRefuse<RowData>(async () => {
        const table = named(input.table);
        expectColumns(Object.keys(input.row), tableColumns(table), "row");
        expectKey(table, input.row);
        const work = () => addingExactly(database, table, input.row);
        const row = await database.transaction(work, "commit");
        return answer(`Put the deleted row of ${table.name} back.`, row);
      }),
    probe: async ({ input }) => {
      const table = named(input.table);
      const found = await readRow(database, table, input.row);
      if (found === undefined) return { happened: false };
      if (isSame(found, input.row)) {
        return { happened: true, result: answer(`The row of ${table.name} is back.`, found) };
      }
      return { happened: "unknown", reason: "there is another row with this key" };
    },
  });
}

interface RowData {
  readonly row: SqlRow;
}

function answer(text: string, row: SqlRow): Answered<RowData> & { readonly data: RowData } {
  return { text, data: { row } };
}

function undoBy(tool: string, input: object, description: string) {
  const manualGuide = `By hand: ${description}.`;
  return { tool, input: JSON.parse(JSON.stringify(input)), description, manualGuide };
}

function keyOf(table: SqlTable, row: SqlRow): SqlRow {
  return Object.fromEntries(table.key.map((column) => [column, row[column] ?? null]));
}

function isSame(a: SqlRow, b: SqlRow): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

/** Inserts and reads back. */
function* adding(database: SqlDatabase, table: SqlTable, row: SqlRow): SqlWork<SqlRow> {
  const statements = sqlStatements(database, table);
  const [existing] = (yield statements.row(row, { lock: true })).rows;
  if (existing !== undefined) {
    throw new ToolRefusal(
      "already_exists",
      `There is a row with this key in ${table.name}. Nothing was changed. This is the row now: ${JSON.stringify(existing)}.`,
    );
  }
  yield statements.insert(row);
  const [added, second] = (yield statements.row(row, { lock: false })).rows;
  if (added !== undefined && second === undefined) return added;
  throw new ToolRefusal(
    "unusable",
    `The database did not keep the row of ${table.name} as given. Nothing was changed. Tell the operator.`,
  );
}

/** Adds, removes and adds again in one transaction: the undo record is known to work before the row stays. */
function* addingForGood(database: SqlDatabase, table: SqlTable, row: SqlRow): SqlWork<SqlRow> {
  const added = yield* adding(database, table, row);
  yield* deleting(database, table, {
    table: table.name,
    key: keyOf(table, added),
    version: FIRST_VERSION,
  });
  return yield* adding(database, table, row);
}

/** For the undo of a delete: what is read back must be the old row. */
function* addingExactly(database: SqlDatabase, table: SqlTable, row: SqlRow): SqlWork<SqlRow> {
  const added = yield* adding(database, table, row);
  if (isSame(added, row)) return added;
  throw notUndoable(table, "the database changes its values");
}

/** Deletes by key and version, and reads back that the row is gone. */
function* deleting(
  database: SqlDatabase,
  table: SqlTable,
  { key, version }: KeyInput,
): SqlWork<SqlRow> {
  expectColumns(Object.keys(key), table.key, "key");
  expectKey(table, key);
  const statements = sqlStatements(database, table);
  const [before] = (yield statements.row(key, { lock: true })).rows;
  if (before === undefined) {
    throw new ToolRefusal(
      "not_found",
      `There is no row with this key in ${table.name}. Nothing was changed. Look for it with sql.query.`,
    );
  }
  if (before[table.version] !== version) throw changedMeanwhile(table, before, version);
  const others = (yield statements.dependents()).rows[0]?.["n"];
  if (others !== 0 && others !== "0") {
    throw notUndoable(table, "deleting a row may change others, by a trigger or foreign key");
  }
  const { affected } = yield statements.removeVersion(key, version);
  const rest = (yield statements.row(key, { lock: false })).rows;
  if (affected === 1 && rest.length === 0) return before;
  // More than one row, or one that came back: throw, so that everything is rolled back.
  throw new ToolRefusal(
    "unusable",
    `The key of ${table.name} does not name one row that can be deleted. Nothing was changed. Tell the operator.`,
  );
}

/**
 * Deletes, puts back, compares and deletes again, all in one transaction: the undo record is known to work before the
 * row is gone. A table with columns that are not declared is refused, because they would come back empty.
 */
function* deletingForGood(
  database: SqlDatabase,
  table: SqlTable,
  input: KeyInput,
): SqlWork<SqlRow> {
  const statements = sqlStatements(database, table);
  const [whole = {}] = (yield statements.wholeRow(input.key)).rows;
  const declared = new Set(tableColumns(table).map((column) => column.toLowerCase()));
  if (Object.keys(whole).some((column) => !declared.has(column.toLowerCase()))) {
    throw notUndoable(table, "it has columns that are not declared for this tool");
  }
  const before = yield* deleting(database, table, input);
  yield* addingExactly(database, table, before);
  yield* deleting(database, table, input);
  return before;
}

function changedMeanwhile(table: SqlTable, row: SqlRow, expected: number): ToolRefusal {
  return new ToolRefusal(
    "conflict",
    `The row of ${table.name} was changed meanwhile: it has version ${row[table.version]}, not ${expected}. Nothing was changed. This is the row now: ${JSON.stringify(row)}. Think again whether the change is still right, then call with the new version.`,
  );
}

function notUndoable({ name }: SqlTable, why: string): ToolRefusal {
  return new ToolRefusal(
    "not_allowed",
    `This change of ${name} could not be undone exactly: ${why}. Nothing was changed. Ask a person to do it.`,
  );
}
