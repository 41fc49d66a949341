import type { Migration } from "../../migration.ts";

/**
 * Which decisions the gate staged for an agent, so that nobody's metadata is taken for the gate's own facts, and which of them
 * nobody was asked about yet. Rows from before are known by the whole set of facts and the form of their payload together.
 */
export const origin: Migration = {
  version: 13,
  name: "origin",
  sql: `
ALTER TABLE decisions ADD COLUMN origin TEXT;
ALTER TABLE decisions ADD COLUMN unasked INTEGER;
UPDATE decisions SET origin = 'port'
  WHERE diff_metadata GLOB '{"requester":*,"chain":*,"owner":*,"messageId":*,"keys":*,"facts":*'
    AND substr(raw, 1, 10) = CAST('{"calls":[' AS BLOB);
UPDATE decisions SET unasked = updated_at
  WHERE origin = 'port' AND (state = 'pending_tech' OR (state = 'pending_ml' AND asked = 0));
CREATE INDEX decisions_unasked ON decisions (tenant, unasked) WHERE unasked IS NOT NULL;
`,
};
