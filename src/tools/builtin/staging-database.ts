import { SallyportError } from "../../model/errors.ts";
import type { SqlDatabase } from "./sql-database.ts";

const STAGING: unique symbol = Symbol("staging");

/** A database that somebody has called staging, in writing. The only kind that writing SQL tools take (I-16). */
export interface StagingDatabase {
  readonly [STAGING]: SqlDatabase;
}

/**
 * Says that this handle leads to staging or shadow tables and never to production (I-16). Nothing can check that; the word
 * is there so that it can be seen, and searched for, wherever a writing tool is made.
 */
export function stagingDatabase(database: SqlDatabase): StagingDatabase {
  return Object.freeze({ [STAGING]: database });
}

/** Throws invalid_input for a handle that nobody has wrapped: tools are also made from JavaScript. */
export function openStaging(staging: StagingDatabase): SqlDatabase {
  const database = (staging as Partial<StagingDatabase> | undefined)?.[STAGING];
  if (database !== undefined) return database;
  const hint =
    "Tools that write need stagingDatabase(handle), so that it is clear what they write to.";
  throw new SallyportError("invalid_input", { what: "database", hint });
}
