import type { Migration } from "../../migration.ts";

/** The same tables as in SQLite. */
export const operations: Migration = {
  version: 2,
  name: "operations",
  sql: `
CREATE TABLE $schema.operations (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  session_id text NOT NULL,
  message_id text NOT NULL,
  call_id text NOT NULL,
  turn bigint NOT NULL,
  tool text NOT NULL,
  effect text NOT NULL,
  definition_hash text NOT NULL,
  input text NOT NULL,
  working_directory text NOT NULL,
  decision_id text NOT NULL,
  step bigint NOT NULL,
  undo_of text NOT NULL,
  status text NOT NULL,
  attempt bigint NOT NULL,
  fence bigint NOT NULL,
  lease_until bigint NOT NULL,
  output text,
  truncated bigint NOT NULL,
  stored_path text,
  undo text,
  error text,
  state_version text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (status IN ('started','unknown','success','failed','rolled_back'))
);
CREATE INDEX operations_by_session ON $schema.operations (tenant, session_id, ord);
CREATE INDEX operations_by_status ON $schema.operations (tenant, status, ord);

CREATE TABLE $schema.approvals (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  hash text NOT NULL,
  preview text NOT NULL,
  definitions text NOT NULL,
  expires_at bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (id, tenant)
);

CREATE TABLE $schema.switches (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  state text NOT NULL,
  reason text NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (id <> 'kill' OR state IN ('running','stopped'))
);
`,
};
