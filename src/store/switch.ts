import { checkName } from "../model/names.ts";
import { KILL, SWITCHES } from "../model/switch.ts";
import { checkReason } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { NOW, type Step } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** The kill switch. Once `stop` has answered, no new effect of this tenant starts, in no process. */
export interface KillSwitch {
  stop(reason: string, by: By): Promise<void>;
  resume(reason: string, by: By): Promise<void>;
  isStopped(): Promise<boolean>;
}

export function engineSwitch(engine: TenantEngine): KillSwitch {
  async function turn(state: "stopped" | "running", reason: string, { actor }: By): Promise<void> {
    checkName("actor", actor);
    checkReason(reason);
    const set = SWITCHES.row({ state, reason, updatedAt: NOW });
    const type = state === "stopped" ? "switch.stopped" : "switch.resumed";
    const data = { reason: reason.toWellFormed() };
    const write = (step: Step) =>
      engine.commit({
        steps: [step],
        events: [{ type, subject: KILL, session: "", actor, data }],
      });
    const changed = await write({ op: "update", table: SWITCHES, id: KILL, where: {}, set });
    if (changed.committed) return;
    const made = await write({ op: "insert", table: SWITCHES, id: KILL, row: set });
    // Somebody made it in between: then it is there to be changed.
    if (!made.committed) await turn(state, reason, { actor });
  }
  return {
    stop: (reason, by) => turn("stopped", reason, by),
    resume: (reason, by) => turn("running", reason, by),
    isStopped: async () => (await engine.get(SWITCHES, KILL))?.["state"] === "stopped",
  };
}

/** Put in front of everything that starts an effect: it looks in the same transaction, never at a copy. */
export const RUNNING: Step = {
  op: "require",
  table: SWITCHES,
  id: KILL,
  where: { state: "running" },
  absent: "holds",
};
