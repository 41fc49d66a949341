-- Made by `node scripts/schema-dump.ts` from the migrations. Not to be edited.
-- user_version 2

CREATE TABLE approvals (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  hash TEXT NOT NULL,
  preview TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX approvals_key ON approvals (tenant, id);

CREATE TABLE audit (
  tenant TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject TEXT NOT NULL,
  session TEXT NOT NULL,
  actor TEXT NOT NULL,
  data TEXT,
  salt TEXT,
  data_hash TEXT,
  hash TEXT NOT NULL,
  PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE decisions (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  state TEXT NOT NULL,
  source_tool TEXT NOT NULL,
  raw BLOB NOT NULL,
  diff_metadata TEXT NOT NULL,
  metadata TEXT,
  tech_verdict TEXT,
  biz_verdict TEXT,
  execution_proof TEXT,
  execution_error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (state IN ('pending_tech','rejected_tech','pending_ml','rejected_ml','approved','executed','failed'))
) STRICT;

CREATE INDEX decisions_by_session ON decisions (tenant, session_id, ord);

CREATE INDEX decisions_by_state ON decisions (tenant, state, ord);

CREATE UNIQUE INDEX decisions_key ON decisions (tenant, id);

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

CREATE INDEX operations_by_session ON operations (tenant, session_id, ord);

CREATE INDEX operations_by_status ON operations (tenant, status, ord);

CREATE UNIQUE INDEX operations_key ON operations (tenant, id);

CREATE TABLE switches (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (state IN ('running','stopped'))
) STRICT;

CREATE UNIQUE INDEX switches_key ON switches (tenant, id);

