import { mkdir } from "node:fs/promises";
import { stopwatch } from "../../util/clock.ts";
import { systemRandom } from "../../util/random.ts";
import { systemTimers } from "../../util/timers.ts";
import type { Role, ServerPlace } from "../actors/actor.ts";
import { type Cast, type Member, MOST_FALLS, startCast } from "../actors/cast.ts";
import { makePass } from "../actors/door.ts";
import { createDice, freePort } from "../child.ts";
import type { Violation } from "../invariants/table.ts";
import { type KitPlace, LEASE_MS, openKit, type StoreAt } from "../open-kit.ts";
import { type Counts, type Spread, spreadOf } from "../report.ts";
import { startWorld } from "../world/world.ts";

import { startWatch, type Watch } from "./watch.ts";

/** Something that goes wrong with what the processes share: the network, the database server, its tables. Shape: callback. */
export interface Trouble {
  readonly name: string;
  /** Makes it happen, and ends it; all processes live on. */
  strike(): Promise<void>;
}

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
  /** In turns, one in every second cycle, instead of a kill. */
  readonly troubles?: readonly Trouble[];
  /** How long an attempt holds. */
  readonly leaseMs?: number;
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
  /** How often each of the troubles has struck. */
  readonly troubles: Readonly<Record<string, number>>;
  /** Those of the kills and pauses that hit the server. */
  readonly serverKills: number;
  readonly serverPauses: number;
  /** Answers that agents and reviewers got from the server. */
  readonly overHttp: number;
  /** Requests to it that got no answer, and were sent again with the same key. */
  readonly unanswered: number;
  readonly worldDeaths: number;
  readonly counts: Counts;
  readonly violations: readonly Violation[];
  /** Milliseconds: a new process, a call left behind after its lease, a whole tenant after its faults. */
  readonly startMs: Spread;
  readonly recoveryMs: Spread;
  readonly restMs: Spread;
}

/** SQLite lets one process write at a time, and many starve each other. */
const ROLES: Readonly<Record<StoreAt["kind"], readonly Role[]>> = {
  sqlite: ["agent", "reviewer", "worker", "server"],
  postgres: ["agent", "agent", "reviewer", "worker", "server"],
};
const CYCLES_PER_ROUND = 20;
/** A fault comes when so many entries were written since the last look, at most; or after so long, if nothing is written. */
const MOST_ENTRIES = 14;
const MOST_WAIT_MS = 30_000;
/** Production takes its time, so that most kills find a call under way. */
const SLOW_MS = 120;
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
    ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
    worldPort: world.port,
    ledgerFile: world.ledgerFile,
  };
  const kit = await openKit(place);
  const roles = ROLES[store.kind];
  const secret = Buffer.from(systemRandom.bytes(32)).toString("hex");
  const server = { port: await freePort(), tenants: tenantsOf(options), secret };
  const cast = startCast({ place, server, folder, cache, seed, roles, cutPercent });
  try {
    const watch = startWatch(kit, cast);
    for (const { role, name } of cast.members) await makePass(kit.store, { role, name, server });
    await readyOnes(cast, roles.length);
    const began = stopwatch.now();
    const faults = await playCycles(watch, cast, server, options);
    const seconds = (stopwatch.now() - began) / 1_000;
    // Whoever asks for more would never let it rest.
    for (const agent of cast.members.filter(({ role }) => role === "agent")) await agent.leave();
    await watch.rest();
    return {
      cycles,
      cyclesPerSecond: Math.round((cycles / seconds) * 10) / 10,
      ...faults,
      ...cast.overHttp(),
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

/** One for each round. */
function tenantsOf({ run, cycles }: RandomOptions): readonly string[] {
  const rounds = Math.max(1, Math.ceil(cycles / CYCLES_PER_ROUND));
  return Array.from({ length: rounds }, (_, round) => `${run}-${round + 1}`);
}

type Faults = Pick<RandomRun, "kills" | "pauses" | "serverKills" | "serverPauses" | "troubles">;

async function playCycles(
  watch: Watch,
  cast: Cast,
  { tenants }: ServerPlace,
  { seed, cycles, pauses, troubles = [], onCycle }: RandomOptions,
): Promise<Faults> {
  const dice = createDice(seed);
  const struck: Record<string, number> = {};
  const happened = { kills: 0, pauses: 0, serverKills: 0, serverPauses: 0, troubles: struck };
  const rounds = tenants.values();
  const spared = new Set(cast.members);
  let heard = 0;
  // A server that nobody has reached since it came back has nothing to lose either.
  const isInUse = ({ role }: Member) => role !== "server" || cast.served() > heard;
  for (let number = 1; number <= cycles; number += 1) {
    if (number % CYCLES_PER_ROUND === 1) watch.nextRound(rounds.next().value ?? "");
    await watch.progress(1 + dice.below(MOST_ENTRIES), MOST_WAIT_MS);
    await systemTimers.sleep(dice.below(20));
    const trouble = number % 2 === 0 ? troubles[(number / 2 - 1) % troubles.length] : undefined;
    if (trouble !== undefined) {
      await trouble.strike();
      struck[trouble.name] = (struck[trouble.name] ?? 0) + 1;
      await watch.look();
      onCycle?.({ number, violations: watch.violations.length });
      continue;
    }
    // Towards the end it is the turn of those whom chance has spared: so a small run says something about all of them.
    const isLate = spared.size > 0 && cycles - number <= spared.size;
    const isNext = (one: Member) => isInUse(one) && (spared.has(one) || !isLate);
    const member = dice.pick(await readyOnes(cast, 1, isNext));
    spared.delete(member);
    // Spread evenly: each time the next whole pause is due.
    const isPause = Math.floor((number * pauses) / cycles) > happened.pauses;
    if (isPause) {
      member.signal("SIGSTOP");
      await systemTimers.sleep(PAUSE_MS + dice.below(LEASE_MS));
      member.signal("SIGCONT");
      happened.pauses += 1;
      if (member.role === "server") happened.serverPauses += 1;
    } else {
      await member.kill();
      happened.kills += 1;
      if (member.role === "server") {
        happened.serverKills += 1;
        heard = cast.served();
      }
    }
    await watch.look();
    onCycle?.({ number, violations: watch.violations.length });
  }
  return happened;
}

const READY_MS = 60_000;

/** Those that are past their start, as soon as there are so many: a process that was only just made has nothing to lose. */
async function readyOnes(
  cast: Cast,
  least: number,
  isMeant: (member: Member) => boolean = () => true,
): Promise<readonly Member[]> {
  const deadline = stopwatch.now() + READY_MS;
  for (;;) {
    const ready = cast.members.filter((member) => member.isReady() && isMeant(member));
    if (ready.length >= least) return ready;
    if (stopwatch.now() > deadline || cast.fallen.length >= MOST_FALLS) {
      throw new Error(`too few start: ${cast.fallen.join("\n")}`);
    }
    await systemTimers.sleep(5);
  }
}
