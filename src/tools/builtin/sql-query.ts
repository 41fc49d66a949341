import type { JsonObject } from "../../util/json.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { answerOrRefuse, jsonInput, ToolRefusal } from "./file-place.ts";
import { sqlRowTools } from "./sql-rows.ts";
import {
  COMPARISONS,
  declareTables,
  expectColumns,
  openStaging,
  ROW_INPUT,
  type SqlAnswer,
  type SqlCondition,
  type SqlDatabase,
  type SqlRow,
  type SqlStatement,
  type SqlTable,
  type SqlValue,
  type SqlWork,
  sqlResource,
  sqlStatements,
  tableColumns,
  tableInput,
  tableNamed,
  VALUE_INPUT,
  writableOf,
} from "./sql-table.ts";
import { type SqlRowOptions, sqlRestoreRow, sqlUpdateRow } from "./sql-update-row.ts";

interface SqlQueryOptions {
  readonly database: SqlDatabase;
  readonly maxRows?: number;
  /**
   * Default `generic`: each query asks unless a rule allows it. `readonly` allows all; use it where the database role
   * can read nothing that the agent must not see, and call no function with effects.
   */
  readonly permissionClass?: "readonly" | "generic";
}

interface QueryInput {
  readonly sql: string;
  readonly values?: readonly SqlValue[];
}

interface QueryData {
  readonly rows: readonly SqlRow[];
  readonly more: boolean;
}

const DEFAULT_MAX_ROWS = 200;

/** One read-only query: the database itself refuses every write. */
export function sqlQuery(options: SqlQueryOptions): Tool {
  const { database, maxRows = DEFAULT_MAX_ROWS, permissionClass = "generic" } = options;
  const places = database.dialect === "postgres" ? "$1, $2, …" : "?";
  return defineTool({
    name: "sql.query",
    description: `Reads from the ${database.dialect} database ${database.name} with one SELECT. Write values as ${places} and pass them in values. Returns at most ${maxRows} rows. It cannot change anything.`,
    input: jsonInput<QueryInput>(
      {
        sql: { type: "string", minLength: 1, maxLength: 20_000 },
        values: { type: "array", items: VALUE_INPUT, maxItems: 100 },
      },
      ["sql"],
    ),
    safety: { effect: "read", concurrencySafe: true, affects: ["database"] },
    permissionClass,
    auditOperation: "read",
    searchHint: "select database table rows",
    resources: () => [{ kind: "other", id: `sql:${database.name}`, access: "read" }],
    execute: ({ input }) =>
      answerOrRefuse<QueryData>(async () => {
        const query = { text: input.sql, values: input.values ?? [] };
        const { rows, more } = await database.read(query, maxRows);
        const rest = more ? `\n(There are more; only the first ${maxRows} are shown.)` : "";
        return {
          text: `${rows.length} rows:\n${JSON.stringify(rows)}${rest}`,
          data: { rows, more },
        };
      }),
  });
}

const CONDITIONS: JsonObject = {
  type: "array",
  items: {
    type: "object",
    properties: {
      column: { type: "string" },
      is: { enum: [...COMPARISONS] },
      value: VALUE_INPUT,
    },
    required: ["column", "is"],
    additionalProperties: false,
  },
  minItems: 1,
  maxItems: 20,
  description: "All of them must hold.",
};

/** Tries a change in a transaction that is always rolled back, and shows the rows before and after (I-17). */
export function sqlDryRun(options: Omit<SqlRowOptions, "retryBudget">): Tool {
  const database = openStaging(options.database);
  const tables = declareTables(options.tables);
  return defineTool({
    name: "sql.dry_run",
    description:
      "Shows what an insert, update or delete would do to a staging table: it is run inside a transaction and always rolled back. Pass the rows you intend to change as previewWhere; the answer reports if others would change.",
    input: jsonInput<RehearsalInput>(
      {
        table: tableInput(tables),
        operation: { enum: ["insert", "update", "delete"] },
        set: { ...ROW_INPUT, description: "New values; for insert and update." },
        where: CONDITIONS,
        previewWhere: CONDITIONS,
      },
      ["table", "operation"],
    ),
    // A rollback does not undo everything: locks are taken briefly and sequences advance.
    safety: { effect: "read", concurrencySafe: false, affects: ["database"] },
    permissionClass: "generic",
    auditOperation: "read",
    searchHint: "preview simulate sql change",
    resources: ({ input }) => [sqlResource(database, input.table, "write")],
    execute: ({ input }) =>
      answerOrRefuse<Rehearsal>(async () => {
        const rehearsal = await rehearse(database, tableNamed(tables, input.table), input);
        return { text: textOf(input, rehearsal), data: rehearsal };
      }),
  });
}

function textOf({ table, operation }: RehearsalInput, rehearsal: Rehearsal): string {
  const { affected, before, after, capped, signals } = rehearsal;
  const lines = [
    `The ${operation} would touch ${affected} rows of ${table}. It was rolled back: nothing was changed.`,
    ...signals.map(({ message }) => `Attention: ${message}`),
    ...(before.length > 0 ? [`before: ${JSON.stringify(before)}`] : []),
    ...(after.length > 0 ? [`after: ${JSON.stringify(after)}`] : []),
    ...(capped ? ["(Only the first 100 rows are shown.)"] : []),
  ];
  return lines.join("\n");
}

interface RehearsalInput {
  readonly table: string;
  readonly operation: "insert" | "update" | "delete";
  readonly set?: SqlRow;
  readonly where?: readonly SqlCondition[];
  /** The intended rows; by default the same as `where`. */
  readonly previewWhere?: readonly SqlCondition[];
}

interface Rehearsal {
  readonly affected: number;
  readonly before: readonly SqlRow[];
  readonly after: readonly SqlRow[];
  /** True when there are more rows than shown. */
  readonly capped: boolean;
  readonly signals: readonly { readonly signal: "preview_mismatch"; readonly message: string }[];
}

const MOST_ROWS = 100;

/** Reads the rows before and after the change, and always rolls back (I-17). */
async function rehearse(
  database: SqlDatabase,
  table: SqlTable,
  input: RehearsalInput,
): Promise<Rehearsal> {
  checkRehearsal(table, input);
  return database.transaction(
    () => steps(sqlStatements(database, table), table, input),
    "rollback",
  );
}

function* steps(
  statements: ReturnType<typeof sqlStatements>,
  table: SqlTable,
  { operation, set = {}, where = [], previewWhere = where }: RehearsalInput,
): SqlWork<Rehearsal> {
  if (operation === "insert") {
    const { affected } = yield statements.insert(set);
    const isKeyed = table.key.every((column) => Object.hasOwn(set, column));
    const after = isKeyed ? (yield statements.findKeys([set])).rows : [set];
    return { affected, before: [], after, capped: false, signals: [] };
  }
  const previewed = countOf(yield statements.count(previewWhere));
  // Equal counts do not mean equal rows, so the rows that match both filters are counted as well.
  const shared = countOf(yield statements.count([...previewWhere, ...where]));
  const found = (yield statements.find(previewWhere, MOST_ROWS + 1)).rows;
  const before = found.slice(0, MOST_ROWS);
  const change: SqlStatement =
    operation === "update" ? statements.update(set, where) : statements.remove(where);
  const { affected } = yield change;
  const isShown = operation === "update" && before.length > 0;
  const after = isShown ? (yield statements.findKeys(before)).rows : [];
  const signals = mismatch({ previewed, shared, affected });
  return { affected, before, after, capped: found.length > MOST_ROWS, signals };
}

function mismatch(counts: { previewed: number; shared: number; affected: number }) {
  const { previewed, shared, affected } = counts;
  if (shared === previewed && shared === affected) return [];
  const message = `the preview filter holds ${previewed} rows, the change would touch ${affected}, and ${shared} are the same. Look whether the change means the right rows.`;
  return [{ signal: "preview_mismatch" as const, message }];
}

function checkRehearsal(table: SqlTable, input: RehearsalInput): void {
  const { operation, set, where, previewWhere = [] } = input;
  const isInsert = operation === "insert";
  const settable = isInsert
    ? [...table.key, table.version, ...writableOf(table)]
    : [...writableOf(table), table.version];
  expectColumns(Object.keys(set ?? {}), settable, "set");
  const conditions = [...(where ?? []), ...previewWhere];
  expectColumns(
    conditions.map(({ column }) => column),
    tableColumns(table),
    "where",
  );
  const isFit =
    (operation === "delete") === (set === undefined) &&
    isInsert === (where === undefined) &&
    conditions.every(
      ({ is, value }) => COMPARISONS.includes(is) && is.startsWith("is ") === (value === undefined),
    );
  if (isFit) return;
  throw new ToolRefusal(
    "unusable",
    'These do not fit together: insert needs set; update needs set and where; delete needs where; "is null" and "is not null" take no value, the others need one. Nothing was done.',
  );
}

function countOf({ rows }: SqlAnswer): number {
  return Number(rows[0]?.["n"] ?? 0);
}

/**
 * The SQL tools that write or rehearse a write, on one staging database. `sqlQuery` is separate: it needs no staging
 * database.
 */
export function sqlStagingTools(options: SqlRowOptions): readonly Tool[] {
  const { database, tables } = options;
  const rows = sqlRowTools({ database, tables });
  return [sqlDryRun(options), sqlUpdateRow(options), sqlRestoreRow(options), ...rows];
}
