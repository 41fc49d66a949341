import { type Factor, type Requirement, requirementProblem } from "../model/requirement.ts";

export type MergedRequirement =
  | { readonly possible: true; readonly requires: Requirement }
  | { readonly possible: false; readonly problem: string };

/**
 * All of them at once: each factor by its name, with its highest count and only those people that all of them name. The
 * narrowest first, because a yes counts for the first factor that is open to the person, and who alone can give one must
 * not be used up by another.
 */
export function mergeRequirements(all: readonly Requirement[]): MergedRequirement {
  const merged = new Map<string, Factor>();
  for (const factor of all.flat()) {
    const known = merged.get(factor.name);
    merged.set(factor.name, known === undefined ? factor : stricter(known, factor));
  }
  const width = ({ from }: Factor) => from?.length ?? Number.MAX_SAFE_INTEGER;
  const requires = [...merged.values()].toSorted((a, b) => width(a) - width(b));
  const problem = requirementProblem(requires);
  if (problem !== undefined) return { possible: false, problem };
  if (isMeetable(requires)) return { possible: true, requires };
  return { possible: false, problem: "One person counts once, so too few are named for all of it" };
}

function stricter(one: Factor, other: Factor): Factor {
  const { from } = other;
  const both =
    one.from === undefined ? from : one.from.filter((who) => from?.includes(who) ?? true);
  const count = Math.max(one.count, other.count);
  return { name: one.name, count, ...(both === undefined ? {} : { from: both }) };
}

/**
 * Can different people fill every factor that names its people? Each yes takes one of them, moving others to another
 * factor where that makes room (augmenting paths); a factor open to everybody always finds somebody.
 */
export function isMeetable(requires: Requirement): boolean {
  if (requires.some(({ count, from }) => from !== undefined && count > from.length)) return false;
  const seats = requires.flatMap(({ count, from }) =>
    from === undefined ? [] : Array<readonly string[]>(count).fill(from),
  );
  const seatOf = new Map<string, number>();
  const sits = (seat: number, tried: Set<string>): boolean =>
    (seats[seat] ?? []).some((person) => {
      if (tried.has(person)) return false;
      tried.add(person);
      const taken = seatOf.get(person);
      if (taken !== undefined && !sits(taken, tried)) return false;
      seatOf.set(person, seat);
      return true;
    });
  return seats.every((_, seat) => sits(seat, new Set()));
}
