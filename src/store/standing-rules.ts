import { SallyportError } from "../model/errors.ts";
import { checkName, foldName, isName } from "../model/names.ts";
import {
  type InputPattern,
  LONGEST_RULE_MS,
  patternProblem,
  STANDING_RULE_STATUSES,
  type StandingRule,
  type StandingRuleDraft,
  type StandingRuleId,
  standingRuleProblem,
} from "../model/standing-rule.ts";
import { toIso } from "../util/clock.ts";
import type { JsonObject } from "../util/json.ts";
import { checkReason, encoded } from "./decision-rows.ts";
import { type By, MAX_LIST } from "./decisions.ts";
import { type Conditions, NOW, type Row, type Table, type Values } from "./engine.ts";
import type { Hold } from "./operations.ts";
import { damaged, decoded, instantIn } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** What people have allowed beforehand. Every change is one transaction with its audit entry. */
export interface StandingRuleStore {
  /**
   * Makes a rule that lasts from now on by the store's clock. Throws invalid_input, also for a tool that cannot be taken
   * back or that destroys data: no rule covers those. Who may make one is looked at by the caller; no agent ever.
   */
  make(draft: StandingRuleDraft, by: By): Promise<StandingRule>;
  /** The same, but nothing holds before somebody else confirms it; its time runs already. Throws as `make`. */
  propose(draft: StandingRuleDraft, by: By): Promise<StandingRule>;
  /** Makes a proposal hold. Throws not_found, not_allowed for its author, illegal_transition when it is none or its time is over. */
  confirm(id: StandingRuleId, by: By): Promise<StandingRule>;
  /** Ends a rule for good. Of one that was revoked before, the first reason stays. Throws not_found. */
  revoke(id: StandingRuleId, reason: string, by: By): Promise<StandingRule>;
  /** Throws not_found. */
  get(id: StandingRuleId): Promise<StandingRule>;
  /** Oldest first. */
  list(query?: StandingRuleQuery): Promise<readonly StandingRule[]>;
  /** To be put into the intent of a call that the rule let through: it must still be the rule that was looked at, and counts. */
  holdOf(rule: StandingRule): Hold;
}

export interface StandingRuleQuery {
  readonly tool?: string;
  /** By the store's clock: an expired rule or proposal is neither active nor proposed any more. */
  readonly status?: "proposed" | "active" | "expired" | "revoked";
  /** Only those made after this one (`ord`). */
  readonly after?: number;
  /** Never more than `MAX_LIST`. */
  readonly limit?: number;
}

/** Standing rules over any engine. The store's clock says when one ends. */
export function engineStandingRules(engine: TenantEngine): StandingRuleStore {
  async function get(id: StandingRuleId): Promise<StandingRule> {
    const row = isName(id) ? await engine.get(STANDING_RULES, id) : undefined;
    if (row !== undefined) return ruleOf(row);
    const hint = "List the standing rules first.";
    throw new SallyportError("not_found", { id: String(id), hint });
  }

  async function write(
    draft: StandingRuleDraft,
    status: "proposed" | "active",
    { actor }: By,
  ): Promise<StandingRule> {
    checkName("actor", actor);
    const problem = standingRuleProblem(draft);
    if (problem !== undefined) {
      throw new SallyportError("invalid_input", { what: "standing rule", hint: `${problem}.` });
    }
    const id = engine.newId();
    const type = status === "active" ? "standing_rule.made" : "standing_rule.proposed";
    const { safetyClass, forMs } = draft;
    const data = { ...factsOf(draft), safety_class: safetyClass, for_ms: forMs };
    const result = await engine.commit({
      steps: [{ op: "insert", table: STANDING_RULES, id, row: rowOfRule(draft, status, actor) }],
      events: [{ type, subject: id, session: "", actor, data }],
    });
    if (!result.committed) throw new SallyportError("already_exists", { id });
    return ruleOf(result.rows[0] ?? {});
  }

  return {
    get,
    make: (draft, by) => write(draft, "active", by),
    propose: (draft, by) => write(draft, "proposed", by),
    async confirm(id, { actor }) {
      checkName("actor", actor);
      const proposal = await get(id);
      if (foldName(actor) === foldName(proposal.madeBy)) {
        const hint = "Somebody else has to confirm it: nobody loosens the rules alone.";
        throw new SallyportError("not_allowed", { id, by: actor, hint });
      }
      const data = { ...factsOf(proposal), proposed_by: proposal.madeBy };
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: STANDING_RULES,
            id,
            where: STATUSES.proposed,
            set: { status: "active", confirmed_by: actor, version: { plus: 1 }, updated_at: NOW },
          },
        ],
        events: [{ type: "standing_rule.made", subject: id, session: "", actor, data }],
      });
      if (result.committed) return ruleOf(result.rows[0] ?? {});
      const { status: from } = await get(id);
      const hint = "It is no proposal any more, or its time is over.";
      throw new SallyportError("illegal_transition", { id, from, to: "active", hint });
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
            where: { status: { oneOf: ["proposed", "active"] } },
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
        op: "update",
        table: STANDING_RULES,
        id,
        where: { ...STATUSES.active, tool, definition_hash: definitionHash, version },
        set: { uses: { plus: 1 } },
      },
    }),
  };
}

const STATUSES = {
  proposed: { status: "proposed", expires_at: { atLeast: NOW } },
  active: { status: "active", expires_at: { atLeast: NOW } },
  expired: {
    status: { oneOf: ["proposed", "active"] },
    expires_at: { atMost: { nowPlusMs: -1 } },
  },
  revoked: { status: "revoked" },
} as const satisfies Record<NonNullable<StandingRuleQuery["status"]>, Conditions>;

/** The rule itself, as the trail tells it. */
function factsOf(
  rule: Pick<
    StandingRule,
    "tool" | "definitionHash" | "pattern" | "workingDirectory" | "reason"
  > & { readonly expiresAt?: string },
): JsonObject {
  return {
    tool: rule.tool,
    definition: rule.definitionHash,
    pattern: structuredClone(rule.pattern) as unknown as JsonObject,
    working_directory: rule.workingDirectory,
    reason: rule.reason.toWellFormed(),
    ...(rule.expiresAt === undefined ? {} : { expires_at: rule.expiresAt }),
  };
}

function conditionsOf({ tool, status }: StandingRuleQuery): Conditions {
  return {
    ...(tool === undefined ? {} : { tool }),
    ...(status === undefined ? {} : STATUSES[status]),
  };
}

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

function rowOfRule(
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
function ruleOf(row: Row): StandingRule {
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
