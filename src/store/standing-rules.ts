import type { StandingRule, StandingRuleDraft, StandingRuleId } from "../model/standing-rule.ts";
import type { By } from "./decisions.ts";
import type { Hold } from "./operations.ts";

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
