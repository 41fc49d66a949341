import { RECORDS } from "../../model/records.ts";
import { ddlOf, SQLITE } from "../ddl.ts";
import type { Migration } from "../migration.ts";

/**
 * The audit log in the order of chains and entries: `ord` is the number of the chain above 32 bits for the entry, so an
 * entry is appended to the end of a table. A key of tenant and number would move the neighbours of every fifth entry to other
 * pages. A full chain is refused, because one entry more would belong to another chain. `data_hash` is null while the data
 * is there to compute it from; erasing the data fills it in.
 *
 * There is no index on times of update: every move would rewrite it, and the states that are queried by age are the few in
 * flight.
 */
const AUDIT = `CREATE TABLE chains (
  nr INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL UNIQUE
) STRICT;
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
) STRICT;`;

const BASELINE = [AUDIT, ...RECORDS.map((record) => ddlOf(record, SQLITE))].join("\n");

/** After the first release a record changes by a further migration, and the baseline stays what it was then. */
export const MIGRATIONS: readonly Migration[] = [{ version: 1, name: "baseline", sql: BASELINE }];
