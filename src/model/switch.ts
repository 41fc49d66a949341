import { instant, integer, key, oneOf, prose, type RecordOf, record, text } from "./record.ts";

/**
 * The kill switch of a tenant, its epoch, its accepted clock and the number of its list of pauses: one row each, created when
 * first needed.
 */
export const SWITCHES = record(
  "switches",
  { id: key(), state: text(), reason: prose(), actor: text().optional(), updatedAt: instant() },
  { checks: ["id <> 'kill' OR state IN ('running','stopped')"] },
);

export const KILL = "kill";
/** Its state names the epoch of the store, which every restore begins anew. */
export const EPOCH = "epoch";
/** Its state is the time up to which the audit log is ahead of a correct clock. */
export const CLOCK = "clock";

/** Its state is the number of the list of pauses; see `PAUSES`. */
export const PAUSED_PARTS = "pauses";

/** The key under which a tenant's audit entries prove contents they do not show. */
export const CONTENT_KEYS = record("content_keys", {
  id: key(),
  secret: text(),
  createdAt: instant(),
});

/** The breaker of one tool, by the tool's name: it opens after failures in a row, and a person closes it. */
export const BREAKERS = record("breakers", {
  id: key(),
  state: oneOf(["closed", "open"]),
  /** In a row: calls that a review refused, that failed, or whose outcome is not known. */
  failures: integer(),
  /** Of the last failure, or of the person who closed it. */
  reason: prose(),
  /** Who closed it last; empty when it was never closed by a person. */
  closedBy: text(),
  updatedAt: instant(),
});
export type ToolBreaker = RecordOf<typeof BREAKERS>;
