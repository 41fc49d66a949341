import type { Step, Table } from "./engine.ts";

/** The kill switch of a tenant, and which life of the store it is in: a row each, made when it is needed for the first time. */
export const SWITCHES: Table = {
  name: "switches",
  columns: { state: "text", reason: "text", updated_at: "int" },
  indexed: [],
};

export const KILL = "kill";

/** Its state names the life of the store: made anew by every restore. */
export const EPOCH = "epoch";

/** Its state is the time up to which the trail is ahead of a clock that is right. */
export const CLOCK = "clock";

/** Put in front of everything that starts an effect: it looks in the same transaction, never at a copy. */
export const RUNNING: Step = {
  op: "require",
  table: SWITCHES,
  id: KILL,
  where: { state: "running" },
  absent: "holds",
};
