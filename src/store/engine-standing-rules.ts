import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import {
  type StandingRule,
  type StandingRuleId,
  standingRuleProblem,
} from "../model/standing-rule.ts";
import type { JsonObject } from "../util/json.ts";
import { checkReason } from "./decision-checks.ts";
import { encoded } from "./decision-rows.ts";
import { MAX_LIST } from "./decisions.ts";
import { type Conditions, NOW } from "./engine.ts";
import { rowOfRule, ruleOf, STANDING_RULES } from "./standing-rule-rows.ts";
import type { StandingRuleQuery, StandingRuleStore } from "./standing-rules.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Standing rules over any engine. The store's clock says when one ends. */
export function engineStandingRules(engine: TenantEngine): StandingRuleStore {
  async function get(id: StandingRuleId): Promise<StandingRule> {
    const row = isName(id) ? await engine.get(STANDING_RULES, id) : undefined;
    if (row !== undefined) return ruleOf(row);
    const hint = "List the standing rules first.";
    throw new SallyportError("not_found", { id: String(id), hint });
  }

  return {
    get,
    async make(draft, { actor }) {
      checkName("actor", actor);
      const problem = standingRuleProblem(draft);
      if (problem !== undefined) {
        throw new SallyportError("invalid_input", { what: "standing rule", hint: `${problem}.` });
      }
      const id = engine.newId();
      const data = {
        tool: draft.tool,
        definition: draft.definitionHash,
        safety_class: draft.safetyClass,
        pattern: structuredClone(draft.pattern) as unknown as JsonObject,
        working_directory: draft.workingDirectory,
        reason: draft.reason.toWellFormed(),
        for_ms: draft.forMs,
      };
      const result = await engine.commit({
        steps: [{ op: "insert", table: STANDING_RULES, id, row: rowOfRule(draft, actor) }],
        events: [{ type: "standing_rule.made", subject: id, session: "", actor, data }],
      });
      if (!result.committed) throw new SallyportError("already_exists", { id });
      return ruleOf(result.rows[0] ?? {});
    },
    async revoke(id, reason, { actor }) {
      checkName("actor", actor);
      checkReason(reason);
      await get(id);
      const data = { reason: reason.toWellFormed() };
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: STANDING_RULES,
            id,
            where: { status: "active" },
            set: {
              status: "revoked",
              ended_by: actor,
              end_reason: encoded("reason", reason),
              version: { plus: 1 },
              updated_at: NOW,
            },
          },
        ],
        events: [{ type: "standing_rule.revoked", subject: id, session: "", actor, data }],
      });
      // Somebody revoked it before: it is over, which is all that was asked for.
      return result.committed ? ruleOf(result.rows[0] ?? {}) : get(id);
    },
    async list(query = {}) {
      const { after, limit = MAX_LIST } = query;
      const rows = await engine.find(STANDING_RULES, {
        where: conditionsOf(query),
        limit: Math.min(limit, MAX_LIST),
        ...(after === undefined ? {} : { afterOrd: after }),
      });
      return rows.map(ruleOf);
    },
    holdOf: ({ id, tool, definitionHash, version }) => ({
      refusal: "rule_ended",
      step: {
        op: "require",
        table: STANDING_RULES,
        id,
        where: { ...ACTIVE, tool, definition_hash: definitionHash, version },
        absent: "refuses",
      },
    }),
  };
}

const ACTIVE = { status: "active", expires_at: { atLeast: NOW } } as const;
const STATUSES: Readonly<Record<NonNullable<StandingRuleQuery["status"]>, Conditions>> = {
  active: ACTIVE,
  expired: { status: "active", expires_at: { atMost: { nowPlusMs: -1 } } },
  revoked: { status: "revoked" },
};

function conditionsOf({ tool, status }: StandingRuleQuery): Conditions {
  return {
    ...(tool === undefined ? {} : { tool }),
    ...(status === undefined ? {} : STATUSES[status]),
  };
}
