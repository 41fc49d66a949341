import { Refusal } from "./refusal.ts";
import type { SqlAnswer, SqlDatabase, SqlRow, SqlStatement, SqlWork } from "./sql-database.ts";
import { COMPARISONS, type SqlCondition, sqlStatements } from "./sql-statements.ts";
import { columnsOf, expectColumns, type SqlTable, writableOf } from "./sql-table.ts";

export interface RehearsalInput {
  readonly table: string;
  readonly operation: "insert" | "update" | "delete";
  readonly set?: SqlRow;
  readonly where?: readonly SqlCondition[];
  /** The rows that are meant; the same as `where` when left out. */
  readonly previewWhere?: readonly SqlCondition[];
}

export interface Rehearsal {
  readonly affected: number;
  readonly before: readonly SqlRow[];
  readonly after: readonly SqlRow[];
  /** True when there are more rows than are shown. */
  readonly capped: boolean;
  readonly signals: readonly { readonly signal: "preview_mismatch"; readonly message: string }[];
}

export const MOST_ROWS = 100;

/** Runs the change between a look before and a look after, and takes all of it back, whatever happens (I-17). */
export async function rehearse(
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
  // Equal numbers are not equal rows, so the rows that both filters hold are counted as well.
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
    columnsOf(table),
    "where",
  );
  const isFit =
    (operation === "delete") === (set === undefined) &&
    isInsert === (where === undefined) &&
    conditions.every(
      ({ is, value }) => COMPARISONS.includes(is) && is.startsWith("is ") === (value === undefined),
    );
  if (isFit) return;
  throw new Refusal(
    "unusable",
    'These do not fit together: insert needs set; update needs set and where; delete needs where; "is null" and "is not null" take no value, the others need one. Nothing was done.',
  );
}

function countOf({ rows }: SqlAnswer): number {
  return Number(rows[0]?.["n"] ?? 0);
}
