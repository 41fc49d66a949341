import { instant, key, prose, record, text } from "./record.ts";

/** The kill switch of a tenant, its epoch and its accepted clock: one row each, created when first needed. */
export const SWITCHES = record(
  "switches",
  { id: key(), state: text(), reason: prose(), updatedAt: instant() },
  { checks: ["id <> 'kill' OR state IN ('running','stopped')"] },
);

export const KILL = "kill";
/** Its state names the epoch of the store, which every restore begins anew. */
export const EPOCH = "epoch";
/** Its state is the time up to which the audit log is ahead of a correct clock. */
export const CLOCK = "clock";

/** The key under which a tenant's audit entries prove contents they do not show. */
export const CONTENT_KEYS = record("content_keys", {
  id: key(),
  secret: text(),
  createdAt: instant(),
});
