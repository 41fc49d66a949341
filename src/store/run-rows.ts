import { SallyportError } from "../model/errors.ts";
import type { Run } from "../model/run.ts";
import { encoded } from "./decision-rows.ts";
import { NOW, type Row, type Table, type Values } from "./engine.ts";
import { decoded } from "./read-cell.ts";

/** How a run lies in a row: its state as one text, and beside it what is asked for. */
export const RUNS: Table = {
  name: "runs",
  columns: {
    phase: "text",
    status: "text",
    version: "int",
    state: "text",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["status"],
};

export function rowOfRun(run: Run): Values {
  return {
    phase: run.phase,
    status: run.status,
    version: run.version,
    state: encoded("run", run),
    updated_at: NOW,
  };
}

export function runOf(row: Row): Run {
  const run = decoded<Run>(row, "state");
  const isWhole =
    run.id === row["id"] && run.version === row["version"] && run.phase === row["phase"];
  if (isWhole) return run;
  const hint = "Its state does not fit its row. Compare with the audit trail.";
  throw new SallyportError("damaged_record", { id: String(row["id"]), column: "state", hint });
}
