import type { Evidence, Invariant } from "../evidence.ts";
import { I1, I2, I4, I5, I7 } from "./effects.ts";
import { I3, I6, I9, I10, I13, I28, I29 } from "./people.ts";

import { I12, I14, I15, I17, I18, I20, I30 } from "./states.ts";

/** Those invariants of the threat model that evidence can show broken. The others need a look at something else. */
export const INVARIANTS: readonly Invariant[] = [
  I1,
  I2,
  I3,
  I4,
  I5,
  I6,
  I7,
  I9,
  I10,
  I12,
  I13,
  I14,
  I15,
  I17,
  I18,
  I20,
  I28,
  I29,
  I30,
];

/** Those that can be looked at with nothing but a store, at any moment. */
export const OF_THE_STORE = [
  "I2",
  "I12",
  "I15",
  "I17",
  "I18",
  "I20",
] as const satisfies readonly Invariant["id"][];

export interface Violation {
  readonly id: Invariant["id"];
  readonly problem: string;
}

/** Every violation, by the order of the table. All invariants, or those that are named. */
export function checkInvariants(
  evidence: Evidence,
  ids: readonly Invariant["id"][] = INVARIANTS.map(({ id }) => id),
): readonly Violation[] {
  return INVARIANTS.filter(({ id }) => ids.includes(id)).flatMap(({ id, check }) =>
    check(evidence).map((problem) => ({ id, problem })),
  );
}
