import {
  type InputPattern,
  LONGEST_RULE_MS,
  patternProblem,
  STANDING_RULE_STATUSES,
  type StandingRule,
  type StandingRuleDraft,
} from "../model/standing-rule.ts";
import { toIso } from "../util/clock.ts";
import { encoded } from "./decision-rows.ts";
import { NOW, type Row, type Table, type Values } from "./engine.ts";
import { damaged, decoded, instantIn } from "./read-cell.ts";

export const STANDING_RULES: Table = {
  name: "standing_rules",
  columns: {
    tool: "text",
    definition_hash: "text",
    pattern: "text",
    working_directory: "text",
    reason: "text",
    status: "text",
    made_by: "text",
    confirmed_by: "text",
    uses: "int",
    ended_by: "text",
    end_reason: "text",
    expires_at: "int",
    version: "int",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["tool"],
};

export function rowOfRule(
  draft: StandingRuleDraft,
  status: "proposed" | "active",
  madeBy: string,
): Values {
  return {
    tool: draft.tool,
    definition_hash: draft.definitionHash,
    pattern: encoded("pattern", draft.pattern),
    working_directory: draft.workingDirectory,
    reason: encoded("reason", draft.reason),
    status,
    made_by: madeBy,
    confirmed_by: "",
    uses: 0,
    ended_by: "",
    end_reason: encoded("reason", ""),
    expires_at: { nowPlusMs: draft.forMs },
    version: 1,
    created_at: NOW,
    updated_at: NOW,
  };
}

/** Checked again after reading: a row that was changed from outside lets through no more than it did. */
export function ruleOf(row: Row): StandingRule {
  const status = STANDING_RULE_STATUSES.find((known) => known === row["status"]);
  if (status === undefined) throw damaged(row, "status");
  const pattern = decoded<InputPattern>(row, "pattern");
  if (patternProblem(pattern, { needsExact: false }) !== undefined) throw damaged(row, "pattern");
  const createdAt = Number(row["created_at"]);
  const expiresAt = Number(row["expires_at"]);
  if (expiresAt > createdAt + LONGEST_RULE_MS) throw damaged(row, "expires_at");
  return {
    id: String(row["id"]),
    tool: String(row["tool"]),
    definitionHash: String(row["definition_hash"]),
    pattern,
    workingDirectory: String(row["working_directory"]),
    reason: decoded(row, "reason"),
    status,
    madeBy: String(row["made_by"]),
    confirmedBy: String(row["confirmed_by"]),
    uses: Number(row["uses"]),
    endedBy: String(row["ended_by"]),
    endReason: decoded(row, "end_reason"),
    expiresAt: toIso(expiresAt),
    createdAt: toIso(createdAt),
    updatedAt: instantIn(row, "updated_at"),
    version: Number(row["version"]),
    ord: Number(row["ord"]),
  };
}
