import type { Migration } from "../../migration.ts";

/** The same table as in SQLite. */
export const flowStates: Migration = {
  version: 6,
  name: "flow_states",
  sql: `
CREATE TABLE $schema.flow_states (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  session_id text NOT NULL,
  trace_id text NOT NULL,
  node text NOT NULL,
  revision bigint NOT NULL,
  hash text NOT NULL,
  snapshot text NOT NULL,
  expires_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant)
);
CREATE INDEX flow_states_by_expiry ON $schema.flow_states (tenant, expires_at);
`,
};
