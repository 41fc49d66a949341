import { mkdir } from "node:fs/promises";
import { stopwatch } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { systemRandom } from "../../util/random.ts";
import { systemTimers } from "../../util/timers.ts";
import { type ActorRole, isAway, makePass, type ServerPlace } from "../actors/actor.ts";
import { type Cast, type Histories, type Member, MOST_FALLS, startCast } from "../actors/cast.ts";
import { createDice, freePort } from "../child.ts";
import { followEvidence, type Invariant, type RunEvidence } from "../evidence.ts";
import { checkInvariants, type Violation } from "../invariants/table.ts";
import { type Kit, type KitPlace, LEASE_MS, openKit, type StoreAt } from "../open-kit.ts";
import {
  addCounts,
  type Counts,
  countsOf,
  NO_COUNTS,
  recoveryTimes,
  type Spread,
  spreadOf,
} from "../report.ts";
import { startWorld } from "../world/world.ts";

/** A fault of what the processes share: the network, the database server, its tables. Shape: callback. */
export interface Trouble {
  readonly name: string;
  /** Injects the fault and ends it; all processes survive. */
  strike(): Promise<void>;
}

export interface RandomOptions {
  /** A name that is new to the store. */
  readonly run: string;
  readonly store: StoreAt;
  readonly config?: string;
  readonly folder: string;
  readonly cache: string;
  readonly seed: number;
  readonly cycles: number;
  /** How many of the cycles pause a process beyond its lease instead of killing it. */
  readonly pauses: number;
  /** One of them in every second cycle, instead of a kill. */
  readonly troubles?: readonly Trouble[];
  /** The lease of an attempt. */
  readonly leaseMs?: number;
  /** The percentage of requests to the built-in world that lose their answer. */
  readonly cutPercent?: number;
  /** Shape: push. */
  readonly onCycle?: (cycle: { readonly number: number; readonly violations: number }) => void;
}

export interface RandomRun {
  readonly cycles: number;
  readonly cyclesPerSecond: number;
  readonly kills: number;
  readonly pauses: number;
  /** How often each fault was injected. */
  readonly troubles: Readonly<Record<string, number>>;
  /** Kills and pauses of the server. */
  readonly serverKills: number;
  readonly serverPauses: number;
  /** Answers that agents and reviewers got from the server. */
  readonly overHttp: number;
  /** Requests to it without an answer, which were repeated with the same key. */
  readonly unanswered: number;
  readonly worldDeaths: number;
  readonly counts: Counts;
  readonly violations: readonly Violation[];
  /** Milliseconds: start of a process, recovery of an abandoned call after its lease, of a tenant after its faults. */
  readonly startMs: Spread;
  readonly recoveryMs: Spread;
  readonly restMs: Spread;
}

/** SQLite allows one writer at a time, and many starve each other. */
const ROLES: Readonly<Record<StoreAt["kind"], readonly ActorRole[]>> = {
  sqlite: ["agent", "reviewer", "worker", "server"],
  postgres: ["agent", "agent", "reviewer", "worker", "server"],
};
const CYCLES_PER_ROUND = 20;
/** A fault comes after at most so many entries since the last check, or after this time if nothing is written. */
const MOST_ENTRIES = 14;
const MOST_WAIT_MS = 30_000;
/** Production is slow, so that most kills interrupt a call. */
const SLOW_MS = 120;
const PAUSE_MS = 2 * LEASE_MS;

/** Kills or pauses a random process at a random moment, repeatedly; the invariants must hold after each time. */
export async function runRandom(options: RandomOptions): Promise<RandomRun> {
  const { run, store, config, folder, cache, seed, cycles, cutPercent = 3 } = options;
  await mkdir(folder, { recursive: true });
  const world = await startWorld(folder, cache, SLOW_MS);
  const { port: worldPort, ledgerFile } = world;
  const own = definedFields({ config, leaseMs: options.leaseMs });
  const place: KitPlace = { run, store, ...own, worldPort, ledgerFile };
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
    // Agents would never let it rest.
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
  watch: RoundChecker,
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
  // A server that has not answered since its restart has nothing to lose.
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
    // Towards the end the members that were never chosen are, so that a small run covers all of them.
    const isLate = spared.size > 0 && cycles - number <= spared.size;
    const isNext = (one: Member) => isInUse(one) && (spared.has(one) || !isLate);
    const member = dice.pick(await readyOnes(cast, 1, isNext));
    spared.delete(member);
    // Pauses are spread evenly.
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

/** The members that have started, as soon as there are enough: a process that is still loading has nothing to lose. */
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

/** Checks everything after every cycle, and collects the results. */
export interface RoundChecker {
  readonly violations: readonly Violation[];
  nextRound(tenant: string): void;
  look(): Promise<void>;
  /** Waits until so many entries were written since the last check, or for at most this time. */
  progress(entries: number, mostMs: number): Promise<void>;
  /** Ends the last round and waits until every tenant is at rest. */
  rest(): Promise<void>;
  counts(): Counts;
  readonly recoveryMs: readonly number[];
  readonly restMs: readonly number[];
}

const POLL_MS = 50;
const PROGRESS_MS = 5;
const MOST_TRIES = 5;
/** The time after the last fault in which everything must come to rest, on any machine. */
const REST_MS = 60_000;
/** Each is reported once. */
const MOST_VIOLATIONS = 100;

export function startWatch(kit: Kit, cast: Cast): RoundChecker {
  const found = new Map<string, Violation>();
  const violations: Violation[] = [];
  const recoveryMs: number[] = [];
  const restMs: number[] = [];
  let counts = NO_COUNTS;
  let current: Round | undefined;
  let settling: readonly Round[] = [];
  let seen = 0;

  function note(tenant: string, all: readonly Violation[]): void {
    for (const { id, problem } of all) {
      const name = `${id} ${tenant}: ${problem}`;
      if (found.has(name) || violations.length >= MOST_VIOLATIONS) continue;
      found.set(name, { id, problem });
      violations.push({ id, problem: `${tenant}: ${problem}` });
    }
  }

  /** All processes are paused while it reads, so that it sees one moment. */
  async function held(work: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      for (const member of cast.members) member.signal("SIGSTOP");
      try {
        return await work();
      } catch (error) {
        // A paused process holds a lock of the store, which blocks all readers.
        if (!isAway(error) || tries >= MOST_TRIES) throw error;
      } finally {
        for (const member of cast.members) member.signal("SIGCONT");
      }
      await systemTimers.sleep(POLL_MS);
    }
  }

  async function settle(round: Round, mayBeUnderWay: boolean): Promise<boolean> {
    const { tenant } = round;
    const settled = await round.settle(cast.histories(tenant), mayBeUnderWay);
    if (settled === undefined) return false;
    note(tenant, settled.violations);
    counts = addCounts(counts, countsOf(settled.evidence));
    recoveryMs.push(...recoveryTimes(settled.evidence));
    restMs.push(settled.restMs);
    cast.drop(tenant);
    return true;
  }

  async function look(mayBeUnderWay = true): Promise<void> {
    await held(async () => {
      if (current !== undefined) {
        note(current.tenant, await current.look(cast.histories(current.tenant)));
        seen = await length();
      }
      for (const round of settling) {
        if (await settle(round, mayBeUnderWay)) settling = settling.filter((one) => one !== round);
      }
    });
    note(
      "",
      cast.fallen.map((problem) => ({ id: "I24", problem })),
    );
  }

  async function length(): Promise<number> {
    return current === undefined ? 0 : (await kit.store.tenant(current.tenant).audit.head()).seq;
  }

  function endRound(): void {
    if (current === undefined) return;
    current.end();
    settling = [...settling, current];
    current = undefined;
  }

  return {
    violations,
    recoveryMs,
    restMs,
    counts: () => counts,
    nextRound(tenant) {
      endRound();
      current = startRound(tenant, kit);
      seen = 0;
      cast.open(tenant);
    },
    look: () => look(),
    async progress(entries, mostMs) {
      const deadline = stopwatch.now() + mostMs;
      while ((await length()) < seen + entries && stopwatch.now() < deadline) {
        await systemTimers.sleep(PROGRESS_MS);
      }
    },
    async rest() {
      endRound();
      const deadline = stopwatch.now() + REST_MS;
      // All processes are paused during a check: on a busy machine they need more time in between.
      for (let pauseMs = POLL_MS; settling.length > 0; ) {
        await systemTimers.sleep(pauseMs);
        const began = stopwatch.now();
        await look(began < deadline);
        pauseMs = Math.max(POLL_MS, 2 * (stopwatch.now() - began));
      }
    },
  };
}

/**
 * The cycles of a round share a tenant: its log stays short enough to be checked after every cycle. The next round has a new
 * tenant, and the old one is watched until it is at rest.
 */
interface Round {
  readonly tenant: string;
  /** All violations by now. */
  look(histories: Histories): Promise<readonly Violation[]>;
  /** It gets no more faults. */
  end(): void;
  /**
   * After its end: undefined while something is still running and may be, then the final check. While other tenants get faults
   * it may take any time; after the last fault it must come to rest.
   */
  settle(histories: Histories, mayBeUnderWay: boolean): Promise<Settled | undefined>;
}

interface Settled {
  readonly evidence: RunEvidence;
  readonly violations: readonly Violation[];
  /** From the end of the round until it rested. */
  readonly restMs: number;
}

function startRound(tenant: string, kit: Kit): Round {
  const reader = followEvidence(kit.store, tenant);
  let endedAt = 0;
  const { mayRunAlone } = kit;
  const read = async (histories: Histories, isAtRest: boolean) =>
    reader.read({ ...histories, ledger: await kit.effects(), isAtRest, mayRunAlone });
  return {
    tenant,
    look: async (histories) => checkInvariants(await read(histories, false)),
    end() {
      endedAt = stopwatch.now();
    },
    async settle(histories, mayBeUnderWay) {
      const restMs = stopwatch.now() - endedAt;
      const hanging = checkInvariants(await read(histories, true), REST);
      if (hanging.length > 0 && mayBeUnderWay) return undefined;
      // Everything is read again: what was read earlier must not have changed.
      const fresh = followEvidence(kit.store, tenant);
      const outside = { ...histories, ledger: await kit.effects(), isAtRest: true, mayRunAlone };
      const evidence = await fresh.read(outside);
      return { evidence, violations: checkInvariants(evidence), restMs };
    },
  };
}

const REST: readonly Invariant["id"][] = ["I14"];
