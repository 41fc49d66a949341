/** A value as it stands in inputs, results and undo records. Marked ones are what JSON alone cannot say without loss. */
export type SqlValue =
  | string
  | number
  | boolean
  | null
  | { readonly $int: string }
  | { readonly $real: string }
  | { readonly $blob: string };

export type SqlRow = { readonly [column: string]: SqlValue };

export interface SqlStatement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

export interface SqlAnswer {
  readonly rows: readonly SqlRow[];
  /** Rows that a write has touched. */
  readonly affected: number;
}

/**
 * What is done inside one transaction: it yields statements and gets their answers. A generator and not a promise, because
 * a SQLite handle is shared: between two waits, statements of others would fall into our transaction.
 */
export type SqlWork<Result> = Generator<SqlStatement, Result, SqlAnswer>;

/**
 * All that the SQL tools need of a database. `sqliteDatabase` and `postgresDatabase` make one from an open handle.
 * Shape: callback; the tools wait for every call.
 */
export interface SqlDatabase {
  /** Stands in resources as `sql:name/table`, which rules and write scopes are about. */
  readonly name: string;
  readonly dialect: "sqlite" | "postgres";
  /** Runs one query where nothing can be written, and gives its first rows. Throws a Refusal when the database does. */
  read(query: SqlStatement, maxRows: number): Promise<{ rows: readonly SqlRow[]; more: boolean }>;
  /**
   * Runs the work in one transaction and ends it as told; rolls back when the work throws. Throws a Refusal when the
   * database refuses, outcome_unknown when it went away while committing.
   */
  transaction<Result>(work: () => SqlWork<Result>, end: "commit" | "rollback"): Promise<Result>;
}
