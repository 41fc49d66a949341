import type { RefusalCode } from "./refusal.ts";
import type { SqlAnswer, SqlValue } from "./sql-table.ts";

/** What the process that runs SQL is asked, one at a time. */
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
  /** Set when the tool said no and not the database. */
  readonly refused?: RefusalCode;
  /** SQLite's own code; empty for an error that is neither. */
  readonly code: string;
  readonly text: string;
}

/** Beside this file, as source and as built. */
const ending = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
export const WATCHDOG = new URL(`./sqlite-watchdog${ending}`, import.meta.url);
export const SQLITE_PROCESS = new URL(`./sqlite-process${ending}`, import.meta.url);
