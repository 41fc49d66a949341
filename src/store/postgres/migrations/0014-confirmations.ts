import type { Migration } from "../../migration.ts";

/** The same change as in SQLite. */
export const confirmations: Migration = {
  version: 14,
  name: "confirmations",
  sql: `
ALTER TABLE $schema.interactions ADD COLUMN preview text, ADD COLUMN definitions text;
UPDATE $schema.interactions AS i SET preview = a.preview, definitions = a.definitions
  FROM $schema.approvals AS a WHERE a.tenant = i.tenant AND a.id = i.id AND i.type = 'confirm';
DROP TABLE $schema.approvals;
`,
};
