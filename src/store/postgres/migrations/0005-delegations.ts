import type { Migration } from "../../migration.ts";

/** The same tables as in SQLite. */
export const delegations: Migration = {
  version: 5,
  name: "delegations",
  sql: `
CREATE TABLE $schema.delegations (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  parent_session text NOT NULL,
  root_session text NOT NULL,
  run_id text NOT NULL,
  trace_id text NOT NULL,
  plan_id text NOT NULL,
  promise_id text NOT NULL,
  role text NOT NULL,
  write_permission text NOT NULL,
  state text NOT NULL,
  chain text NOT NULL,
  agents text NOT NULL,
  owner text NOT NULL,
  task text NOT NULL,
  capsule text NOT NULL,
  promise text NOT NULL,
  scope text NOT NULL,
  working_directory text NOT NULL,
  token_hash text NOT NULL,
  calls_left bigint NOT NULL,
  expires_at bigint NOT NULL,
  output text,
  promise_met bigint,
  reason text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (role IN ('research','doc','code','review','verify')),
  CHECK (write_permission IN ('none','documents-and-artefact','plan-approved-files','evidence-through-tool')),
  CHECK (state IN ('active','reported','failed','revoked')),
  CHECK (calls_left >= 0)
);
CREATE INDEX delegations_by_parent ON $schema.delegations (tenant, parent_session, ord);
CREATE INDEX delegations_by_root ON $schema.delegations (tenant, root_session, ord);
CREATE INDEX delegations_by_state ON $schema.delegations (tenant, state, ord);

CREATE TABLE $schema.delegation_slots (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  parent_session text NOT NULL,
  child_id text NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant)
);
CREATE INDEX delegation_slots_by_parent ON $schema.delegation_slots (tenant, parent_session, ord);

CREATE TABLE $schema.grants (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  session_id text NOT NULL,
  state text NOT NULL,
  grantor text NOT NULL,
  finding text NOT NULL,
  scope text NOT NULL,
  given_by text NOT NULL,
  reason text NOT NULL,
  expires_at bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (state IN ('live','revoked')),
  CHECK (grantor IN ('user','plan-revision','evidence-update'))
);
CREATE INDEX grants_by_session ON $schema.grants (tenant, session_id, ord);

CREATE TABLE $schema.runs (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  phase text NOT NULL,
  status text NOT NULL,
  version bigint NOT NULL,
  state text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (phase IN ('discuss','spec','plan','execute','verify','ship')),
  CHECK (status IN ('open','done','stopped'))
);
CREATE INDEX runs_by_status ON $schema.runs (tenant, status, ord);
`,
};
