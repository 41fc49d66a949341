import { describe, expect, expectTypeOf, test } from "vitest";
import {
  DECISION_STATES,
  type DecisionState,
  type Guard,
  isDecisionState,
  isFinal,
  isLegal,
  NO_VERDICT,
  newDraft,
  TIERS,
} from "./decision.ts";

const STATES = [
  "pending_tech",
  "rejected_tech",
  "pending_ml",
  "rejected_ml",
  "approved",
  "executed",
  "failed",
];
const LEGAL = [
  "pending_tech > rejected_tech",
  "pending_tech > pending_ml",
  "pending_ml > rejected_ml",
  "pending_ml > approved",
  "approved > executed",
  "approved > failed",
];
const UNKNOWN = ["", "pending", "Approved", "approved ", "executing", "constructor", "__proto__"];
const NOW = "2026-11-15T06:00:00.000Z";

describe("states", () => {
  test("are exactly these seven names [S0-01]", () => {
    expect([...DECISION_STATES].toSorted()).toEqual(STATES.toSorted());
    expectTypeOf<DecisionState>().toEqualTypeOf<
      | "pending_tech"
      | "rejected_tech"
      | "pending_ml"
      | "rejected_ml"
      | "approved"
      | "executed"
      | "failed"
    >();
  });

  test("are recognised by these names and by nothing else [S0-01]", () => {
    expect(STATES.every(isDecisionState)).toBe(true);
    for (const name of [...UNKNOWN, undefined, null, 0, ["approved"]]) {
      expect(isDecisionState(name), String(name)).toBe(false);
    }
  });

  test("four are final, three are in flight [S0-06]", () => {
    const final = STATES.filter(isFinal);
    expect(final).toEqual(["rejected_tech", "rejected_ml", "executed", "failed"]);
    for (const name of UNKNOWN) expect(isFinal(name), name).toBe(false);
  });
});

describe("moves", () => {
  const pairs = STATES.flatMap((from) => STATES.map((to) => [from, to] as const));

  test("of 49 pairs these six are legal [S0-02]", () => {
    expect(pairs).toHaveLength(49);
    const legal = pairs.filter(([from, to]) => isLegal(from, to));
    expect(legal.map(([from, to]) => `${from} > ${to}`).toSorted()).toEqual(LEGAL.toSorted());
  });

  test.each(pairs)("%s to %s [S0-02]", (from, to) => {
    expect(isLegal(from, to)).toBe(LEGAL.includes(`${from} > ${to}`));
  });

  test.each(STATES)("%s to itself is not one [S0-03]", (state) => {
    expect(isLegal(state, state)).toBe(false);
  });

  test("a name outside the seven is on neither side of one [S0-04]", () => {
    for (const odd of UNKNOWN) {
      for (const state of [...STATES, ...UNKNOWN]) {
        expect(isLegal(odd, state), `${odd} to ${state}`).toBe(false);
        expect(isLegal(state, odd), `${state} to ${odd}`).toBe(false);
      }
    }
  });

  test("depend on the table alone: no guard can be given, and the answer never varies [S0-05]", () => {
    expect(isLegal).toHaveLength(2);
    expectTypeOf(isLegal).parameters.toEqualTypeOf<[string, string]>();
    const refuses: Guard = { allows: () => false };
    const withGuard = isLegal as (from: string, to: string, guard: Guard) => boolean;
    expect(withGuard("approved", "executed", refuses)).toBe(isLegal("approved", "executed"));
    expect(isLegal("approved", "executed")).toBe(true);
  });

  test("of both review tiers are in the table [S0-07]", () => {
    for (const { from, yes, no } of Object.values(TIERS)) {
      expect(isLegal(from, yes)).toBe(true);
      expect(isLegal(from, no)).toBe(true);
      expect(isFinal(no)).toBe(true);
    }
    expect(TIERS.tech.yes).toBe(TIERS.business.from);
  });
});

describe("a draft", () => {
  const diff = { sourceTool: "crm.update", raw: new Uint8Array([1]), metadata: { tenant: "acme" } };
  const draft = newDraft("session-1", diff, NOW);

  test("is pending_tech, without an id, with the given session and diff [S0-13]", () => {
    expect(draft.state).toBe("pending_tech");
    expect(draft.id).toBe("");
    expect(draft.sessionId).toBe("session-1");
    expect(draft.diff).toBe(diff);
    expect(draft.techVerdict).toEqual(NO_VERDICT);
    expect(draft.bizVerdict).toEqual(NO_VERDICT);
  });

  test("has the given UTC time as both of its times [S0-14]", () => {
    expect(draft.createdAt).toBe(NOW);
    expect(draft.updatedAt).toBe(NOW);
  });

  test("mirrors the metadata of its diff [S0-26]", () => {
    expect(draft.metadata).toEqual(diff.metadata);
  });

  test("is one record with one state: nothing in it has a state of its own [S0-08 S0-09]", () => {
    const namesIn = (value: object): string[] =>
      Object.entries(value).flatMap(([name, inner]) =>
        typeof inner === "object" && inner !== null ? [name, ...namesIn(inner)] : [name],
      );
    expect(namesIn(draft).filter((name) => /state|status/i.test(name))).toEqual(["state"]);
    expect(Object.values(draft).some(Array.isArray), "parts of it").toBe(false);
    expect(Object.keys(draft.diff).toSorted()).toEqual(["metadata", "raw", "sourceTool"]);
  });
});
