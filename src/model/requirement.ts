/**
 * Who must say yes: so many different people for each factor ("one of security, two of operations"). A person counts for
 * one factor only, and one no is a no.
 */
export type Requirement = readonly Factor[];

export interface Factor {
  readonly name: string;
  readonly count: number;
  /** Who may give it; left out: anybody who may decide at all. */
  readonly from?: readonly string[];
}

/** The trail says when. */
export interface Vote {
  readonly by: string;
  readonly factor: string;
}

export const ONE_PERSON: Requirement = [{ name: "review", count: 1 }];

/** What is still missing; empty when all have said yes. */
export function missingFactors(requires: Requirement, votes: readonly Vote[]): Requirement {
  return requires.flatMap((factor) => {
    const given = votes.filter((vote) => vote.factor === factor.name).length;
    return given >= factor.count ? [] : [{ ...factor, count: factor.count - given }];
  });
}

/** The factor that this person's yes counts for: the named one, or the first that is open to them. Undefined: none is. */
export function factorFor(
  person: string,
  requires: Requirement,
  votes: readonly Vote[],
  named?: string,
): Factor | undefined {
  return missingFactors(requires, votes).find(
    ({ name, from }) =>
      (named === undefined || named === name) && (from === undefined || from.includes(person)),
  );
}

/** A sentence about what is wrong with it, undefined when it can be met. */
export function requirementProblem(requires: Requirement): string | undefined {
  if (requires.length === 0) return "Name at least one factor: nothing is approved by nobody";
  const names = new Set(requires.map(({ name }) => name));
  if (names.size < requires.length) return "Give every factor its own name";
  for (const { name, count, from } of requires) {
    if (name === "") return "Give every factor a name";
    if (!Number.isSafeInteger(count) || count < 1) return `Factor "${name}" needs at least one yes`;
    if (from !== undefined && new Set(from).size < count) {
      return `Factor "${name}" needs ${count} people and names only ${new Set(from).size}`;
    }
  }
  return undefined;
}
