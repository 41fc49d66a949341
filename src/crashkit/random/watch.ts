import { stopwatch } from "../../util/clock.ts";
import { systemTimers } from "../../util/timers.ts";
import { isAway } from "../actors/actor.ts";
import type { Cast, Histories } from "../actors/cast.ts";
import { type Evidence, followEvidence, type Invariant } from "../evidence.ts";
import { checkInvariants, type Violation } from "../invariants/table.ts";
import type { Kit } from "../open-kit.ts";
import { addCounts, type Counts, countsOf, NO_COUNTS, recoveryTimes } from "../report.ts";

/** Looks at everything after every cycle, and remembers what it saw. */
export interface Watch {
  readonly violations: readonly Violation[];
  nextRound(tenant: string): void;
  look(): Promise<void>;
  /** Waits until so many entries were written since the last look, or so long. Time says little on a busy machine. */
  progress(entries: number, mostMs: number): Promise<void>;
  /** Ends the last round and waits until every tenant rests. */
  rest(): Promise<void>;
  counts(): Counts;
  readonly recoveryMs: readonly number[];
  readonly restMs: readonly number[];
}

const POLL_MS = 50;
const PROGRESS_MS = 5;
const MOST_TRIES = 5;
/** So long after the last fault everything must rest, on a machine however busy. */
const REST_MS = 60_000;
/** Told once, not after each of the cycles that still see it. */
const MOST_VIOLATIONS = 100;

export function startWatch(kit: Kit, cast: Cast): Watch {
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

  /** Nobody writes while it looks: what it sees is one moment. */
  async function held(work: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      for (const member of cast.members) member.signal("SIGSTOP");
      try {
        return await work();
      } catch (error) {
        // Somebody was stopped with a lock of the store in hand, and nobody can read until they go on.
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
      // Everybody stands still during a look: on a busy machine they need longer than that to get on in between.
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
 * The cycles of a round share a tenant: its trail stays short enough to look at all of it after every cycle. When the round
 * is over the next one begins with a new tenant, and the old one is watched until it rests.
 */
interface Round {
  readonly tenant: string;
  /** Everything that is wrong by now. */
  look(histories: Histories): Promise<readonly Violation[]>;
  /** No more faults are aimed at it. */
  end(): void;
  /**
   * After its end: undefined while something is under way and may be, then the last look at all of it. While others are still
   * killed it may take any time; once all faults have stopped it must come to rest.
   */
  settle(histories: Histories, mayBeUnderWay: boolean): Promise<Settled | undefined>;
}

export interface Settled {
  readonly evidence: Evidence;
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
      // Not what was kept from before, but all of it anew: nothing that was seen once may have changed since.
      const fresh = followEvidence(kit.store, tenant);
      const outside = { ...histories, ledger: await kit.effects(), isAtRest: true, mayRunAlone };
      const evidence = await fresh.read(outside);
      return { evidence, violations: checkInvariants(evidence), restMs };
    },
  };
}

const REST: readonly Invariant["id"][] = ["I14"];
