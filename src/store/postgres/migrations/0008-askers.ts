import type { Migration } from "../../migration.ts";

/** The same column as in SQLite. */
export const askers: Migration = {
  version: 8,
  name: "askers",
  sql: `
ALTER TABLE $schema.operations ADD COLUMN chain text;
`,
};
