import { z } from "zod";
import { GATE_POINTS, type Grant, type RecordedGrant } from "../../model/finding.ts";
import { toIso } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { jsonRoute, RULES } from "../route.ts";
import {
  DEFAULT_PAGE,
  instant,
  name,
  page,
  pageOf,
  paging,
  placeOf,
  reason,
} from "../wire/common.ts";

const scope = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("finding") }),
  z.strictObject({ kind: z.literal("point"), point: z.enum(GATE_POINTS) }),
  z.strictObject({ kind: z.literal("phase"), phase: name }),
]);

const finding = z.strictObject({ policy: name, message: z.string().min(1).max(10_000) });

const grant = z.object({
  id: z.string(),
  /** Empty: for all sessions. Only a program of the host gives such a grant. */
  sessionId: z.string(),
  finding,
  grantor: z.enum(["user", "plan-revision", "evidence-update"]),
  scope,
  state: z.enum(["live", "expired", "revoked"]),
  by: z.string(),
  reason: z.string(),
  /** Null: until it is revoked. */
  expiresAt: instant.nullable(),
});

/** For longer than a day, change the policy instead. */
const LONGEST_MS = 24 * 3_600_000;
const lane = "people" as const;

export const grantRoutes = {
  "grants.list": jsonRoute({
    summary: "List overrides of findings, oldest first.",
    rule: RULES.readAll,
    of: "none",
    input: z.strictObject({ sessionId: name.optional(), ...paging }),
    answer: pageOf(grant),
    lane,
    async handle({ sessionId, cursor, limit = DEFAULT_PAGE }, { store, services }) {
      const now = services.clock.now();
      if (sessionId !== undefined) {
        const items = (await store.grants.listFor(sessionId)).map((one) => wireGrant(one, now));
        return { items, next: null };
      }
      const found = await store.grants.list({ after: placeOf(cursor), limit: limit + 1 });
      const { items, next } = page(found, limit, ({ ord }) => ord);
      return { items: items.map((one) => wireGrant(one, now)), next };
    },
  }),
  "grants.give": jsonRoute({
    summary:
      "Override a finding in one session for a limited time. A hard denial cannot be overridden.",
    rule: RULES.decide,
    of: "none",
    input: z.strictObject({
      sessionId: name,
      finding,
      /** This finding alone by default. */
      scope: scope.optional(),
      /** Half an hour by default. */
      lastsMs: z.int().min(1).max(LONGEST_MS).optional(),
      reason,
    }),
    answer: grant,
    status: 201,
    lane,
    async handle({ lastsMs, scope: where, ...rest }, call) {
      const given = await call.gate.grants.give({
        ...rest,
        ...definedFields({ lastsMs }),
        scope: where ?? { kind: "finding" },
        grantor: "user",
        by: call.identity.subject,
      });
      return wireGrant(given, call.services.clock.now());
    },
  }),
  "grants.revoke": jsonRoute({
    summary: "Revoke an override, so that the finding counts again.",
    rule: RULES.tighten,
    of: "none",
    input: z.strictObject({ id: name, reason }),
    answer: grant,
    lane,
    async handle({ id, reason: why }, { gate, identity, services }) {
      const by = { actor: identity.subject };
      const ended = await gate.grants.revoke(id as Grant["id"], why, by);
      return wireGrant(ended, services.clock.now());
    },
  }),
};

function wireGrant(record: RecordedGrant, now: number): z.output<typeof grant> {
  const { id, sessionId, finding: about, grantor, scope: where, by, reason: why } = record;
  const { expiresAt, revoked } = record;
  const isOver = expiresAt !== undefined && expiresAt <= now;
  return {
    id,
    sessionId,
    finding: about,
    grantor,
    scope: where,
    state: revoked === true ? "revoked" : isOver ? "expired" : "live",
    by,
    reason: why,
    expiresAt: expiresAt === undefined ? null : toIso(expiresAt),
  };
}
