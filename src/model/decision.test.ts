import { describe, expect, expectTypeOf, test } from "vitest";
import {
  DECISION_STATES,
  type Decision,
  type DecisionState,
  isDecisionState,
  isFinal,
  isLegal,
  newDraft,
  TIERS,
} from "./decision.ts";
import { type Guard, NO_VERDICT } from "./verdict.ts";

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
  test("S0-01 are exactly these seven names", () => {
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

  test("S0-01 are recognised by these names and by nothing else", () => {
    expect(STATES.every(isDecisionState)).toBe(true);
    for (const name of [...UNKNOWN, undefined, null, 0, ["approved"]]) {
      expect(isDecisionState(name), String(name)).toBe(false);
    }
  });

  test("S0-06 four are final, three are in flight", () => {
    const final = STATES.filter(isFinal);
    expect(final).toEqual(["rejected_tech", "rejected_ml", "executed", "failed"]);
    for (const name of UNKNOWN) expect(isFinal(name), name).toBe(false);
  });
});

describe("moves", () => {
  const pairs = STATES.flatMap((from) => STATES.map((to) => [from, to] as const));

  test("S0-02 of 49 pairs these six are legal", () => {
    expect(pairs).toHaveLength(49);
    const legal = pairs.filter(([from, to]) => isLegal(from, to));
    expect(legal.map(([from, to]) => `${from} > ${to}`).toSorted()).toEqual(LEGAL.toSorted());
  });

  test.each(pairs)("S0-02 %s to %s", (from, to) => {
    expect(isLegal(from, to)).toBe(LEGAL.includes(`${from} > ${to}`));
  });

  test.each(STATES)("S0-03 %s to itself is not one", (state) => {
    expect(isLegal(state, state)).toBe(false);
  });

  test("S0-04 a name outside the seven is on neither side of one", () => {
    for (const odd of UNKNOWN) {
      for (const state of [...STATES, ...UNKNOWN]) {
        expect(isLegal(odd, state), `${odd} to ${state}`).toBe(false);
        expect(isLegal(state, odd), `${state} to ${odd}`).toBe(false);
      }
    }
  });

  test("S0-05 depend on the table alone: no guard can be given, and the answer never varies", () => {
    expect(isLegal).toHaveLength(2);
    expectTypeOf(isLegal).parameters.toEqualTypeOf<[string, string]>();
    const refuses: Guard = { allows: () => false };
    const withGuard = isLegal as (from: string, to: string, guard: Guard) => boolean;
    expect(withGuard("approved", "executed", refuses)).toBe(true);
  });

  test("S0-07 of both review tiers are in the table", () => {
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

  test("S0-13 is pending_tech, without an id, with the given session and diff", () => {
    expect(draft.state).toBe("pending_tech");
    expect(draft.id).toBe("");
    expect(draft.sessionId).toBe("session-1");
    expect(draft.diff).toBe(diff);
    expect(draft.techVerdict).toEqual(NO_VERDICT);
    expect(draft.bizVerdict).toEqual(NO_VERDICT);
  });

  test("S0-14 has the given UTC time as both of its times", () => {
    expect(draft.createdAt).toBe(NOW);
    expect(draft.updatedAt).toBe(NOW);
  });

  test("S0-26 mirrors the metadata of its diff", () => {
    expect(draft.metadata).toEqual(diff.metadata);
  });

  test("S0-08 S0-09 is one record with one state: nothing in it has a state of its own", () => {
    const fields = Object.keys(draft).toSorted();
    expect(fields).toEqual([
      "bizVerdict",
      "createdAt",
      "diff",
      "executionError",
      "executionProof",
      "id",
      "metadata",
      "sessionId",
      "state",
      "techVerdict",
      "updatedAt",
    ]);
    expectTypeOf<keyof Decision>().toEqualTypeOf<keyof typeof draft>();
    expect(Object.keys(draft.diff).toSorted()).toEqual(["metadata", "raw", "sourceTool"]);
  });
});
