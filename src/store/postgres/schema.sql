-- Made by `node scripts/schema-dump.ts` from the migrations. Not to be edited.
-- schema_version 1

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

CREATE TABLE sallyport.schema_version (
  version bigint NOT NULL,
  name text NOT NULL,
  CONSTRAINT schema_version_pkey PRIMARY KEY (version)
);

