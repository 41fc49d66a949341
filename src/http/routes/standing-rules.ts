import { z } from "zod";
import {
  type InputPattern,
  LONGEST_RULE_MS,
  STANDING_RULES,
  type StandingRule,
} from "../../model/standing-rule.ts";
import { fromIso } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { jsonRoute, RULES } from "../route.ts";
import {
  DEFAULT_PAGE,
  instant,
  json,
  list,
  momentOf,
  name,
  page,
  pageOf,
  paging,
  placeOf,
  reason,
} from "../wire/common.ts";
import { wireOf } from "../wire/record.ts";

const RULE_STATES = ["proposed", "active", "expired", "revoked"] as const;

const ruleState = z.enum(RULE_STATES);

/** One condition for each property; invalid ones are refused where they are used. */
export const pattern = z.record(z.string().max(1_000), z.record(z.string().max(20), json));

const standingRule = wireOf(
  STANDING_RULES,
  [
    "id",
    "tool",
    "definitionHash",
    "pattern",
    "workingDirectory",
    "reason",
    "madeBy",
    "confirmedBy",
    "uses",
    "endedBy",
    "endReason",
    "expiresAt",
    "createdAt",
    "updatedAt",
  ],
  { pattern },
).extend({
  /** By the server's clock; an expired rule allows nothing. */
  state: ruleState,
});

export type WireRule = z.output<typeof standingRule>;

/** Which calls a rule is about. */
const coverage = {
  tool: name,
  pattern,
  workingDirectory: z.string().max(4_096).optional(),
};

const objection = z.object({ id: z.string(), by: z.string(), reason: z.string() });

const replay = z.object({
  looked: z.int(),
  agreed: list(z.string()),
  rejected: list(objection),
  stopped: list(objection),
  open: list(z.string()),
  otherDefinition: z.int(),
  text: z.string(),
});

function wireRule(rule: StandingRule, now: number): WireRule {
  const { status, version, ord, ...rest } = rule;
  const isOver = status !== "revoked" && fromIso(rule.expiresAt) < now;
  return {
    ...rest,
    pattern: rest.pattern as WireRule["pattern"],
    state: isOver ? "expired" : status,
  };
}

const lane = "people" as const;

export const standingRuleRoutes = {
  "standingRules.list": jsonRoute({
    summary: "List standing rules and proposals, oldest first.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({ tool: name.optional(), state: ruleState.optional(), ...paging }),
    answer: pageOf(standingRule),
    lane,
    async handle({ tool, state, cursor, limit = DEFAULT_PAGE }, { gate, services }) {
      const query = { after: placeOf(cursor), limit: limit + 1 };
      const found = await gate.standingRules.list({
        ...query,
        ...definedFields({ tool, status: state }),
      });
      const { items, next } = page(found, limit, ({ ord }) => ord);
      return { items: items.map((rule) => wireRule(rule, services.clock.now())), next };
    },
  }),
  "standingRules.replay": jsonRoute({
    summary: "Show what a rule would have allowed among stored decisions. Changes nothing.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({
      ...coverage,
      /** Only decisions that were changed since then. */
      since: instant.optional(),
    }),
    answer: replay,
    lane,
    handle: ({ tool, pattern, workingDirectory, since }, { gate }) =>
      gate.standingRules.replay({
        tool,
        pattern: pattern as InputPattern,
        ...definedFields({
          workingDirectory,
          since: since === undefined ? undefined : momentOf(since),
        }),
      }),
  }),
  "standingRules.propose": jsonRoute({
    summary: "Propose a standing rule. It allows nothing until another admin confirms it.",
    rule: RULES.proposePolicy,
    of: "none",
    input: z.strictObject({ ...coverage, reason, forMs: z.int().min(1).max(LONGEST_RULE_MS) }),
    answer: standingRule,
    status: 201,
    lane,
    async handle({ tool, pattern, workingDirectory, ...rest }, { gate, identity, services }) {
      const rule = await gate.standingRules.propose({
        tool,
        pattern: pattern as InputPattern,
        ...rest,
        ...definedFields({ workingDirectory }),
        by: identity.subject,
      });
      return wireRule(rule, services.clock.now());
    },
  }),
  "standingRules.confirm": jsonRoute({
    summary: "Confirm a rule proposed by someone else.",
    rule: RULES.administer,
    of: "none",
    input: z.strictObject({ id: name }),
    answer: standingRule,
    lane,
    async handle({ id }, { gate, identity, services }) {
      const rule = await gate.standingRules.confirm(id, { by: identity.subject });
      return wireRule(rule, services.clock.now());
    },
  }),
  "standingRules.revoke": jsonRoute({
    summary: "Revoke a rule or a proposal permanently.",
    rule: RULES.tighten,
    of: "none",
    input: z.strictObject({ id: name, reason }),
    answer: standingRule,
    lane,
    async handle({ id, reason: why }, { gate, identity, services }) {
      const rule = await gate.standingRules.revoke(id, { by: identity.subject, reason: why });
      return wireRule(rule, services.clock.now());
    },
  }),
};
