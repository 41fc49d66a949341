import type { Migration } from "../../migration.ts";

/** The same as in SQLite. */
export const ruleProposals: Migration = {
  version: 9,
  name: "rule-proposals",
  sql: `
ALTER TABLE $schema.standing_rules ADD COLUMN confirmed_by text NOT NULL DEFAULT '';
ALTER TABLE $schema.standing_rules ADD COLUMN uses bigint NOT NULL DEFAULT 0;
ALTER TABLE $schema.standing_rules DROP CONSTRAINT standing_rules_status_check;
ALTER TABLE $schema.standing_rules ADD CONSTRAINT standing_rules_status_check CHECK (status IN ('proposed','active','revoked'));
`,
};
