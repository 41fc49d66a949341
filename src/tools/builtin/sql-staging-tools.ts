import type { Tool } from "../tool.ts";
import { sqlDryRun } from "./sql-dry-run.ts";
import { type SqlRowOptions, sqlRestoreRow, sqlUpdateRow } from "./sql-update-row.ts";

/** The SQL tools that write, or try writing out, over one staging database. `sqlQuery` stands apart: it needs no staging. */
export function sqlStagingTools(options: SqlRowOptions): readonly Tool[] {
  return [sqlDryRun(options), sqlUpdateRow(options), sqlRestoreRow(options)];
}
