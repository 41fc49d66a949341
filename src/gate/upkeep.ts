// Upkeep: periodic rounds of recovery, deadlines and approved calls that waited for a tool of this process.

import type { DelegationId } from "../model/delegation.ts";
import type { Interaction, InteractionId } from "../model/interaction.ts";
import { MAX_LIST } from "../model/record.ts";
import type { InteractionStore } from "../store/interactions.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import type { Gate } from "./create-gate.ts";
import type { Swept } from "./inbox.ts";
import type { Recovered } from "./recover.ts";

/** What one round found. */
export interface UpkeepRound {
  readonly recovered: Recovered;
  readonly swept: Swept;
  /** Delegations whose time was over. */
  readonly ended: readonly DelegationId[];
  /** Runs of agents that were continued. */
  readonly resumed: readonly string[];
}

export interface UpkeepOptions {
  readonly gate: Pick<
    Gate,
    "recover" | "interactions" | "delegations" | "executeAwaiting" | "onCommit"
  >;
  readonly everyMs: number;
  /** Continues the runs whose answers are in and returns their ids, as `resume` of an adapter does. Shape: callback. */
  readonly resume?: () => Promise<readonly string[]>;
  /** Told of every round that found something to do; the parts that had no round are empty. Shape: push. */
  readonly onRound?: (round: UpkeepRound) => void;
  /** A round that failed; the next one comes all the same. Shape: push. */
  readonly onError: (error: unknown) => void;
  readonly timers?: Timers;
}

/**
 * Periodically: continues what processes left behind, closes interactions that were not answered in time, escalates those that
 * wait too long, ends delegations whose time is over, and continues runs. Each of these has rounds of its own, so that a target that hangs
 * delays no deadline. Any number of processes may run it concurrently, and none is needed for safety.
 *
 *     const upkeep = startUpkeep({ gate, everyMs: 1_000, onError: console.error });
 */
export function startUpkeep(options: UpkeepOptions): { stop(): Promise<void> } {
  const { gate, onRound, resume } = options;
  function tell(found: Partial<UpkeepRound>): void {
    const lists = Object.values(found).flatMap((part) =>
      Array.isArray(part) ? [part] : Object.values(part as object).filter(Array.isArray),
    );
    if (lists.some((list: readonly unknown[]) => list.length > 0))
      onRound?.({ ...NOTHING, ...found });
  }
  const { everyMs } = options;
  const awaiting = async () =>
    tell({ recovered: { ...NOTHING.recovered, ...(await gate.executeAwaiting()) } });
  const loops = [
    startLoop({ ...options, everyMs: Math.min(everyMs, LOOK_EVERY_MS) }, awaiting, gate.onCommit),
    startLoop(options, async () => tell({ recovered: await gate.recover() })),
    startLoop(options, async () => tell({ swept: await gate.interactions.sweep() })),
    startLoop(options, async () => tell({ ended: await gate.delegations.sweep() })),
    ...(resume === undefined
      ? []
      : [startLoop(options, async () => tell({ resumed: await resume() }), gate.onCommit)]),
  ];
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

/** A hint may be late or missing, so it polls as well. */
const LOOK_EVERY_MS = 250;
/** Commits come in bursts: one look answers for all of them. */
const AFTER_HINT_MS = 5;

const NOTHING: UpkeepRound = {
  recovered: { operations: [], decisions: [], proposals: [], left: [] },
  swept: { expired: [], askedAgain: [], escalated: [] },
  ended: [],
  resumed: [],
};

/** The next round begins so long after the last one has ended, or soon after a hint. */
function startLoop(
  { everyMs, onError, timers = systemTimers }: UpkeepOptions,
  round: () => Promise<void>,
  onHint: (listener: () => void) => () => void = () => () => {},
): { stop(): Promise<void> } {
  let state: "waiting" | "woken" | "running" | "stopped" = "waiting";
  let isHinted = false;
  let running = Promise.resolve();
  let cancel = timers.after(everyMs, next);
  const forget = onHint(() => {
    isHinted = true;
    if (state === "waiting") again();
  });

  function next(): void {
    state = "running";
    isHinted = false;
    running = round().catch(onError).then(again);
  }

  function again(): void {
    if (state === "stopped") return;
    cancel();
    state = isHinted ? "woken" : "waiting";
    cancel = timers.after(isHinted ? Math.min(everyMs, AFTER_HINT_MS) : everyMs, next);
  }

  return {
    async stop() {
      state = "stopped";
      forget();
      cancel();
      await running;
    },
  };
}

export interface SweptQuestions {
  readonly expired: readonly InteractionId[];
  /** Lost calls whose outcome is still not known: they do not expire, people are asked again. */
  readonly askedAgain: readonly InteractionId[];
  readonly escalated: readonly InteractionId[];
}

/**
 * Closes what was not answered in time and escalates what waits too long, each once, however many processes do so at the
 * same time. It need not be called in time: an answer after the deadline is refused all the same.
 */
export async function sweep(store: InteractionStore): Promise<SweptQuestions> {
  const expired: InteractionId[] = [];
  const askedAgain: InteractionId[] = [];
  const escalated: InteractionId[] = [];
  await eachOnce(
    (after) => store.overdue(MAX_LIST, after),
    async ({ id, type }) => {
      if (type !== "connection_lost") {
        if (await store.expire(id)) expired.push(id);
      } else if (await store.askAgain(id)) askedAgain.push(id);
    },
  );
  await eachOnce(
    (after) => store.toEscalate(MAX_LIST, after),
    async ({ id }) => {
      if (await store.escalate(id)) escalated.push(id);
    },
  );
  return { expired, askedAgain, escalated };
}

/** Page after page, so that what cannot be closed hides nothing behind it. */
async function eachOnce(
  find: (after: number) => Promise<readonly Interaction[]>,
  work: (found: Interaction) => Promise<void>,
): Promise<void> {
  for (let after = 0; ; ) {
    const page = await find(after);
    await Promise.all(page.map(work));
    const last = page.at(-1);
    if (page.length < MAX_LIST || last === undefined) return;
    after = last.ord;
  }
}
