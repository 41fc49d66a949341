import type { ChainHead } from "../model/audit-entry.ts";
import { checkName } from "../model/names.ts";
import { toIso } from "../util/clock.ts";
import { JUMP_MS } from "./clock-watch.ts";
import { checkReason } from "./decision-checks.ts";
import { encoded } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { NOW } from "./engine.ts";
import { CLOCK, SWITCHES } from "./switch-rows.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** How the clock and the end of the trail compare. */
export interface ClockLook {
  readonly clockAt: string;
  readonly trailAt: string;
  /** How far the clock is behind the trail, in milliseconds; 0 or less when it is not. */
  readonly behindMs: number;
  /** `refused`: nothing that goes by time is written. `accepted`: an operator has said that the clock is right. */
  readonly state: "right" | "refused" | "accepted";
}

/** What an operator can do about a trail that is ahead of the clock. */
export interface ClockMark {
  look(): Promise<ClockLook>;
  /** Says that the clock is right and the trail ahead of it: from now on leases and deadlines go by the clock. */
  accept(reason: string, by: By): Promise<ClockLook>;
}

export interface ClockMarkParts {
  readonly head: () => Promise<ChainHead>;
  readonly now: () => Promise<number>;
}

export function engineClockMark(engine: TenantEngine, { head, now }: ClockMarkParts): ClockMark {
  async function look(): Promise<ClockLook> {
    const [{ at: trailAt }, clock, mark] = await Promise.all([
      head(),
      now(),
      engine.get(SWITCHES, CLOCK),
    ]);
    const behindMs = Date.parse(trailAt) - clock;
    const isAccepted = String(mark?.["state"] ?? "") >= trailAt;
    const far = isAccepted ? "accepted" : "refused";
    const state = behindMs <= JUMP_MS ? "right" : far;
    return { clockAt: toIso(clock), trailAt, behindMs, state };
  }

  return {
    look,
    async accept(reason, by) {
      checkName("actor", by.actor);
      checkReason(reason);
      for (;;) {
        const seen = await look();
        if (seen.state !== "refused") return seen;
        const { trailAt, clockAt } = seen;
        const set = { state: trailAt, reason: encoded("reason", reason), updated_at: NOW };
        const data = { trailAt, clockAt, reason: reason.toWellFormed() };
        const events = [
          { type: "store.clock_accepted", subject: CLOCK, session: "", actor: by.actor, data },
        ];
        const row = { table: SWITCHES, id: CLOCK } as const;
        // Either of them is refused when the row is not, or is, there; the next look shows what holds.
        const changed = await engine.commit({
          steps: [{ ...row, op: "update", where: {}, set }],
          events,
        });
        if (changed.committed) continue;
        await engine.commit({ steps: [{ ...row, op: "insert", row: set }], events });
      }
    },
  };
}
