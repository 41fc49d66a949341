import type { Migration } from "../../migration.ts";

/** Questions to people, which call led to which decision, and standing rules. */
export const interactions: Migration = {
  version: 3,
  name: "interactions",
  sql: `
CREATE TABLE interactions (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  session_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  decision_id TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  facts TEXT NOT NULL,
  votes TEXT,
  remarks TEXT,
  waits_for TEXT NOT NULL,
  assigned_to TEXT NOT NULL,
  deadline INTEGER NOT NULL,
  due_at INTEGER,
  escalate_at INTEGER,
  escalate_to TEXT NOT NULL,
  escalated INTEGER NOT NULL,
  outcome TEXT,
  answer TEXT,
  answered_by TEXT NOT NULL,
  superseded_by TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (type IN ('ask_user','confirm','connection_lost')),
  CHECK (status IN ('open','resolved','canceled'))
) STRICT;
CREATE UNIQUE INDEX interactions_key ON interactions (tenant, id);
CREATE INDEX interactions_by_status ON interactions (tenant, status, ord);
CREATE INDEX interactions_by_session ON interactions (tenant, session_id, ord);
CREATE INDEX interactions_by_due ON interactions (tenant, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX interactions_by_escalation ON interactions (tenant, escalate_at) WHERE escalate_at IS NOT NULL;

CREATE TABLE call_keys (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  decision_id TEXT NOT NULL,
  step INTEGER NOT NULL,
  action_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX call_keys_key ON call_keys (tenant, id);

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
  ended_by TEXT NOT NULL,
  end_reason TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (status IN ('active','revoked'))
) STRICT;
CREATE UNIQUE INDEX standing_rules_key ON standing_rules (tenant, id);
CREATE INDEX standing_rules_by_tool ON standing_rules (tenant, tool, ord);
`,
};
