import { type AuditEntry, dataHash, GENESIS } from "../model/audit-entry.ts";
import { toIso } from "../util/clock.ts";

/** An entry as the SQL engines keep it: `prev` is not stored, since it is the hash of the row before. */
export interface AuditRow extends Omit<AuditEntry, "at" | "dataHash" | "prev"> {
  readonly at: number;
  /** Null while the data is there to compute it from. */
  readonly data_hash: string | null;
}

/** Entries after `after`, from rows that start one earlier: the first row only lends its hash. */
export function entriesOf(rows: readonly AuditRow[], after: number, limit: number): AuditEntry[] {
  const entries: AuditEntry[] = [];
  let prev = after === 0 ? GENESIS : "";
  for (const { at, data_hash, ...row } of rows) {
    if (row.seq > after && entries.length < limit) {
      const stored = data_hash ?? dataHash(row.salt ?? "", row.data ?? "");
      entries.push({ ...row, at: toIso(at), dataHash: stored, prev });
    }
    prev = row.hash;
  }
  return entries;
}
