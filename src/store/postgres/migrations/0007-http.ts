import type { Migration } from "../../migration.ts";

/** The same tables as in SQLite. */
export const http: Migration = {
  version: 7,
  name: "http",
  sql: `
CREATE TABLE $schema.tokens (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  kind text NOT NULL,
  hash text NOT NULL,
  subject text NOT NULL,
  roles text NOT NULL,
  owner text NOT NULL,
  note text NOT NULL,
  state text NOT NULL,
  made_by text NOT NULL,
  expires_at bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (kind IN ('token','session','link')),
  CHECK (state IN ('live','ended'))
);
CREATE UNIQUE INDEX tokens_by_hash ON $schema.tokens (tenant, hash);
CREATE INDEX tokens_by_kind ON $schema.tokens (tenant, kind, ord);

CREATE TABLE $schema.sessions (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  agent text NOT NULL,
  facts text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (id, tenant)
);
CREATE INDEX sessions_by_agent ON $schema.sessions (tenant, agent, ord);
CREATE INDEX sessions_by_ord ON $schema.sessions (tenant, ord);

CREATE TABLE $schema.http_keys (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  route text NOT NULL,
  content_hash text NOT NULL,
  state text NOT NULL,
  fence bigint NOT NULL,
  lease_until bigint NOT NULL,
  answer text,
  expires_at bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (id, tenant),
  CHECK (state IN ('begun','answered'))
);
CREATE INDEX http_keys_by_expiry ON $schema.http_keys (tenant, expires_at);
`,
};
