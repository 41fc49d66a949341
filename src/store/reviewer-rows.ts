import type { Reviewer } from "../model/reviewer.ts";
import { toIso } from "../util/clock.ts";
import type { Row, Table } from "./engine.ts";

/** Who has decided how; the key is the person. */
export const REVIEWERS: Table = {
  name: "reviewers",
  columns: {
    status: "text",
    approved: "int",
    rejected: "int",
    caught: "int",
    missed: "int",
    hour_count: "int",
    hour_at: "int",
    updated_at: "int",
  },
  indexed: [],
};

/** Decisions that are known to be bad and are never executed; the key is the decision's id. Nothing else tells them apart. */
export const DECOYS: Table = { name: "decoys", columns: { created_at: "int" }, indexed: [] };

export function reviewerOf(row: Row): Reviewer {
  const count = (name: string) => Number(row[name] ?? 0);
  return {
    id: String(row["id"]),
    status: row["status"] === "suspended" ? "suspended" : "trusted",
    approved: count("approved"),
    rejected: count("rejected"),
    caught: count("caught"),
    missed: count("missed"),
    hourCount: count("hour_count"),
    hourAt: toIso(count("hour_at")),
  };
}
