import type { Migration } from "../../migration.ts";

/** The same columns as in SQLite. */
export const origin: Migration = {
  version: 12,
  name: "origin",
  sql: `
ALTER TABLE $schema.decisions ADD COLUMN origin text;
ALTER TABLE $schema.decisions ADD COLUMN unasked bigint;
UPDATE $schema.decisions SET origin = 'port'
  WHERE diff_metadata LIKE '{"requester":%,"chain":%,"owner":%,"messageId":%,"keys":%,"facts":%'
    AND substr(raw, 1, 10) = convert_to('{"calls":[', 'UTF8');
UPDATE $schema.decisions SET unasked = updated_at
  WHERE origin = 'port' AND (state = 'pending_tech' OR (state = 'pending_ml' AND asked = 0));
CREATE INDEX decisions_unasked ON $schema.decisions (tenant, unasked) WHERE unasked IS NOT NULL;
`,
};
