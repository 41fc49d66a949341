import type { Migration } from "../../migration.ts";

/**
 * The same tables as in SQLite. `ord` is the order of insertion; all writers of a tenant take turns on its chain, so it
 * is also the order of commit. The tenant leads every index that serves a query, so that tenants can be split over
 * databases later; the primary key starts with the id for the reason told in `statements.ts`.
 */
export const spine: Migration = {
  version: 1,
  name: "spine",
  sql: `
CREATE TABLE $schema.chains (
  tenant text PRIMARY KEY,
  seq bigint NOT NULL,
  hash text NOT NULL,
  at bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE $schema.audit (
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
  PRIMARY KEY (tenant, seq)
);

CREATE TABLE $schema.decisions (
  ord bigint GENERATED ALWAYS AS IDENTITY,
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
  asked bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (state IN ('pending_tech','rejected_tech','pending_ml','rejected_ml','approved','executed','failed'))
);
CREATE INDEX decisions_by_session ON $schema.decisions (tenant, session_id, ord);
CREATE INDEX decisions_by_state ON $schema.decisions (tenant, state, ord);
CREATE INDEX decisions_by_ord ON $schema.decisions (tenant, ord);
`,
};
