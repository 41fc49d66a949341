import type { RefusalCode } from "./refusal.ts";
import type { SqlAnswer, SqlValue } from "./sql-table.ts";

/** A request to the process that runs SQL, one at a time. */
export type SqliteOrder = {
  readonly text: string;
  readonly values: readonly SqlValue[];
} & (
  | { readonly kind: "read"; readonly most: number }
  | { readonly kind: "step" }
  /** BEGIN, COMMIT, ROLLBACK. */
  | { readonly kind: "control" }
);

export type SqliteReply = { readonly answer: SqlAnswer } | { readonly failure: SqliteFailure };

export interface SqliteFailure {
  /** Set when the tool refused, not the database. */
  readonly refused?: RefusalCode;
  /** SQLite's code; empty for other errors. */
  readonly code: string;
  readonly text: string;
}

/** Next to this file, as source and as built. */
const ending = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
export const WATCHDOG = new URL(`./sqlite-watchdog${ending}`, import.meta.url);
export const SQLITE_PROCESS = new URL(`./sqlite-process${ending}`, import.meta.url);
