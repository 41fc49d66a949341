import type { Migration } from "../../migration.ts";

/** The same table as in SQLite. */
export const contentKeys: Migration = {
  version: 11,
  name: "content-keys",
  sql: `
CREATE TABLE $schema.content_keys (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  secret text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (id, tenant)
);
`,
};
