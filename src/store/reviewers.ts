import { checkReason, type DecisionId, type SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { DECOYS, REVIEWERS, type Reviewer } from "../model/identity.ts";
import { checkName, isName } from "../model/names.ts";
import type { By } from "./decisions.ts";
import { type Along, type Conditions, insertStep, NOW, updateStep, type Values } from "./engine.ts";
import { everyOne, peekRecord, type TenantEngine, writeRecord } from "./tenant-engine.ts";

/** How reviewers decide, and whose approval counts. Every change is one transaction with its audit entry. */
export interface ReviewerStore {
  /** Undefined for a person who has not decided anything yet. */
  get(id: string): Promise<Reviewer | undefined>;
  /** In the order in which they decided first. */
  list(): Promise<readonly Reviewer[]>;
  approved(id: string): Promise<Reviewer>;
  rejected(id: string): Promise<Reviewer>;
  /** Stored with what makes the decoy look like any other decision; no audit entry mentions it. */
  plant(id: DecisionId | SessionId): Along;
  /** By the decision, or by the session that was made for it. */
  isDecoy(id: DecisionId | SessionId): Promise<boolean>;
  /** A person decided about a decoy. At `misses` missed decoys their right to decide is suspended. */
  met(id: string, what: "caught" | "missed", misses: number): Promise<Reviewer>;
  /** Throws not_found. */
  restore(id: string, reason: string, by: By): Promise<Reviewer>;
}

const HOUR_MS = 3_600_000;
const ONE_MORE = { plus: 1 };

export function engineReviewers(engine: TenantEngine): ReviewerStore {
  /** Counts a decision: the first of these changes that fits, or the person's first row. */
  async function add(
    id: string,
    type: string,
    changes: readonly { readonly where?: Conditions; readonly set: Values }[],
    first: Values,
  ): Promise<Reviewer> {
    checkName("reviewer", id);
    const none = { approved: 0, rejected: 0, caught: 0, missed: 0, hour_count: 0, hour_at: 0 };
    const row = { status: "trusted", ...none, ...first, updated_at: NOW };
    const updates = changes.map(({ where = {}, set }) =>
      updateStep(REVIEWERS, id, where, { ...set, updated_at: NOW }),
    );
    const event = { type, subject: id, session: "", actor: id, data: {} };
    for (const step of [...updates, insertStep(REVIEWERS, id, row)]) {
      const counted = await writeRecord(engine, REVIEWERS, step, event);
      if (counted !== undefined) return counted;
    }
    // Another process inserted the first row meanwhile: now it can be updated.
    return add(id, type, changes, first);
  }

  return {
    get: (id) => peekRecord(engine, REVIEWERS, id),
    list: () => everyOne(engine, REVIEWERS, {}, REVIEWERS.read),
    rejected: (id) =>
      add(id, "reviewer.rejected", [{ set: { rejected: ONE_MORE } }], { rejected: 1 }),
    async approved(id) {
      const anew = { hour_count: 1, hour_at: NOW };
      const isThisHour = { hour_at: { atLeast: { nowPlusMs: -HOUR_MS } } };
      const changes = [
        { where: isThisHour, set: { approved: ONE_MORE, hour_count: ONE_MORE } },
        { set: { approved: ONE_MORE, ...anew } },
      ];
      return add(id, "reviewer.approved", changes, { approved: 1, ...anew });
    },
    plant: (id) => ({ step: insertStep(DECOYS, id, DECOYS.row({ createdAt: NOW })) }),
    isDecoy: async (id) => isName(id) && (await engine.get(DECOYS, id)) !== undefined,
    async met(id, what, misses) {
      const counted = [{ set: { [what]: ONE_MORE } }];
      const now = await add(id, `reviewer.${what}_decoy`, counted, { [what]: 1 });
      if (now.status === "suspended" || now.missed < misses) return now;
      const { missed } = now;
      const about = { subject: id, session: "", actor: "attention", data: { missed } };
      const set = { status: "suspended", updated_at: NOW };
      const step = updateStep(REVIEWERS, id, { status: "trusted" }, set);
      const event = { type: "reviewer.suspended", ...about };
      return (await writeRecord(engine, REVIEWERS, step, event)) ?? now;
    },
    async restore(id, reason, { actor }) {
      checkName("actor", actor);
      checkReason(reason);
      const data = { reason: reason.toWellFormed() };
      const event = { type: "reviewer.restored", subject: id, session: "", actor, data };
      const set = { status: "trusted", missed: 0, updated_at: NOW };
      const restored = await writeRecord(
        engine,
        REVIEWERS,
        updateStep(REVIEWERS, id, {}, set),
        event,
      );
      if (restored !== undefined) return restored;
      throw new SallyportError("not_found", { id, hint: "This person has not decided anything." });
    },
  };
}
