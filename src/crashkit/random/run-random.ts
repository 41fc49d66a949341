import { mkdir } from "node:fs/promises";
import { stopwatch } from "../../util/clock.ts";
import { systemTimers } from "../../util/timers.ts";
import type { Role } from "../actors/actor.ts";
import { type Cast, type Member, MOST_FALLS, startCast } from "../actors/cast.ts";
import type { Counts } from "../counts.ts";
import { createDice } from "../dice.ts";
import type { Violation } from "../invariants/table.ts";
import { type KitPlace, LEASE_MS, openKit, type StoreAt } from "../open-kit.ts";
import { startWorld } from "../world/start-world.ts";
import { type Spread, spreadOf } from "./recovery-times.ts";
import { startWatch, type Watch } from "./watch.ts";

export interface RandomOptions {
  /** A name that the store has not seen. */
  readonly run: string;
  readonly store: StoreAt;
  readonly config?: string;
  readonly folder: string;
  readonly cache: string;
  readonly seed: number;
  readonly cycles: number;
  /** How many of the cycles pause a process beyond its lease instead of killing it. */
  readonly pauses: number;
  readonly roles?: readonly Role[];
  /** Out of a hundred requests to the built-in world, so many lose their answer. */
  readonly cutPercent?: number;
  /** Shape: push. */
  readonly onCycle?: (cycle: { readonly number: number; readonly violations: number }) => void;
}

export interface RandomRun {
  readonly cycles: number;
  readonly cyclesPerSecond: number;
  readonly kills: number;
  readonly pauses: number;
  readonly worldDeaths: number;
  readonly counts: Counts;
  readonly violations: readonly Violation[];
  /** Milliseconds: a new process, a call left behind after its lease, a whole tenant after its faults. */
  readonly startMs: Spread;
  readonly recoveryMs: Spread;
  readonly restMs: Spread;
}

/** SQLite lets one process write at a time, and more than three starve each other. */
const ROLES: Readonly<Record<StoreAt["kind"], readonly Role[]>> = {
  sqlite: ["agent", "reviewer", "worker"],
  postgres: ["agent", "agent", "reviewer", "worker"],
};
const CYCLES_PER_ROUND = 20;
/** A fault comes when so many entries were written since the last look, at most; or after so long, if nothing is written. */
const MOST_ENTRIES = 12;
const MOST_WAIT_MS = 30_000;
/** Production takes its time, so that most kills find a call under way. */
const SLOW_MS = 40;
const PAUSE_MS = 2 * LEASE_MS;

/** Kills or pauses a random process at a random moment, again and again; after each time everything must hold. */
export async function runRandom(options: RandomOptions): Promise<RandomRun> {
  const { run, store, config, folder, cache, seed, cycles, cutPercent = 3 } = options;
  await mkdir(folder, { recursive: true });
  const world = await startWorld(folder, cache, SLOW_MS);
  const place: KitPlace = {
    run,
    store,
    ...(config === undefined ? {} : { config }),
    worldPort: world.port,
    ledgerFile: world.ledgerFile,
  };
  const kit = await openKit(place);
  const roles = options.roles ?? ROLES[store.kind];
  const cast = startCast({ place, folder, cache, seed, roles, cutPercent });
  try {
    const watch = startWatch(kit, cast);
    await readyOnes(cast, roles.length);
    const began = stopwatch.now();
    const faults = await playCycles(watch, cast, options);
    const seconds = (stopwatch.now() - began) / 1_000;
    // Whoever asks for more would never let it rest.
    for (const agent of cast.members.filter(({ role }) => role === "agent")) await agent.leave();
    await watch.rest();
    return {
      cycles,
      cyclesPerSecond: Math.round((cycles / seconds) * 10) / 10,
      ...faults,
      worldDeaths: world.deaths(),
      counts: watch.counts(),
      violations: watch.violations,
      startMs: spreadOf(cast.startMs),
      recoveryMs: spreadOf(watch.recoveryMs),
      restMs: spreadOf(watch.restMs),
    };
  } finally {
    await Promise.all(cast.members.map((member) => member.leave()));
    await kit.close();
    await world.stop();
  }
}

async function playCycles(
  watch: Watch,
  cast: Cast,
  { run, seed, cycles, pauses, onCycle }: RandomOptions,
): Promise<{ readonly kills: number; readonly pauses: number }> {
  const dice = createDice(seed);
  const happened = { kills: 0, pauses: 0 };
  for (let number = 1; number <= cycles; number += 1) {
    if (number % CYCLES_PER_ROUND === 1)
      watch.nextRound(`${run}-${Math.ceil(number / CYCLES_PER_ROUND)}`);
    await watch.progress(1 + dice.below(MOST_ENTRIES), MOST_WAIT_MS);
    await systemTimers.sleep(dice.below(20));
    const member = dice.pick(await readyOnes(cast, 1));
    // Spread evenly: each time the next whole pause is due.
    const isPause = Math.floor((number * pauses) / cycles) > happened.pauses;
    if (isPause) {
      member.signal("SIGSTOP");
      await systemTimers.sleep(PAUSE_MS + dice.below(LEASE_MS));
      member.signal("SIGCONT");
      happened.pauses += 1;
    } else {
      await member.kill();
      happened.kills += 1;
    }
    await watch.look();
    onCycle?.({ number, violations: watch.violations.length });
  }
  return happened;
}

const READY_MS = 60_000;

/** Those that are past their start, as soon as there are so many: a process that was only just made has nothing to lose. */
async function readyOnes(cast: Cast, least: number): Promise<readonly Member[]> {
  const deadline = stopwatch.now() + READY_MS;
  for (;;) {
    const ready = cast.members.filter((member) => member.isReady());
    if (ready.length >= least) return ready;
    if (stopwatch.now() > deadline || cast.fallen.length >= MOST_FALLS) {
      throw new Error(`too few start: ${cast.fallen.join("\n")}`);
    }
    await systemTimers.sleep(5);
  }
}
