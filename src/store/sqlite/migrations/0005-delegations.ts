import type { Migration } from "../../migration.ts";

/** Who was handed what, which findings were overridden by whom, and the runs all of it belongs to. */
export const delegations: Migration = {
  version: 5,
  name: "delegations",
  sql: `
CREATE TABLE delegations (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  parent_session TEXT NOT NULL,
  root_session TEXT NOT NULL,
  run_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  promise_id TEXT NOT NULL,
  role TEXT NOT NULL,
  write_permission TEXT NOT NULL,
  state TEXT NOT NULL,
  chain TEXT NOT NULL,
  agents TEXT NOT NULL,
  owner TEXT NOT NULL,
  task TEXT NOT NULL,
  capsule TEXT NOT NULL,
  promise TEXT NOT NULL,
  scope TEXT NOT NULL,
  working_directory TEXT NOT NULL,
  token_hash TEXT NOT NULL,
  calls_left INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  output TEXT,
  promise_met INTEGER,
  reason TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (role IN ('research','doc','code','review','verify')),
  CHECK (write_permission IN ('none','documents-and-artefact','plan-approved-files','evidence-through-tool')),
  CHECK (state IN ('active','reported','failed','revoked')),
  CHECK (calls_left >= 0)
) STRICT;
CREATE UNIQUE INDEX delegations_key ON delegations (tenant, id);
CREATE INDEX delegations_by_parent ON delegations (tenant, parent_session, ord);
CREATE INDEX delegations_by_root ON delegations (tenant, root_session, ord);
CREATE INDEX delegations_by_state ON delegations (tenant, state, ord);

CREATE TABLE delegation_slots (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  parent_session TEXT NOT NULL,
  child_id TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX delegation_slots_key ON delegation_slots (tenant, id);
CREATE INDEX delegation_slots_by_parent ON delegation_slots (tenant, parent_session, ord);

CREATE TABLE grants (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  state TEXT NOT NULL,
  grantor TEXT NOT NULL,
  finding TEXT NOT NULL,
  scope TEXT NOT NULL,
  given_by TEXT NOT NULL,
  reason TEXT NOT NULL,
  expires_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (state IN ('live','revoked')),
  CHECK (grantor IN ('user','plan-revision','evidence-update'))
) STRICT;
CREATE UNIQUE INDEX grants_key ON grants (tenant, id);
CREATE INDEX grants_by_session ON grants (tenant, session_id, ord);

CREATE TABLE runs (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  phase TEXT NOT NULL,
  status TEXT NOT NULL,
  version INTEGER NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (phase IN ('discuss','spec','plan','execute','verify','ship')),
  CHECK (status IN ('open','done','stopped'))
) STRICT;
CREATE UNIQUE INDEX runs_key ON runs (tenant, id);
CREATE INDEX runs_by_status ON runs (tenant, status, ord);
`,
};
