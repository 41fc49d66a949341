import { type Preview, previewHash } from "../model/approval.ts";
import { type Decision, type DecisionId, isDecisionState } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import type { Verdict } from "../model/verdict.ts";
import { fromIso, toIso } from "../util/clock.ts";
import { decodeValue } from "../util/value-codec.ts";
import { APPROVALS } from "./approval-rows.ts";
import { reviewMove } from "./decision-moves.ts";
import { DECISIONS, decisionOf, encoded } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { NOW } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** What is shown for a decision, and the business verdict that is bound to exactly that. */
export interface ApprovalStore {
  /** Stores what reviewers will see, once, while the business tier has the decision. Throws illegal_transition. */
  show(preview: Preview, by: By): Promise<{ readonly hash: string }>;
  /** Undefined when nothing was shown yet. */
  shown(id: DecisionId): Promise<{ readonly preview: Preview; readonly hash: string } | undefined>;
  /**
   * The business verdict of somebody who saw this hash. Throws approval_void when something else was shown or the time to
   * decide is over, illegal_transition when it was decided before.
   */
  decide(id: DecisionId, hash: string, verdict: Verdict): Promise<Decision>;
}

export function engineApprovals(engine: TenantEngine): ApprovalStore {
  async function shown(id: DecisionId) {
    const row = isName(id) ? await engine.get(APPROVALS, id) : undefined;
    if (row === undefined) return undefined;
    const preview = decodeValue(String(row["preview"])) as Preview;
    if (toIso(Number(row["expires_at"])) !== preview.expiresAt) {
      const hint = "Its expiry is not the one that was shown. Compare with the audit trail.";
      throw new SallyportError("damaged_record", { id, column: "expires_at", hint });
    }
    return { preview, hash: String(row["hash"]) };
  }
  return {
    shown,
    async show(preview, { actor }) {
      checkName("actor", actor);
      const { decisionId: id } = preview;
      const hash = previewHash(preview);
      const row = {
        hash,
        preview: encoded("preview", preview),
        expires_at: fromIso(preview.expiresAt),
        created_at: NOW,
      };
      const inReview = {
        op: "require",
        table: DECISIONS,
        id,
        where: { state: "pending_ml" },
        absent: "refuses",
      } as const;
      const result = await engine.commit({
        steps: [inReview, { op: "insert", table: APPROVALS, id, row }],
        events: [
          {
            type: "decision.previewed",
            subject: id,
            session: { left: "session_id" },
            actor,
            data: { hash, expires_at: preview.expiresAt, safety_class: preview.safetyClass },
          },
        ],
      });
      if (result.committed) return { hash };
      const hint = "A preview is stored once, while the business tier has the decision.";
      throw new SallyportError("illegal_transition", { id, hint });
    },
    async decide(id, hash, verdict) {
      if (!isName(id)) throw new SallyportError("not_found", { id: String(id) });
      await shown(id);
      const move = reviewMove("business", id, verdict);
      const seen = {
        op: "require",
        table: APPROVALS,
        id,
        where: { hash, expires_at: { atLeast: NOW } },
        absent: "refuses",
      } as const;
      const result = await engine.commit({
        steps: [seen, move.step],
        events: [move.event(1)],
      });
      if (result.committed) return decisionOf(result.rows[1] ?? {});
      const decision = await engine.get(DECISIONS, id);
      if (decision === undefined) throw new SallyportError("not_found", { id });
      const { state } = decision;
      if (isDecisionState(state) && state !== move.from) {
        const hint = "It was decided before; that decision stands.";
        throw new SallyportError("illegal_transition", { id, from: state, to: move.to, hint });
      }
      const hint = "Look at the decision again: what you saw is not what would run, or it expired.";
      throw new SallyportError("approval_void", { id, hint });
    },
  };
}
