import { z } from "zod";
import type { StandingRule } from "../../model/standing-rule.ts";
import { fromIso } from "../../util/clock.ts";
import { instant, json, list, name } from "./common.ts";

const RULE_STATES = ["proposed", "active", "expired", "revoked"] as const;

export const ruleState = z.enum(RULE_STATES);

/** One test for each property; what is wrong with one is said by whoever uses it, in its own words. */
export const pattern = z.record(z.string().max(1_000), z.record(z.string().max(20), json));

export const standingRule = z.object({
  id: z.string(),
  tool: z.string(),
  definitionHash: z.string(),
  pattern,
  workingDirectory: z.string(),
  reason: z.string(),
  /** By the server's clock; an expired rule lets nothing through. */
  state: ruleState,
  madeBy: z.string(),
  confirmedBy: z.string(),
  uses: z.int(),
  endedBy: z.string(),
  endReason: z.string(),
  expiresAt: instant,
  createdAt: instant,
  updatedAt: instant,
});

export type WireRule = z.output<typeof standingRule>;

/** Which calls a rule is about. */
export const coverage = {
  tool: name,
  pattern,
  workingDirectory: z.string().max(4_096).optional(),
};

const objection = z.object({ id: z.string(), by: z.string(), reason: z.string() });

export const replay = z.object({
  looked: z.int(),
  agreed: list(z.string()),
  rejected: list(objection),
  stopped: list(objection),
  open: list(z.string()),
  otherDefinition: z.int(),
  text: z.string(),
});

export function wireRule(rule: StandingRule, now: number): WireRule {
  const { status, version, ord, ...rest } = rule;
  const isOver = status !== "revoked" && fromIso(rule.expiresAt) < now;
  return {
    ...rest,
    pattern: rest.pattern as WireRule["pattern"],
    state: isOver ? "expired" : status,
  };
}
