import type { DecisionId, SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { DECOYS, REVIEWERS, type Reviewer } from "../model/identity.ts";
import { checkName, isName } from "../model/names.ts";
import { checkReason } from "./decision-rows.ts";
import { type By, MAX_LIST } from "./decisions.ts";
import { type Along, type Conditions, NOW, type Step, type Values } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Who decides how, and whose yes counts. Every change is one transaction with its audit entry. */
export interface ReviewerStore {
  /** Undefined for somebody who has not decided anything yet. */
  get(id: string): Promise<Reviewer | undefined>;
  /** In the order in which they decided first. */
  list(): Promise<readonly Reviewer[]>;
  approved(id: string): Promise<Reviewer>;
  rejected(id: string): Promise<Reviewer>;
  /** Written with what makes the decision look like any other; no entry of the trail tells of it. */
  plant(id: DecisionId | SessionId): Along;
  /** By the decision, or by the session that was made for it. */
  isDecoy(id: DecisionId | SessionId): Promise<boolean>;
  /** Somebody decided about a decoy. With the last miss that is forgiven their right is suspended. */
  met(id: string, what: "caught" | "missed", misses: number): Promise<Reviewer>;
  /** Throws not_found. */
  restore(id: string, reason: string, by: By): Promise<Reviewer>;
}

const HOUR_MS = 3_600_000;
const ONE_MORE = { plus: 1 };

export function engineReviewers(engine: TenantEngine): ReviewerStore {
  const get = async (id: string) => {
    const row = isName(id) ? await engine.get(REVIEWERS, id) : undefined;
    return row === undefined ? undefined : REVIEWERS.read(row);
  };

  /** Adds to a count of somebody who may not be known yet: the first of these changes that fits, or their first row. */
  async function add(
    id: string,
    type: string,
    changes: readonly { readonly where?: Conditions; readonly set: Values }[],
    first: Values,
  ): Promise<Reviewer> {
    checkName("reviewer", id);
    const none = { approved: 0, rejected: 0, caught: 0, missed: 0, hour_count: 0, hour_at: 0 };
    const row = { status: "trusted", ...none, ...first, updated_at: NOW };
    const updates = changes.map(({ where = {}, set }): Step => {
      return { op: "update", table: REVIEWERS, id, where, set: { ...set, updated_at: NOW } };
    });
    for (const step of [...updates, { op: "insert", table: REVIEWERS, id, row } as const]) {
      const events = [{ type, subject: id, session: "", actor: id, data: {} }];
      const result = await engine.commit({ steps: [step], events });
      if (result.committed) return REVIEWERS.read(result.rows[0] ?? {});
    }
    // Somebody else wrote the first row in between: now it is there to be changed.
    return add(id, type, changes, first);
  }

  return {
    get,
    async list() {
      const all: Reviewer[] = [];
      for (let afterOrd = 0; ; ) {
        const page = await engine.find(REVIEWERS, { afterOrd, limit: MAX_LIST });
        all.push(...page.map(REVIEWERS.read));
        if (page.length < MAX_LIST) return all;
        afterOrd = Number(page.at(-1)?.["ord"]);
      }
    },
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
    plant: (id) => ({
      step: { op: "insert", table: DECOYS, id, row: DECOYS.row({ createdAt: NOW }) },
    }),
    isDecoy: async (id) => isName(id) && (await engine.get(DECOYS, id)) !== undefined,
    async met(id, what, misses) {
      const counted = [{ set: { [what]: ONE_MORE } }];
      const now = await add(id, `reviewer.${what}_decoy`, counted, { [what]: 1 });
      if (now.status === "suspended" || now.missed < misses) return now;
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: REVIEWERS,
            id,
            where: { status: "trusted" },
            set: { status: "suspended", updated_at: NOW },
          },
        ],
        events: [
          {
            type: "reviewer.suspended",
            subject: id,
            session: "",
            actor: "attention",
            data: { missed: now.missed },
          },
        ],
      });
      return result.committed ? REVIEWERS.read(result.rows[0] ?? {}) : now;
    },
    async restore(id, reason, { actor }) {
      checkName("actor", actor);
      checkReason(reason);
      const data = { reason: reason.toWellFormed() };
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: REVIEWERS,
            id,
            where: {},
            set: { status: "trusted", missed: 0, updated_at: NOW },
          },
        ],
        events: [{ type: "reviewer.restored", subject: id, session: "", actor, data }],
      });
      if (result.committed) return REVIEWERS.read(result.rows[0] ?? {});
      throw new SallyportError("not_found", { id, hint: "This person has not decided anything." });
    },
  };
}
