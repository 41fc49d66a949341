import type { OperationStore } from "../store/operations.ts";
import type { AuditObserver } from "./observer.ts";
import type { TellProblem } from "./observer-problem.ts";

/**
 * Tells the observer of everything that is settled or refused here. It sits on the store because every way of carrying
 * out (direct, approved, resumed, undone) ends there, so none can forget to tell. Answers and errors stay the store's own.
 */
export function observedOperations(
  operations: OperationStore,
  observer: Pick<AuditObserver, "refused" | "settled">,
  tell: TellProblem,
): OperationStore {
  /** What was taken back is another operation than the one that was settled, so it has to be read. */
  async function tellUndone(id: string): Promise<void> {
    try {
      observer.settled(await operations.get(id));
    } catch (cause) {
      tell({ code: "undone_unread", subject: id, cause });
    }
  }

  return {
    async start(intent) {
      const answer = await operations.start(intent);
      // Used up means that another start has it, whose outcome is told by itself.
      if (!answer.started && answer.reason !== "used_up") {
        observer.refused({ ...intent, outcome: "denied" });
      }
      return answer;
    },
    async settle(id, settlement) {
      const answer = await operations.settle(id, settlement);
      if (!answer.settled) return answer;
      observer.settled(answer.operation);
      if (settlement.tookBack !== undefined) await tellUndone(settlement.tookBack);
      return answer;
    },
    takeOver: (id, leaseMs, actor, holds) => operations.takeOver(id, leaseMs, actor, holds),
    reopen: (id, again) => operations.reopen(id, again),
    tryAgain: (id, fence, again) => operations.tryAgain(id, fence, again),
    confirm: (id, fence, again) => operations.confirm(id, fence, again),
    renew: (id, fence, leaseMs) => operations.renew(id, fence, leaseMs),
    get: (id) => operations.get(id),
    listBySession: (sessionId, narrow) => operations.listBySession(sessionId, narrow),
    listNewest: (sessionId, page) => operations.listNewest(sessionId, page),
    listAbandoned: (limit, held) => operations.listAbandoned(limit, held),
  };
}
