import type { Migration } from "../../migration.ts";

/**
 * The row of a chain is only locked, and where the chain ends is read from its last entry. Written with every turn, it left
 * dead versions behind that nothing could remove while a long snapshot (a dump, a report) was open.
 */
export const chainLocks: Migration = {
  version: 13,
  name: "chain-locks",
  sql: `
ALTER TABLE $schema.chains DROP COLUMN seq, DROP COLUMN hash, DROP COLUMN at;
`,
};
