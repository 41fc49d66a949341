import { describe, expect, test } from "vitest";
import { DECISIONS } from "../model/decision.ts";
import type { Change, Step } from "./engine.ts";
import { takeGroup, type Waiting } from "./group-commit.ts";

/** A change that touches these records. */
function touching(...ids: readonly string[]): Change {
  const steps = ids.map((id) => ({ op: "insert", table: DECISIONS, id, row: {} }) as const);
  return { steps, events: [] };
}

function nameOf(step: Step): string {
  return step.op === "take" ? "take" : step.id;
}

describe("a group", () => {
  const waiting = (tenant: string, ...ids: readonly string[]): Waiting => ({
    tenant,
    change: touching(...ids),
    since: 0,
    size: 1,
    resolve: () => {},
    reject: () => {},
  });
  const names = (members: readonly Waiting[]) =>
    members.map(({ tenant, change }) => [tenant, ...change.steps.map(nameOf)].join(" "));
  const taken = (all: readonly Waiting[], maxGroup = 256) => {
    const { group, rest } = takeGroup(all, maxGroup, 1_000);
    return [names(group), names(rest)];
  };

  test("touches every record once: the second change of a record waits", () => {
    const all = [waiting("acme", "a"), waiting("acme", "a"), waiting("acme", "b")];
    expect(taken(all)).toEqual([["acme a", "acme b"], ["acme a"]]);
  });

  test("lets nobody overtake a change that waits, not even over another record of it", () => {
    const all = [waiting("t", "a"), waiting("t", "a", "b"), waiting("t", "b"), waiting("t", "c")];
    expect(taken(all)).toEqual([
      ["t a", "t c"],
      ["t a b", "t b"],
    ]);
  });

  test("takes equal ids of different tenants for different records", () => {
    expect(taken([waiting("acme", "a"), waiting("globex", "a")])).toEqual([
      ["acme a", "globex a"],
      [],
    ]);
  });

  test("leaves those beyond its size for later, with their records", () => {
    const all = [waiting("t", "a"), waiting("t", "b"), waiting("t", "c")];
    expect(taken(all, 1)).toEqual([["t a"], ["t b", "t c"]]);
  });

  test("takes may stand beside each other and beside anything else", () => {
    const take = { op: "take", table: DECISIONS, where: {}, order: [], limit: 1, set: {} } as const;
    const taking = { ...waiting("t"), change: { steps: [take], events: [] } };
    expect(taken([taking, waiting("t", "a"), taking, waiting("t", "a")])).toEqual([
      ["t take", "t a", "t take"],
      ["t a"],
    ]);
  });

  test("of none is empty", () => {
    expect(taken([])).toEqual([[], []]);
  });
});
