import type { Case, ChildPoint } from "../support/crash-child.ts";
import { KINDS } from "../support/crash-tools.ts";
import type { Kind } from "../support/crash-world.ts";

export const STORES = ["sqlite", "postgres"] as const;
export type StoreKind = (typeof STORES)[number];

/** Part 4 of the threat model: around every commit, before, in and after the act, before and while it is announced. */
export const POINTS = [
  "S1.before",
  "S1.after",
  "S2a.before",
  "S2a.after",
  "S2b.before",
  "S2b.after",
  "S3.before",
  "S3.after",
  "S4.before",
  "S4.after",
  "S5.before",
  "S5.after",
  "S6.before",
  "S6.request",
  "S6.effect",
  "S6.after",
  "S7.before",
  "S7.after",
  "S8.before",
  "S8.during",
] as const satisfies readonly ChildPoint[];

/** Those that every step of a bundle, and every compensation, comes past. */
const STEP_POINTS = POINTS.slice(POINTS.indexOf("S5.before"), POINTS.indexOf("S8.before"));
const STEPS = 3;

/** Recoveries are cut off as well, at one of these. */
export const RECOVERY_POINTS = ["S5.after:1", "S6.before:1", "S6.after:1", "S7.before:2"] as const;

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

function combinations(): readonly { readonly store: StoreKind; readonly kind: Kind }[] {
  return STORES.flatMap((store) => KINDS.map((kind) => ({ store, kind })));
}

function caseOf(own: Partial<Case> & Pick<Case, "kind">): Case {
  const plain = {
    id: "",
    lane: "ask",
    steps: 1,
    failsLast: false,
    fault: "none",
    crashAt: "",
  } as const;
  return { ...plain, ...own };
}

function named(name: string, all: readonly Planned[]): readonly Planned[] {
  return all.map(({ store, one }, at) => ({ store, one: { ...one, id: `${name}-${at}` } }));
}
