import { checkReason } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName, foldName } from "../model/names.ts";
import { MAX_LIST } from "../model/record.ts";
import {
  STANDING_RULES,
  type StandingRule,
  type StandingRuleDraft,
  type StandingRuleId,
  standingRuleProblem,
} from "../model/standing-rule.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonObject } from "../util/json.ts";
import type { By } from "./decisions.ts";
import { type Conditions, insertStep, NOW, updateStep } from "./engine.ts";
import type { Hold } from "./operations.ts";
import { getRecord, type TenantEngine, writeRecord } from "./tenant-engine.ts";

/** What people have allowed beforehand. Every change is one transaction with its audit entry. */
export interface StandingRuleStore {
  /**
   * Makes a rule that lasts from now on by the store's clock. Throws invalid_input, also for a tool that cannot be taken
   * back or that destroys data: no rule covers those. Who may make one is looked at by the caller; no agent ever.
   */
  make(draft: StandingRuleDraft, by: By): Promise<StandingRule>;
  /** The same, but the rule is not active until another person confirms it; its time starts now. Throws as `make`. */
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
  const get = (id: StandingRuleId) =>
    getRecord(engine, STANDING_RULES, id, "List the standing rules first.");

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
    const row = STANDING_RULES.row({
      ...draft,
      status,
      madeBy: actor,
      confirmedBy: "",
      uses: 0,
      endedBy: "",
      endReason: "",
      expiresAt: { nowPlusMs: forMs },
      version: 1,
      createdAt: NOW,
      updatedAt: NOW,
    });
    const data = { ...factsOf(draft), safety_class: safetyClass, for_ms: forMs };
    const event = { type, subject: id, session: "", actor, data };
    const step = insertStep(STANDING_RULES, id, row);
    const written = await writeRecord(engine, STANDING_RULES, step, event);
    if (written === undefined) throw new SallyportError("already_exists", { id });
    return written;
  }

  return {
    get,
    make: (draft, by) => write(draft, "active", by),
    propose: (draft, by) => write(draft, "proposed", by),
    async confirm(id, { actor }) {
      checkName("actor", actor);
      const proposal = await get(id);
      if (foldName(actor) === foldName(proposal.madeBy)) {
        const hint = "Another person has to confirm it: no one can loosen the rules alone.";
        throw new SallyportError("not_allowed", { id, by: actor, hint });
      }
      const data = { ...factsOf(proposal), proposed_by: proposal.madeBy };
      const event = { type: "standing_rule.made", subject: id, session: "", actor, data };
      const set = { status: "active", confirmed_by: actor, version: { plus: 1 }, updated_at: NOW };
      const step = updateStep(STANDING_RULES, id, STATUSES.proposed, set);
      const confirmed = await writeRecord(engine, STANDING_RULES, step, event);
      if (confirmed !== undefined) return confirmed;
      const { status: from } = await get(id);
      const hint = "It is no longer a proposal, or it has expired.";
      throw new SallyportError("illegal_transition", { id, from, to: "active", hint });
    },
    async revoke(id, reason, { actor }) {
      checkName("actor", actor);
      checkReason(reason);
      await get(id);
      const data = { reason: reason.toWellFormed() };
      const event = { type: "standing_rule.revoked", subject: id, session: "", actor, data };
      const ended = { status: "revoked", endedBy: actor, endReason: reason } as const;
      const set = STANDING_RULES.cells({ ...ended, updatedAt: NOW });
      const where = { status: { oneOf: ["proposed", "active"] } };
      const step = updateStep(STANDING_RULES, id, where, { ...set, version: { plus: 1 } });
      // The rule was revoked before, so there is nothing left to do.
      return (await writeRecord(engine, STANDING_RULES, step, event)) ?? get(id);
    },
    async list(query = {}) {
      const { after, limit = MAX_LIST } = query;
      const rows = await engine.find(STANDING_RULES, {
        where: conditionsOf(query),
        limit: Math.min(limit, MAX_LIST),
        ...definedFields({ afterOrd: after }),
      });
      return rows.map(STANDING_RULES.read);
    },
    holdOf: ({ id, tool, definitionHash, version }) => ({
      refusal: "rule_ended",
      step: updateStep(
        STANDING_RULES,
        id,
        { ...STATUSES.active, tool, definition_hash: definitionHash, version },
        { uses: { plus: 1 } },
      ),
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

/** The rule itself, as the trail records it. */
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
    ...definedFields({ expires_at: rule.expiresAt }),
  };
}

function conditionsOf({ tool, status }: StandingRuleQuery): Conditions {
  return { ...definedFields({ tool }), ...(status && STATUSES[status]) };
}
