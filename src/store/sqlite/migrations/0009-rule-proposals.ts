import type { Migration } from "../../migration.ts";

/** A rule begins as a proposal that somebody else confirms, and it counts what it lets through. Rules that hold go on holding. */
export const ruleProposals: Migration = {
  version: 9,
  name: "rule-proposals",
  // SQLite cannot change a CHECK: the table is made anew.
  sql: `
ALTER TABLE standing_rules RENAME TO standing_rules_before;
CREATE TABLE standing_rules (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  tool TEXT NOT NULL,
  definition_hash TEXT NOT NULL,
  pattern TEXT NOT NULL,
  working_directory TEXT NOT NULL,
  reason TEXT NOT NULL,
  status TEXT NOT NULL,
  made_by TEXT NOT NULL,
  confirmed_by TEXT NOT NULL,
  uses INTEGER NOT NULL,
  ended_by TEXT NOT NULL,
  end_reason TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (status IN ('proposed','active','revoked'))
) STRICT;
INSERT INTO standing_rules
  SELECT ord, tenant, id, tool, definition_hash, pattern, working_directory, reason, status, made_by, '', 0,
    ended_by, end_reason, expires_at, version, created_at, updated_at FROM standing_rules_before;
DROP TABLE standing_rules_before;
CREATE UNIQUE INDEX standing_rules_key ON standing_rules (tenant, id);
CREATE INDEX standing_rules_by_tool ON standing_rules (tenant, tool, ord);
`,
};
