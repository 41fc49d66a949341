import { z } from "zod";
import { GATE_POINTS, GRANTS, type Grant, type RecordedGrant } from "../../model/finding.ts";
import {
  type InputPattern,
  LONGEST_RULE_MS,
  STANDING_RULES,
  type StandingRule,
} from "../../model/standing-rule.ts";
import { fromIso, toIso } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { access, type Call, jsonRoute } from "../route.ts";
import {
  anyText,
  instantText,
  json,
  list,
  momentOf,
  name,
  pageByOrd,
  pageOf,
  paging,
  reason,
  texts,
  wireOf,
} from "../wire.ts";

const RULE_STATES = ["proposed", "active", "expired", "revoked"] as const;

const ruleState = z.enum(RULE_STATES);

/** One condition for each property; invalid ones are refused where they are used. */
export const pattern = z.record(z.string().max(1_000), z.record(z.string().max(20), json));

const standingRule = wireOf(
  STANDING_RULES,
  // biome-ignore format: a list
  [
    "id", "tool", "definitionHash", "pattern", "workingDirectory", "reason", "madeBy", "confirmedBy",
    "uses", "endedBy", "endReason", "expiresAt", "createdAt", "updatedAt",
  ],
  { pattern },
).extend({
  /** By the server's clock; an expired rule allows nothing. */
  state: ruleState,
});

/** Which calls a rule is about. */
const coverage = {
  tool: name,
  pattern,
  workingDirectory: z.string().max(4_096).optional(),
};

const objection = z.object(texts("id", "by", "reason"));

const replay = z.object({
  looked: z.int(),
  agreed: list(anyText),
  rejected: list(objection),
  stopped: list(objection),
  open: list(anyText),
  otherDefinition: z.int(),
  text: anyText,
});

function wireRule(rule: StandingRule, { services }: Call): z.output<typeof standingRule> {
  const { status, pattern, expiresAt } = rule;
  const isOver = status !== "revoked" && fromIso(expiresAt) < services.clock.now();
  return {
    ...rule,
    pattern: pattern as z.output<typeof standingRule>["pattern"],
    state: isOver ? "expired" : status,
  };
}

export const standingRuleRoutes = {
  "standingRules.list": jsonRoute({
    summary: "List standing rules and proposals, oldest first.",
    ...access("readAll", "none", "people"),
    input: z.strictObject({ tool: name.optional(), state: ruleState.optional(), ...paging }),
    answer: pageOf(standingRule),
    handle: ({ tool, state, ...paged }, call) =>
      pageByOrd(
        paged,
        (query) =>
          call.gate.standingRules.list({ ...query, ...definedFields({ tool, status: state }) }),
        (rule) => wireRule(rule, call),
      ),
  }),
  "standingRules.replay": jsonRoute({
    summary: "Show what a rule would have allowed among stored decisions. Changes nothing.",
    ...access("readAll", "none", "people"),
    input: z.strictObject({
      ...coverage,
      /** Only decisions that were changed since then. */
      since: instantText.optional(),
    }),
    answer: replay,
    handle: ({ pattern, since, ...rest }, { gate }) =>
      gate.standingRules.replay({
        ...definedFields({ ...rest, since: momentOf(since) }),
        pattern: pattern as InputPattern,
      }),
  }),
  "standingRules.propose": jsonRoute({
    summary: "Propose a standing rule. It allows nothing until another admin confirms it.",
    ...access("proposePolicy", "none", "people"),
    input: z.strictObject({ ...coverage, reason, forMs: z.int().min(1).max(LONGEST_RULE_MS) }),
    answer: standingRule,
    status: 201,
    async handle({ pattern, ...rest }, call) {
      const { gate, by } = call;
      const given = { ...definedFields(rest), pattern: pattern as InputPattern, by };
      return wireRule(await gate.standingRules.propose(given), call);
    },
  }),
  "standingRules.confirm": jsonRoute({
    summary: "Confirm a rule proposed by someone else.",
    ...access("administer", "none", "people"),
    input: z.strictObject({ id: name }),
    answer: standingRule,
    handle: async ({ id }, call) =>
      wireRule(await call.gate.standingRules.confirm(id, { by: call.by }), call),
  }),
  "standingRules.revoke": jsonRoute({
    summary: "Revoke a rule or a proposal permanently.",
    ...access("tighten", "none", "people"),
    input: z.strictObject({ id: name, reason }),
    answer: standingRule,
    handle: async ({ id, reason: why }, call) =>
      wireRule(await call.gate.standingRules.revoke(id, { by: call.by, reason: why }), call),
  }),
};

const scope = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("finding") }),
  z.strictObject({ kind: z.literal("point"), point: z.enum(GATE_POINTS) }),
  z.strictObject({ kind: z.literal("phase"), phase: name }),
]);

const overridden = z.strictObject({ policy: name, message: z.string().min(1).max(10_000) });

/** An empty session: for all sessions. Only a program of the host gives such a grant. */
const grant = z.object({
  ...wireOf(GRANTS, ["id", "sessionId", "finding", "grantor", "scope"], {
    finding: overridden,
    scope,
  }).shape,
  state: z.enum(["live", "expired", "revoked"]),
  ...texts("by", "reason"),
  /** Null: until it is revoked. */
  expiresAt: instantText.nullable(),
});

/** For longer than a day, change the policy instead. */
const LONGEST_MS = 24 * 3_600_000;

export const grantRoutes = {
  "grants.list": jsonRoute({
    summary: "List overrides of findings, oldest first.",
    ...access("readAll", "none", "people"),
    input: z.strictObject({ sessionId: name.optional(), ...paging }),
    answer: pageOf(grant),
    async handle({ sessionId, ...paged }, { store, services }) {
      const now = services.clock.now();
      const show = (one: RecordedGrant) => wireGrant(one, now);
      if (sessionId === undefined) {
        return pageByOrd(paged, (query) => store.grants.list(query), show);
      }
      return { items: (await store.grants.listFor(sessionId)).map(show), next: null };
    },
  }),
  "grants.give": jsonRoute({
    summary:
      "Override a finding in one session for a limited time. A hard denial cannot be overridden.",
    ...access("override", "none", "people"),
    input: z.strictObject({
      sessionId: name,
      finding: overridden,
      /** This finding alone by default. */
      scope: scope.optional(),
      /** Half an hour by default. */
      lastsMs: z.int().min(1).max(LONGEST_MS).optional(),
      reason,
    }),
    answer: grant,
    status: 201,
    async handle({ lastsMs, scope: where, ...rest }, call) {
      const given = await call.gate.grants.give({
        ...rest,
        ...definedFields({ lastsMs }),
        scope: where ?? { kind: "finding" },
        grantor: "user",
        by: call.by,
      });
      return wireGrant(given, call.services.clock.now());
    },
  }),
  "grants.revoke": jsonRoute({
    summary: "Revoke an override, so that the finding counts again.",
    ...access("tighten", "none", "people"),
    input: z.strictObject({ id: name, reason }),
    answer: grant,
    async handle({ id, reason: why }, { gate, by, services }) {
      const ended = await gate.grants.revoke(id as Grant["id"], why, { actor: by });
      return wireGrant(ended, services.clock.now());
    },
  }),
};

function wireGrant(record: RecordedGrant, now: number): z.output<typeof grant> {
  const { expiresAt, revoked } = record;
  const isOver = expiresAt !== undefined && expiresAt <= now;
  return {
    ...record,
    state: revoked === true ? "revoked" : isOver ? "expired" : "live",
    expiresAt: expiresAt === undefined ? null : toIso(expiresAt),
  };
}
