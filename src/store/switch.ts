import type { ChainHead } from "../model/audit-entry.ts";
import { checkReason } from "../model/decision.ts";
import { checkName } from "../model/names.ts";
import { CLOCK, EPOCH, KILL, SWITCHES } from "../model/switch.ts";
import { toIso } from "../util/clock.ts";
import type { By } from "./decisions.ts";
import { insertStep, NOW, requireStep, type Step, updateStep } from "./engine.ts";
import type { Hold } from "./operations.ts";
import type { TenantEngine } from "./tenant-engine.ts";
import { JUMP_MS } from "./turn.ts";

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
    const changed = await write(updateStep(SWITCHES, KILL, {}, set));
    if (changed.committed) return;
    const made = await write(insertStep(SWITCHES, KILL, set));
    // Another process inserted the row meanwhile: now it can be updated.
    if (!made.committed) await turn(state, reason, { actor });
  }
  return {
    stop: (reason, by) => turn("stopped", reason, by),
    resume: (reason, by) => turn("running", reason, by),
    isStopped: async () => (await engine.get(SWITCHES, KILL))?.["state"] === "stopped",
  };
}

/** A condition of every change that starts an effect, checked in the same transaction. */
export const RUNNING: Step = requireStep(SWITCHES, KILL, { state: "running" }, "holds");

/**
 * The epoch of the store. Approvals of an earlier epoch are void: after a restore the store does not show whether they were
 * executed after the backup.
 */
export interface EpochStore {
  /** Empty in the first epoch. */
  current(): Promise<string>;
  /** Begins a new epoch. After this transaction no process starts anything that was approved before. */
  begin(epoch: string, reason: string, by: By): Promise<void>;
  /** Checked in the transaction that starts an effect. */
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
      const set = SWITCHES.row({ state: epoch, reason, updatedAt: NOW });
      for (;;) {
        const before = await current();
        const data = { epoch, before, reason: reason.toWellFormed() };
        const events = [
          { type: "store.restored", subject: EPOCH, session: "", actor: by.actor, data },
        ];
        const write = (step: Step) => engine.commit({ steps: [step], events });
        const changed = await write(updateStep(SWITCHES, EPOCH, { state: before }, set));
        if (changed.committed) return;
        // Another process began an epoch meanwhile: this one follows it.
        if (changed.current !== undefined) continue;
        if ((await write(insertStep(SWITCHES, EPOCH, set))).committed) return;
      }
    },
    holdOf(epoch) {
      const absent = epoch === "" ? "holds" : "refuses";
      return { refusal: "restored", step: requireStep(SWITCHES, EPOCH, { state: epoch }, absent) };
    },
  };
}

/** How the clock and the end of the trail compare. */
export interface ClockLook {
  readonly clockAt: string;
  readonly trailAt: string;
  /** How far the clock is behind the trail, in milliseconds; 0 or less when it is not. */
  readonly behindMs: number;
  /** `refused`: only urgent changes are written. `accepted`: an operator has confirmed the clock. */
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
        const set = SWITCHES.row({ state: trailAt, reason, updatedAt: NOW });
        const data = { trailAt, clockAt, reason: reason.toWellFormed() };
        const events = [
          { type: "store.clock_accepted", subject: CLOCK, session: "", actor: by.actor, data },
        ];
        // The update is refused if the row is absent, the insert if it is there; the next look shows the result.
        const changed = await engine.commit({
          steps: [updateStep(SWITCHES, CLOCK, {}, set)],
          events,
        });
        if (changed.committed) continue;
        await engine.commit({ steps: [insertStep(SWITCHES, CLOCK, set)], events });
      }
    },
  };
}
