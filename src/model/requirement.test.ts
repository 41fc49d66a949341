import { expect, test } from "vitest";
import {
  factorFor,
  missingFactors,
  ONE_PERSON,
  type Requirement,
  requirementProblem,
  type Vote,
} from "./interaction.ts";

const BOTH: Requirement = [
  { name: "security", count: 1, from: ["sue", "sam"] },
  { name: "business", count: 2 },
];
const vote = (by: string, factor: string): Vote => ({ by, factor });

test("what is missing shrinks with every yes, and more than enough is enough", () => {
  expect(missingFactors(BOTH, [])).toEqual(BOTH);
  const some = [vote("sue", "security"), vote("ada", "business")];
  expect(missingFactors(BOTH, some)).toEqual([{ name: "business", count: 1 }]);
  expect(missingFactors(BOTH, [...some, vote("bob", "business")])).toEqual([]);
  const many = [...some, vote("bob", "business"), vote("eve", "business")];
  expect(missingFactors(BOTH, many)).toEqual([]);
  // A vote for a factor that is not required has no effect.
  expect(missingFactors(ONE_PERSON, [vote("ada", "security")])).toEqual(ONE_PERSON);
});

test("a yes counts for the named factor, or for the first that is open to this person", () => {
  const name = (person: string, votes: readonly Vote[], named?: string) =>
    factorFor(person, BOTH, votes, named)?.name;
  expect(name("sue", [])).toBe("security");
  expect(name("ada", [])).toBe("business");
  expect(name("sue", [], "business")).toBe("business");
  expect(name("ada", [], "security")).toBeUndefined();
  expect(name("sam", [vote("sue", "security")])).toBe("business");
  expect(name("sam", [vote("sue", "security")], "security")).toBeUndefined();
  expect(name("ada", [], "legal")).toBeUndefined();
  const all = [vote("sue", "security"), vote("ada", "business"), vote("bob", "business")];
  expect(name("eve", all)).toBeUndefined();
});

test("people are named exactly: a look-alike is not on a factor's list", () => {
  const factor = [{ name: "security", count: 1, from: ["sue"] }];
  for (const other of ["Sue", "sue ", "s\u200bue", "ｓue", ""]) {
    expect(factorFor(other, factor, []), other).toBeUndefined();
  }
});

test("a requirement that cannot be met, or that nobody has to meet, has a problem", () => {
  const problem = (...requires: Requirement) => requirementProblem(requires);
  expect(requirementProblem(ONE_PERSON)).toBeUndefined();
  expect(requirementProblem(BOTH)).toBeUndefined();
  expect(problem()).toContain("nothing is approved by nobody");
  expect(problem({ name: "", count: 1 })).toContain("a name");
  expect(problem({ name: "a", count: 1 }, { name: "a", count: 1 })).toContain("its own name");
  for (const count of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(problem({ name: "a", count }), String(count)).toContain("at least one yes");
  }
  expect(problem({ name: "a", count: 1, from: [] })).toContain("names only 0");
  expect(problem({ name: "a", count: 2, from: ["ada", "ada"] })).toContain("names only 1");
});
