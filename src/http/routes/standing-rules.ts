import { z } from "zod";
import { type InputPattern, LONGEST_RULE_MS } from "../../model/standing-rule.ts";
import { defined } from "../defined.ts";
import { jsonRoute } from "../route.ts";
import { RULES } from "../rule.ts";
import {
  DEFAULT_PAGE,
  instant,
  momentOf,
  name,
  page,
  pageOf,
  paging,
  placeOf,
  reason,
} from "../wire/common.ts";
import { coverage, replay, ruleState, standingRule, wireRule } from "../wire/standing-rule.ts";

const lane = "people" as const;

export const standingRuleRoutes = {
  "standingRules.list": jsonRoute({
    summary: "What people have allowed beforehand or want to, oldest first.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({ tool: name.optional(), state: ruleState.optional(), ...paging }),
    answer: pageOf(standingRule),
    lane,
    async handle({ tool, state, cursor, limit = DEFAULT_PAGE }, { port, services }) {
      const query = { after: placeOf(cursor), limit: limit + 1 };
      const found = await port.standingRules.list({
        ...query,
        ...defined({ tool, status: state }),
      });
      const { items, next } = page(found, limit, ({ ord }) => ord);
      return { items: items.map((rule) => wireRule(rule, services.clock.now())), next };
    },
  }),
  "standingRules.replay": jsonRoute({
    summary: "What such a rule would have done with stored decisions. Makes nothing.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({
      ...coverage,
      /** Only decisions that were changed since then. */
      since: instant.optional(),
    }),
    answer: replay,
    lane,
    handle: ({ tool, pattern, workingDirectory, since }, { port }) =>
      port.standingRules.replay({
        tool,
        pattern: pattern as InputPattern,
        ...defined({
          workingDirectory,
          since: since === undefined ? undefined : momentOf(since),
        }),
      }),
  }),
  "standingRules.propose": jsonRoute({
    summary:
      "Proposes a rule. It lets nothing through until an admin who is not its author confirms it.",
    rule: RULES.proposePolicy,
    of: "none",
    input: z.strictObject({ ...coverage, reason, forMs: z.int().min(1).max(LONGEST_RULE_MS) }),
    answer: standingRule,
    status: 201,
    lane,
    async handle({ tool, pattern, workingDirectory, ...rest }, { port, identity, services }) {
      const rule = await port.standingRules.propose({
        tool,
        pattern: pattern as InputPattern,
        ...rest,
        ...defined({ workingDirectory }),
        by: identity.subject,
      });
      return wireRule(rule, services.clock.now());
    },
  }),
  "standingRules.confirm": jsonRoute({
    summary: "Makes somebody else's proposal hold.",
    rule: RULES.administer,
    of: "none",
    input: z.strictObject({ id: name }),
    answer: standingRule,
    lane,
    async handle({ id }, { port, identity, services }) {
      const rule = await port.standingRules.confirm(id, { by: identity.subject });
      return wireRule(rule, services.clock.now());
    },
  }),
  "standingRules.revoke": jsonRoute({
    summary: "Ends a rule or a proposal for good.",
    rule: RULES.tighten,
    of: "none",
    input: z.strictObject({ id: name, reason }),
    answer: standingRule,
    lane,
    async handle({ id, reason: why }, { port, identity, services }) {
      const rule = await port.standingRules.revoke(id, { by: identity.subject, reason: why });
      return wireRule(rule, services.clock.now());
    },
  }),
};
