import { checkName } from "../model/names.ts";
import { checkReason } from "./decision-checks.ts";
import { encoded } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { NOW, type Step } from "./engine.ts";
import type { Hold } from "./operations.ts";
import { EPOCH, SWITCHES } from "./switch-rows.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/**
 * Which life of the store this is. What was approved in another one is void: after a restore nobody can tell from the store
 * whether it was carried out since the backup.
 */
export interface EpochStore {
  /** Empty in the first life. */
  current(): Promise<string>;
  /** Begins another one. From this transaction on nothing that was approved before starts, in no process. */
  begin(epoch: string, reason: string, by: By): Promise<void>;
  /** Looks in the transaction that begins an effect. */
  holdOf(epoch: string): Hold;
}

export function engineEpoch(engine: TenantEngine): EpochStore {
  const current = async () => String((await engine.get(SWITCHES, EPOCH))?.["state"] ?? "");
  return {
    current,
    async begin(epoch, reason, by) {
      checkName("epoch", epoch);
      checkName("actor", by.actor);
      checkReason(reason);
      const set = { state: epoch, reason: encoded("reason", reason), updated_at: NOW };
      for (;;) {
        const before = await current();
        const data = { epoch, before, reason: reason.toWellFormed() };
        const events = [
          { type: "store.restored", subject: EPOCH, session: "", actor: by.actor, data },
        ];
        const write = (step: Step) => engine.commit({ steps: [step], events });
        const where = { state: before };
        const changed = await write({ op: "update", table: SWITCHES, id: EPOCH, where, set });
        if (changed.committed) return;
        // Somebody else began one in between: then this one follows it.
        if (changed.current !== undefined) continue;
        if ((await write({ op: "insert", table: SWITCHES, id: EPOCH, row: set })).committed) return;
      }
    },
    holdOf: (epoch) => ({
      refusal: "restored",
      step: {
        op: "require",
        table: SWITCHES,
        id: EPOCH,
        where: { state: epoch },
        absent: epoch === "" ? "holds" : "refuses",
      },
    }),
  };
}
