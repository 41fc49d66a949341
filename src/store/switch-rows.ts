import type { Step, Table } from "./engine.ts";

/** The kill switch of a tenant: one row, made when it is thrown for the first time. */
export const SWITCHES: Table = {
  name: "switches",
  columns: { state: "text", reason: "text", updated_at: "int" },
  indexed: [],
};

export const KILL = "kill";

/** Put in front of everything that starts an effect: it looks in the same transaction, never at a copy. */
export const RUNNING: Step = {
  op: "require",
  table: SWITCHES,
  id: KILL,
  where: { state: "running" },
  absent: "holds",
};
