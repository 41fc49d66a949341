import type { Migration } from "../../migration.ts";

/** Where each conversation of an agent's flow stands. */
export const flowStates: Migration = {
  version: 6,
  name: "flow_states",
  sql: `
CREATE TABLE flow_states (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  node TEXT NOT NULL,
  revision INTEGER NOT NULL,
  hash TEXT NOT NULL,
  snapshot TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX flow_states_key ON flow_states (tenant, id);
CREATE INDEX flow_states_by_expiry ON flow_states (tenant, expires_at);
`,
};
