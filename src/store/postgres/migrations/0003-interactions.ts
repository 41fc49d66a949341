import type { Migration } from "../../migration.ts";

/** The same tables as in SQLite. */
export const interactions: Migration = {
  version: 3,
  name: "interactions",
  sql: `
CREATE TABLE $schema.interactions (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  type text NOT NULL,
  status text NOT NULL,
  session_id text NOT NULL,
  call_id text NOT NULL,
  hash text NOT NULL,
  decision_id text NOT NULL,
  operation_id text NOT NULL,
  facts text NOT NULL,
  votes text,
  remarks text,
  waits_for text NOT NULL,
  assigned_to text NOT NULL,
  deadline bigint NOT NULL,
  due_at bigint,
  escalate_at bigint,
  escalate_to text NOT NULL,
  escalated bigint NOT NULL,
  outcome text,
  answer text,
  answered_by text NOT NULL,
  superseded_by text NOT NULL,
  version bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (type IN ('ask_user','confirm','connection_lost')),
  CHECK (status IN ('open','resolved','canceled'))
);
CREATE INDEX interactions_by_status ON $schema.interactions (tenant, status, ord);
CREATE INDEX interactions_by_session ON $schema.interactions (tenant, session_id, ord);
CREATE INDEX interactions_by_due ON $schema.interactions (tenant, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX interactions_by_escalation ON $schema.interactions (tenant, escalate_at) WHERE escalate_at IS NOT NULL;

CREATE TABLE $schema.call_keys (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  decision_id text NOT NULL,
  step bigint NOT NULL,
  action_hash text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (id, tenant)
);

CREATE TABLE $schema.standing_rules (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  tool text NOT NULL,
  definition_hash text NOT NULL,
  pattern text NOT NULL,
  working_directory text NOT NULL,
  reason text NOT NULL,
  status text NOT NULL,
  made_by text NOT NULL,
  ended_by text NOT NULL,
  end_reason text NOT NULL,
  expires_at bigint NOT NULL,
  version bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (status IN ('active','revoked'))
);
CREATE INDEX standing_rules_by_tool ON $schema.standing_rules (tenant, tool, ord);
`,
};
