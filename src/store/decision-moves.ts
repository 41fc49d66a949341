import {
  type DecisionId,
  type DecisionState,
  isLegal,
  TIERS,
  type Tier,
} from "../model/decision.ts";
import type { Verdict } from "../model/verdict.ts";
import { sha256Hex } from "../util/hash.ts";
import { invariant } from "../util/invariant.ts";
import type { JsonObject } from "../util/json.ts";
import { checkReason, checkVerdict, shownVerdict } from "./decision-checks.ts";
import { DECISIONS, encoded } from "./decision-rows.ts";
import { type EventPlan, NOW, type Step, type Values } from "./engine.ts";

/** One move of a decision as data, to be written alone or together with what caused it. */
export interface DecisionMove {
  readonly id: DecisionId;
  readonly from: DecisionState;
  readonly to: DecisionState;
  /** The WHERE decides: of two racing moves one finds the state it expects. */
  readonly step: Step;
  /** What to tell when the move is the change's step with this index. */
  event(step: number): EventPlan;
}

/** Throws invalid_input for a verdict that is none. */
export function reviewMove(tier: Tier, id: DecisionId, verdict: Verdict): DecisionMove {
  checkVerdict(verdict);
  const { from, yes, no } = TIERS[tier];
  const column = tier === "tech" ? "tech_verdict" : "biz_verdict";
  return moveOf(id, from, verdict.approved ? yes : no, {
    set: {
      [column]: encoded("verdict", { ...verdict }),
      // Only a technical yes leads to a question; after any other verdict nobody has to be asked.
      ...(tier === "tech" && verdict.approved ? {} : { unasked: null }),
    },
    type: "decision.reviewed",
    actor: `validator:${verdict.validator}`,
    data: { tier, verdict: shownVerdict(verdict) },
  });
}

/** Throws invalid_input for a proof that is no data. */
export function executedMove(id: DecisionId, proof: unknown, actor: string): DecisionMove {
  const stored = encoded("proof", proof);
  return moveOf(id, "approved", "executed", {
    set: { execution_proof: stored },
    type: "decision.executed",
    actor,
    data: {},
    hashes: { proof: sha256Hex(stored) },
  });
}

/** Throws invalid_input for a reason that is no text. */
export function failedMove(id: DecisionId, reason: string, actor: string): DecisionMove {
  checkReason(reason);
  return moveOf(id, "approved", "failed", {
    set: { execution_error: encoded("reason", reason) },
    type: "decision.failed",
    actor,
    data: { reason: reason.toWellFormed() },
  });
}

interface MoveFacts {
  readonly set: Values;
  readonly type: string;
  readonly actor: string;
  readonly data: JsonObject;
  readonly hashes?: EventPlan["hashes"];
}

function moveOf(
  id: DecisionId,
  from: DecisionState,
  to: DecisionState,
  { set, type, actor, data, hashes }: MoveFacts,
): DecisionMove {
  invariant(isLegal(from, to), `${from} to ${to} is not in the table of moves`);
  return {
    id,
    from,
    to,
    step: {
      op: "update",
      table: DECISIONS,
      id,
      where: { state: from },
      set: { ...set, state: to, updated_at: NOW },
    },
    event: (index) => ({
      type,
      subject: id,
      session: { left: "session_id", step: index },
      actor,
      data: { from, to, ...data },
      ...(hashes === undefined ? {} : { hashes }),
    }),
  };
}
