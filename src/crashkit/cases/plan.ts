import type { Kind } from "../evidence.ts";
import { KINDS } from "../world/world.ts";
import { type Case, caseOf, OWN_POINTS, POINTS, STEP_POINTS } from "./case.ts";

/** One call, killed at each of the 20 points. */
export function singleCases(seed: number): readonly Case[] {
  return POINTS.flatMap((point, at) => {
    // Without a person nothing is staged: such a call comes past the later points only.
    const lane = point >= "S5" && (at + seed) % 2 === 0 ? "free" : "ask";
    return KINDS.map((kind) => caseOf({ kind, lane, crashAt: `${point}:1` }));
  });
}

const ROLLBACK_STEPS = 2;
/** Those that the rollback of a finished session comes past. It is not staged, because the person who asks for it decides. */
const ROLLBACK_POINTS = [
  ...range(1, ROLLBACK_STEPS).flatMap((time) =>
    STEP_POINTS.map((point) => `undo ${point}:${time}`),
  ),
  "undo S8.before:1",
  "undo S8.during:1",
];

/** Two calls, done; then a person takes them back, and that is killed at each of its points. */
export function rollbackCases(kind: Kind): readonly Case[] {
  return ROLLBACK_POINTS.map((crashAt) =>
    caseOf({ kind, steps: ROLLBACK_STEPS, takesBack: true, crashAt }),
  );
}

const SAGA_STEPS = 10;

/** Ten calls as one decision: killed in each step, in each compensation when the last one fails, and in each call of a rollback. */
export function sagaCases(kind: Kind): readonly Case[] {
  const steps = SAGA_STEPS;
  return STEP_POINTS.flatMap((point) => [
    ...range(1, steps).map((time) => caseOf({ kind, steps, crashAt: `${point}:${time}` })),
    // The steps come past a point first, then the compensations of all but the last.
    ...range(steps + 1, 2 * steps - 1).map((time) =>
      caseOf({ kind, steps, failsLast: true, crashAt: `${point}:${time}` }),
    ),
    ...range(1, steps).map((time) =>
      caseOf({ kind, steps, takesBack: true, crashAt: `undo ${point}:${time}` }),
    ),
  ]);
}

/** Calls of the user's own module, killed at the points that every tool comes past. */
export function ownCases(): readonly Case[] {
  return OWN_POINTS.map((point) => caseOf({ kind: "plain", lane: "own", crashAt: `${point}:1` }));
}

/**
 * What `sallyport crashkit --points` does: every point of a single call and of a rollback with every kind of target, and of a
 * long saga each step, compensation and rollback call once, at a point and with a kind that the seed chooses.
 */
export function plannedPoints(seed: number): readonly Case[] {
  const sagas = Map.groupBy(KINDS.flatMap(sagaCases), wayOf);
  const some = [...sagas.values()].flatMap((all, at) => all[(seed + at * 5) % all.length] ?? []);
  return named([...singleCases(seed), ...KINDS.flatMap(rollbackCases), ...some]);
}

function wayOf({ crashAt, failsLast }: Case): string {
  const [phase] = crashAt.split("S");
  return `${phase}${failsLast} ${crashAt.split(":").at(-1)}`;
}

export function named(cases: readonly Case[], name = "case"): readonly Case[] {
  return cases.map((one, at) => ({ ...one, id: `${name}-${at}` }));
}

export function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}
