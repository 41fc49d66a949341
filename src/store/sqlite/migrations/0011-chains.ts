import type { Migration } from "../../migration.ts";

/**
 * The trail in the order of chains and places: `ord` is the chain's number above 32 bits of place, so an entry is appended
 * to the end of a table. With tenant and place as its key every fifth entry moved its neighbours to other pages, and each
 * commit wrote twice as many pages of the trail. A chain that is full is refused: one place more would be another chain's.
 */
export const chains: Migration = {
  version: 11,
  name: "chains",
  sql: `
CREATE TABLE chains (
  nr INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO chains (tenant) SELECT DISTINCT tenant FROM audit ORDER BY tenant;

ALTER TABLE audit RENAME TO audit_by_key;
CREATE TABLE audit (
  ord INTEGER PRIMARY KEY,
  chain INTEGER GENERATED ALWAYS AS (ord >> 32) VIRTUAL,
  seq INTEGER GENERATED ALWAYS AS (ord & 4294967295) VIRTUAL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject TEXT NOT NULL,
  session TEXT NOT NULL,
  actor TEXT NOT NULL,
  data TEXT,
  salt TEXT,
  data_hash TEXT,
  hash TEXT NOT NULL,
  CHECK ((ord & 4294967295) > 0)
) STRICT;
INSERT INTO audit (ord, at, type, subject, session, actor, data, salt, data_hash, hash)
  SELECT (nr << 32) | seq, at, type, subject, session, actor, data, salt, data_hash, hash
  FROM chains JOIN audit_by_key USING (tenant) ORDER BY nr, seq;
DROP TABLE audit_by_key;
`,
};
