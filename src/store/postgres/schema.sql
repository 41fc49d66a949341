-- Made by `node scripts/schema-dump.ts` from the migrations. Not to be edited.
-- schema_version 2

CREATE TABLE sallyport.approvals (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  hash text NOT NULL,
  preview text NOT NULL,
  expires_at bigint NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT approvals_pkey PRIMARY KEY (id, tenant)
);

CREATE TABLE sallyport.audit (
  tenant text NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  type text NOT NULL,
  subject text NOT NULL,
  session text NOT NULL,
  actor text NOT NULL,
  data text,
  salt text,
  data_hash text,
  hash text NOT NULL,
  CONSTRAINT audit_pkey PRIMARY KEY (tenant, seq)
);

CREATE TABLE sallyport.chains (
  tenant text NOT NULL,
  seq bigint NOT NULL,
  hash text NOT NULL,
  at bigint NOT NULL,
  CONSTRAINT chains_pkey PRIMARY KEY (tenant)
) WITH (fillfactor=50);

CREATE TABLE sallyport.decisions (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  session_id text NOT NULL,
  state text NOT NULL,
  source_tool text NOT NULL,
  raw bytea NOT NULL,
  diff_metadata text NOT NULL,
  metadata text,
  tech_verdict text,
  biz_verdict text,
  execution_proof text,
  execution_error text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT decisions_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT decisions_state_check CHECK ((state = ANY (ARRAY['pending_tech'::text, 'rejected_tech'::text, 'pending_ml'::text, 'rejected_ml'::text, 'approved'::text, 'executed'::text, 'failed'::text])))
);

CREATE INDEX decisions_by_ord ON sallyport.decisions USING btree (tenant, ord);
CREATE INDEX decisions_by_session ON sallyport.decisions USING btree (tenant, session_id, ord);
CREATE INDEX decisions_by_state ON sallyport.decisions USING btree (tenant, state, ord);

CREATE TABLE sallyport.operations (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
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
  CONSTRAINT operations_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT operations_status_check CHECK ((status = ANY (ARRAY['started'::text, 'unknown'::text, 'success'::text, 'failed'::text, 'rolled_back'::text])))
);

CREATE INDEX operations_by_session ON sallyport.operations USING btree (tenant, session_id, ord);
CREATE INDEX operations_by_status ON sallyport.operations USING btree (tenant, status, ord);

CREATE TABLE sallyport.schema_version (
  version bigint NOT NULL,
  name text NOT NULL,
  CONSTRAINT schema_version_pkey PRIMARY KEY (version)
);

CREATE TABLE sallyport.switches (
  ord bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  tenant text NOT NULL,
  id text NOT NULL,
  state text NOT NULL,
  reason text NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT switches_pkey PRIMARY KEY (id, tenant),
  CONSTRAINT switches_state_check CHECK ((state = ANY (ARRAY['running'::text, 'stopped'::text])))
);

