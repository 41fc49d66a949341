import type { Migration } from "../../migration.ts";

/** Who may speak, whose session is whose, and what was answered to a request that may be sent again. */
export const http: Migration = {
  version: 7,
  name: "http",
  sql: `
CREATE TABLE tokens (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  hash TEXT NOT NULL,
  subject TEXT NOT NULL,
  roles TEXT NOT NULL,
  owner TEXT NOT NULL,
  note TEXT NOT NULL,
  state TEXT NOT NULL,
  made_by TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (kind IN ('token','session','link')),
  CHECK (state IN ('live','ended'))
) STRICT;
CREATE UNIQUE INDEX tokens_key ON tokens (tenant, id);
CREATE UNIQUE INDEX tokens_by_hash ON tokens (tenant, hash);
CREATE INDEX tokens_by_kind ON tokens (tenant, kind, ord);

CREATE TABLE sessions (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  agent TEXT NOT NULL,
  facts TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX sessions_key ON sessions (tenant, id);
CREATE INDEX sessions_by_agent ON sessions (tenant, agent, ord);

CREATE TABLE http_keys (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  route TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  state TEXT NOT NULL,
  fence INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  answer TEXT,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  CHECK (state IN ('begun','answered'))
) STRICT;
CREATE UNIQUE INDEX http_keys_key ON http_keys (tenant, id);
CREATE INDEX http_keys_by_expiry ON http_keys (tenant, expires_at);
`,
};
