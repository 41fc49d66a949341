import type { Migration } from "../../migration.ts";

/** The key of each tenant under which the log proves contents that it does not show. */
export const contentKeys: Migration = {
  version: 12,
  name: "content-keys",
  sql: `
CREATE TABLE content_keys (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  secret TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX content_keys_key ON content_keys (tenant, id);
`,
};
