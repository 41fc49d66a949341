import { RECORDS } from "../../model/records.ts";
import { ddlOf, POSTGRES } from "../ddl.ts";
import type { Migration } from "../migration.ts";

/**
 * All writers of a tenant take turns on the row of its chain, so the order of insertion is also the order of commit. The row
 * is only locked, and the end of the chain is read from its last entry: a row that every turn writes would leave dead
 * versions behind that nothing can remove while a long snapshot (a dump, a report) is open.
 */
const AUDIT = `CREATE TABLE $schema.chains (
  tenant text PRIMARY KEY
) WITH (fillfactor = 50);
CREATE TABLE $schema.audit (
  tenant text NOT NULL,
  seq bigint NOT NULL,
  at bigint NOT NULL,
  type text NOT NULL,
  subject text NOT NULL,
  session text NOT NULL,
  actor text NOT NULL,
  data text,
  salt text,
  data_hash text,
  hash text NOT NULL,
  PRIMARY KEY (tenant, seq)
);`;

const BASELINE = [AUDIT, ...RECORDS.map((record) => ddlOf(record, POSTGRES))].join("\n");

/**
 * `$schema` stands for the schema of the store. After the first release a record changes by a further migration, and the
 * baseline stays what it was then.
 */
export const MIGRATIONS: readonly Migration[] = [{ version: 1, name: "baseline", sql: BASELINE }];
