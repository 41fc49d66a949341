import {
  type Case,
  caseOf,
  POINTS,
  range,
  rollbackCases,
  STEP_POINTS,
  sagaCases,
} from "../../src/crashkit/cases/run-cases.ts";

import type { Kind } from "../../src/crashkit/evidence.ts";
import { KINDS } from "../../src/crashkit/world/world.ts";
import { STORES, type StoreKind } from "../support/crash-run.ts";

const STEPS = 3;

export interface Planned {
  readonly store: StoreKind;
  readonly one: Case;
}

/** One call each, killed at every point. By default a part that rotates with the seed: six seeds in a row make the whole. */
export function singleCalls(seed: number, isFull: boolean): readonly Planned[] {
  const rounds = isFull ? 10 : 1;
  const all = Array.from({ length: rounds }, (_, round) =>
    POINTS.flatMap((point, at) => {
      // Without a person nothing is staged: such a call comes past the later points only.
      const lane = point >= "S5" && (at + seed + round) % 2 === 0 ? "free" : "ask";
      return combinations().map(({ store, kind }, place) => {
        const isTurn =
          isFull || (at + seed) % 6 === place || (at < 5 && (at + seed + 3) % 6 === place);
        return isTurn ? [{ store, one: caseOf({ kind, lane, crashAt: `${point}:1` }) }] : [];
      });
    }),
  );
  return named("call", all.flat(2));
}

/** Three calls as one decision, killed within each step; and the same where the third fails, within each compensation. */
export function bundles(seed: number, isFull: boolean): readonly Planned[] {
  // The steps come past a point first, then the compensations of the first two.
  const times = [1, 2, 3, 4, 5];
  const all = times.flatMap((time) =>
    STEP_POINTS.flatMap((point, at) =>
      combinations().map(({ store, kind }, place) => {
        const isTurn = isFull || (at * 5 + time + seed * 7) % 18 === place * 3;
        const more = { steps: STEPS, failsLast: time > STEPS, crashAt: `${point}:${time}` };
        return isTurn ? [{ store, one: caseOf({ kind, ...more }) }] : [];
      }),
    ),
  );
  return named("bundle", all.flat());
}

/** Nothing of ours is killed here: the answer is lost, or production dies before it gives one. */
export function lostAnswers(): readonly Planned[] {
  const faults = ["cut", "die"] as const;
  const all = faults.flatMap((fault) => KINDS.map((kind) => caseOf({ kind, fault })));
  return named(
    "lost",
    all.map((one, at) => ({ store: STORES[at % 2] ?? "sqlite", one })),
  );
}

/** The rollback of a finished session, killed at each of its points. `count`: so many, by the seed. */
export function rollbacks(seed: number, count: number, stores = STORES): readonly Planned[] {
  return named("undo", some(everywhere(rollbackCases, stores), seed, count));
}

/** Ten calls as one decision, killed in each step, in each compensation and in each call of a rollback. */
export function sagas(seed: number, count: number, stores = STORES): readonly Planned[] {
  return named("saga", some(everywhere(sagaCases, stores), seed, count));
}

function everywhere(
  casesOf: (kind: Kind) => readonly Case[],
  stores: readonly StoreKind[],
): readonly Planned[] {
  return combinations(stores).flatMap(({ store, kind }) =>
    casesOf(kind).map((one) => ({ store, one })),
  );
}

/** So many of them, spread over all; another seed takes others. */
function some(all: readonly Planned[], seed: number, count: number): readonly Planned[] {
  if (count >= all.length) return all;
  // A step that has no divisor in common with the length comes to every place before it repeats one.
  const step = [97, 89, 83, 79].find((prime) => all.length % prime !== 0) ?? 1;
  const places = range(0, count - 1).map((at) => ((seed * count + at) * step) % all.length);
  return places.flatMap((place) => all[place] ?? []);
}

function combinations(
  stores = STORES,
): readonly { readonly store: StoreKind; readonly kind: Kind }[] {
  return stores.flatMap((store) => KINDS.map((kind) => ({ store, kind })));
}

function named(name: string, all: readonly Planned[]): readonly Planned[] {
  return all.map(({ store, one }, at) => ({ store, one: { ...one, id: `${name}-${at}` } }));
}
