// Agents, reviewers, a worker and a server as processes over one store, some of the agents and reviewers through that server;
// a random one is killed or paused at a random moment, again and again. After every cycle production's ledger, the trail and
// the state must agree.

import { expect, test } from "vitest";
import { type RandomRun, runRandom } from "../../src/crashkit/random/run-random.ts";
import { CACHE, SEED, STORES, type StoreKind, withStore } from "../support/crash-run.ts";
import { record } from "../support/record.ts";
import { SCALE, scaled } from "../support/scale.ts";

const CYCLES = scaled({ test: 8, proof: 60, full: 1_000 });
const PAUSES = scaled({ test: 2, proof: 6, full: 20 });
const TIMEOUT = SCALE === "full" ? 3_600_000 : 180_000;
/** A small run takes one store, and the next seed the other; a larger one both, in turns. */
const PARTS = scaled<readonly StoreKind[]>({
  test: [STORES[SEED % 2] ?? "sqlite"],
  proof: STORES,
  full: [...STORES, ...STORES],
});

test("kill -9 and SIGSTOP at random moments: nothing is lost, duplicated or misreported [G5 G11 I29 T8 T34]", {
  timeout: TIMEOUT,
}, async () => {
  const runs: RandomRun[] = [];
  for (const [part, kind] of PARTS.entries()) {
    const ran = await withStore(kind, (store, folder) =>
      runRandom({
        run: "acme",
        store,
        folder,
        cache: CACHE,
        seed: SEED + part,
        cycles: Math.ceil(CYCLES / PARTS.length),
        pauses: Math.ceil(PAUSES / PARTS.length),
      }),
    );
    console.log(`${kind}, CRASH_SEED=${SEED}: ${JSON.stringify(ran)}`);
    tell(kind, ran);
    runs.push(ran);
  }
  const sum = (of: (ran: RandomRun) => number) => runs.reduce((all, ran) => all + of(ran), 0);
  const broken = runs.flatMap(({ violations }) => violations);
  expect(broken.map(({ id, problem }) => `${id} ${problem}`).join("\n")).toBe("");
  const least = {
    cycles: [sum(({ kills, pauses }) => kills + pauses), CYCLES],
    pauses: [sum(({ pauses }) => pauses), PAUSES],
    effects: [sum(({ counts }) => counts.effects), CYCLES / 3],
    approved: [sum(({ counts }) => counts.executed), CYCLES / 10],
    // In a short run it may happen that no call is interrupted.
    "left behind": [
      sum(({ counts }) => counts.takenOver),
      scaled({ test: 0, proof: CYCLES / 50, full: CYCLES / 50 }),
    ],
    "faults of the server": [sum(({ serverKills, serverPauses }) => serverKills + serverPauses), 1],
    "kills of the server": [
      sum(({ serverKills }) => serverKills),
      // Which of the few faults are pauses, and whom they hit, is chance.
      scaled({ test: 0, proof: 1, full: 20 }),
    ],
    "answers over HTTP": [sum(({ overHttp }) => overHttp), CYCLES / 8],
    "requests sent again": [
      sum(({ unanswered }) => unanswered),
      scaled({ test: 0, proof: 1, full: 20 }),
    ],
  } as const;
  for (const [what, [really, planned]] of Object.entries(least)) {
    expect(really, `void: too few ${what}`).toBeGreaterThanOrEqual(planned);
  }
});

function tell(kind: StoreKind, ran: RandomRun): void {
  const { counts, violations, startMs, recoveryMs, restMs, troubles: _, ...happened } = ran;
  const figures = {
    ...happened,
    ...counts,
    violations: violations.length,
    "recovery p50 ms": recoveryMs.p50,
    "recovery max ms": recoveryMs.max,
    "rest max ms": restMs.max,
  };
  record({ goal: "G5", what: `kill -9 at random moments, full mix, ${kind}`, figures, seed: SEED });
  const paused = { pauses: ran.pauses, takenOver: counts.takenOver, violations: violations.length };
  record({ goal: "G11", what: `SIGSTOP beyond the lease, ${kind}`, figures: paused, seed: SEED });
}
