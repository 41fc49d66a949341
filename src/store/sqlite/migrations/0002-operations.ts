import type { Migration } from "../../migration.ts";

/** What is shown and approved, what was done and how to take it back, and the switch that stops everything. */
export const operations: Migration = {
  version: 2,
  name: "operations",
  sql: `
CREATE TABLE operations (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  tool TEXT NOT NULL,
  effect TEXT NOT NULL,
  definition_hash TEXT NOT NULL,
  input TEXT NOT NULL,
  working_directory TEXT NOT NULL,
  decision_id TEXT NOT NULL,
  step INTEGER NOT NULL,
  undo_of TEXT NOT NULL,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  output TEXT,
  truncated INTEGER NOT NULL,
  stored_path TEXT,
  undo TEXT,
  error TEXT,
  state_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (status IN ('started','unknown','success','failed','rolled_back'))
) STRICT;
CREATE UNIQUE INDEX operations_key ON operations (tenant, id);
CREATE INDEX operations_by_session ON operations (tenant, session_id, ord);
CREATE INDEX operations_by_status ON operations (tenant, status, ord);

CREATE TABLE approvals (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  hash TEXT NOT NULL,
  preview TEXT NOT NULL,
  definitions TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX approvals_key ON approvals (tenant, id);

CREATE TABLE switches (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (id <> 'kill' OR state IN ('running','stopped'))
) STRICT;
CREATE UNIQUE INDEX switches_key ON switches (tenant, id);
`,
};
