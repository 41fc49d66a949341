import type { Migration } from "../../migration.ts";

/** How people decide, and the decoys that tell whether they look. */
export const reviewers: Migration = {
  version: 10,
  name: "reviewers",
  sql: `
CREATE TABLE reviewers (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  status TEXT NOT NULL,
  approved INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  caught INTEGER NOT NULL,
  missed INTEGER NOT NULL,
  hour_count INTEGER NOT NULL,
  hour_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (status IN ('trusted','suspended'))
) STRICT;
CREATE TABLE decoys (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX reviewers_key ON reviewers (tenant, id);
CREATE UNIQUE INDEX decoys_key ON decoys (tenant, id);
`,
};
