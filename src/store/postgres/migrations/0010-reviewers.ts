import type { Migration } from "../../migration.ts";

/** The same tables as in SQLite. */
export const reviewers: Migration = {
  version: 10,
  name: "reviewers",
  sql: `
CREATE TABLE $schema.reviewers (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  status text NOT NULL,
  approved bigint NOT NULL,
  rejected bigint NOT NULL,
  caught bigint NOT NULL,
  missed bigint NOT NULL,
  hour_count bigint NOT NULL,
  hour_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CHECK (status IN ('trusted','suspended')),
  PRIMARY KEY (id, tenant)
);
CREATE TABLE $schema.decoys (
  ord bigint GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL,
  id text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (id, tenant)
);
`,
};
