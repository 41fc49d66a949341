import type { Migration } from "../../migration.ts";

/** What a confirmation shows moves into its interaction, which has the same id, hash and deadline. */
export const confirmations: Migration = {
  version: 14,
  name: "confirmations",
  sql: `
ALTER TABLE interactions ADD COLUMN preview TEXT;
ALTER TABLE interactions ADD COLUMN definitions TEXT;
UPDATE interactions SET (preview, definitions) =
  (SELECT a.preview, a.definitions FROM approvals AS a WHERE a.tenant = interactions.tenant AND a.id = interactions.id)
  WHERE type = 'confirm';
DROP TABLE approvals;
`,
};
