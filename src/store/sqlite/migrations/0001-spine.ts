import type { Migration } from "../../migration.ts";

/**
 * `ord` is the rowid: inserts append, and the order of insertion is the order of creation. The tenant leads every key.
 * The end of a chain is its last entry: SQLite has one writer at a time, so no row is needed to take turns on.
 * An entry's data_hash is null while its data is there to compute it from; erasing the data fills it in.
 * There is no index on the update time: it would be rewritten by every move, and the states that are asked for by age
 * are the ones in flight, which are few.
 */
export const spine: Migration = {
  version: 1,
  name: "spine",
  sql: `
CREATE TABLE audit (
  tenant TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject TEXT NOT NULL,
  session TEXT NOT NULL,
  actor TEXT NOT NULL,
  data TEXT,
  salt TEXT,
  data_hash TEXT,
  hash TEXT NOT NULL,
  PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE decisions (
  ord INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  state TEXT NOT NULL,
  source_tool TEXT NOT NULL,
  raw BLOB NOT NULL,
  diff_metadata TEXT NOT NULL,
  metadata TEXT,
  tech_verdict TEXT,
  biz_verdict TEXT,
  execution_proof TEXT,
  execution_error TEXT,
  asked INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (state IN ('pending_tech','rejected_tech','pending_ml','rejected_ml','approved','executed','failed'))
) STRICT;
CREATE UNIQUE INDEX decisions_key ON decisions (tenant, id);
CREATE INDEX decisions_by_session ON decisions (tenant, session_id, ord);
CREATE INDEX decisions_by_state ON decisions (tenant, state, ord);
`,
};
