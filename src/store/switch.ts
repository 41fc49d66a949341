import type { ChainHead } from "../model/audit-entry.ts";
import { checkReason } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import {
  type Acting,
  isPaused,
  PAUSES,
  type PausedPart,
  type PauseScope,
  pauseId,
} from "../model/pause.ts";
import { MAX_LIST } from "../model/record.ts";
import { CLOCK, EPOCH, KILL, PAUSED_PARTS, SWITCHES } from "../model/switch.ts";
import { toIso } from "../util/clock.ts";
import type { By } from "./decisions.ts";
import { deleteStep, insertStep, NOW, requireStep, type Step, updateStep } from "./engine.ts";
import type { Hold } from "./operations.ts";
import type { TenantEngine } from "./tenant-engine.ts";
import { JUMP_MS } from "./turn.ts";

/** The kill switch. Once `stop` has answered, no new effect of this tenant starts, in no process. */
export interface KillSwitch {
  stop(reason: string, by: By): Promise<void>;
  resume(reason: string, by: By): Promise<void>;
  isStopped(): Promise<boolean>;
  /** Who turned it last, when and why. */
  look(): Promise<SwitchLook>;
}

export interface SwitchLook {
  readonly stopped: boolean;
  readonly by: string;
  readonly reason: string;
  /** Empty when it was never turned. */
  readonly at: string;
}

export function engineSwitch(engine: TenantEngine): KillSwitch {
  async function turn(state: "stopped" | "running", reason: string, { actor }: By): Promise<void> {
    checkName("actor", actor);
    checkReason(reason);
    const set = SWITCHES.row({ state, reason, actor, updatedAt: NOW });
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
    async look() {
      const row = await engine.get(SWITCHES, KILL);
      if (row === undefined) return { stopped: false, by: "", reason: "", at: "" };
      const { state, reason, actor = "", updatedAt: at } = SWITCHES.read(row);
      return { stopped: state === "stopped", by: actor, reason, at };
    },
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

/**
 * Pauses of parts of a tenant: an agent, a session, tools by pattern. Once `pause` has answered, no new effect of that part
 * starts, in no process. What people approve meanwhile is kept. Undoing is still possible: it is not the agent that acts.
 */
export interface PauseStore {
  /** Pausing what is paused keeps the first reason. Throws invalid_input. */
  pause(scope: PauseScope, reason: string, by: By): Promise<PausedPart>;
  /** Throws not_found when it is not paused. */
  resume(scope: PauseScope, reason: string, by: By): Promise<void>;
  /** All of them, oldest first. */
  list(): Promise<readonly PausedPart[]>;
}

export function enginePauses(engine: TenantEngine): PauseStore {
  async function find(scope: PauseScope): Promise<PausedPart | undefined> {
    const row = await engine.get(PAUSES, pauseId(scope));
    return row === undefined ? undefined : PAUSES.read(row);
  }

  /** The change and the new number of the list, in one transaction: a start that read the old list is refused. */
  async function write(own: Step, type: string, scope: PauseScope, reason: string, by: By) {
    const { kind, subject } = scope;
    const data = { kind, subject, reason: reason.toWellFormed() };
    const session = kind === "session" ? subject : "";
    const event = { type, subject: pauseId(scope), session, actor: by.actor, data };
    const before = await versionOf(engine);
    const next = SWITCHES.row({ state: String(Number(before) + 1), reason, updatedAt: NOW });
    const count =
      before === NO_LIST
        ? insertStep(SWITCHES, PAUSED_PARTS, next)
        : updateStep(SWITCHES, PAUSED_PARTS, { state: before }, next);
    return engine.commit({ steps: [own, count], events: [event] });
  }

  return {
    async pause(scope, reason, by) {
      check(scope, reason, by);
      for (;;) {
        const known = await find(scope);
        if (known !== undefined) return known;
        const { actor } = by;
        const row = PAUSES.row({ ...scope, reason, actor, createdAt: NOW });
        const own = insertStep(PAUSES, pauseId(scope), row);
        const { committed } = await write(own, "pause.started", scope, reason, by);
        forget(engine);
        if (!committed) continue;
        const made = await find(scope);
        if (made !== undefined) return made;
      }
    },
    async resume(scope, reason, by) {
      check(scope, reason, by);
      for (;;) {
        if ((await find(scope)) === undefined) {
          const hint = "It is not paused.";
          throw new SallyportError("not_found", { id: pauseId(scope), hint });
        }
        const own = deleteStep(PAUSES, pauseId(scope), {});
        const { committed } = await write(own, "pause.ended", scope, reason, by);
        forget(engine);
        if (committed) return;
      }
    },
    list: () => listOf(engine),
  };
}

const MOST_PATTERN = 200;

function check({ kind, subject }: PauseScope, reason: string, { actor }: By): void {
  checkName(kind, subject);
  checkName("actor", actor);
  checkReason(reason);
  const isLong = kind === "tool" && subject.length > MOST_PATTERN;
  if (!isLong && !/^\*+$/.test(subject)) return;
  const hint = isLong ? "The pattern is too long." : "To pause everything, use the kill switch.";
  throw new SallyportError("invalid_input", { what: kind, hint });
}

const NO_LIST = "0";

/** The number of the list of pauses; every change gives it another one. */
async function versionOf(engine: TenantEngine): Promise<string> {
  return String((await engine.get(SWITCHES, PAUSED_PARTS))?.["state"] ?? NO_LIST);
}

async function listOf(engine: TenantEngine): Promise<readonly PausedPart[]> {
  const all: PausedPart[] = [];
  for (let after = 0; ; ) {
    const rows = await engine.find(PAUSES, { where: {}, afterOrd: after, limit: MAX_LIST });
    all.push(...rows.map(PAUSES.read));
    const last = rows.at(-1);
    if (rows.length < MAX_LIST || last === undefined) return all;
    after = Number(last["ord"]);
  }
}

/** No list has this number. */
const NEVER = { state: "never" } as const;

interface Known {
  readonly version: string;
  readonly pauses: readonly PausedPart[];
}

/** What this process read last. It is only a guess: the transaction that starts an effect compares the number. */
const known = new WeakMap<TenantEngine, Known>();

function forget(engine: TenantEngine): void {
  known.delete(engine);
}

/** An operation that is about to start, or to go on. */
interface Starting extends Pick<Acting, "tool" | "sessionId"> {
  readonly chain?: readonly string[];
  readonly undoOf: string;
}

/**
 * The condition that no pause covers an effect, for the transaction that starts it; one that never holds when a pause does. A
 * start that is refused may have used an old list: `isListOld` says so, and lets the next look read again. An undo is not the
 * agent's: a part that is paused may be rolled back.
 */
export async function pauseSteps(
  engine: TenantEngine,
  { chain: agents = [], tool, sessionId, undoOf }: Starting,
): Promise<readonly Step[]> {
  if (undoOf !== "") return [];
  const acting = { agents, tool, sessionId };
  let list = known.get(engine);
  if (list === undefined) {
    // The number first: a pause that comes in between makes it an old one.
    const version = await versionOf(engine);
    list = { version, pauses: await listOf(engine) };
    known.set(engine, list);
  }
  if (list.pauses.some((pause) => isPaused(pause, acting))) {
    return [requireStep(SWITCHES, PAUSED_PARTS, NEVER)];
  }
  const absent = list.version === NO_LIST ? "holds" : "refuses";
  return [requireStep(SWITCHES, PAUSED_PARTS, { state: list.version }, absent)];
}

/** Whether the list that this process knows has changed since; then it is forgotten. */
export async function isListOld(engine: TenantEngine): Promise<boolean> {
  const list = known.get(engine);
  if (list === undefined) return true;
  if (list.version === (await versionOf(engine))) return false;
  forget(engine);
  return true;
}
