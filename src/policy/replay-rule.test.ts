import { expect, test } from "vitest";
import { DECISION_STATES, type DecisionState } from "../model/decision.ts";
import { type DecidedCalls, replayRule } from "./review-rules.ts";

const RULE = {
  tool: "billing.refund",
  definitionHash: "d1",
  pattern: { cents: { atMost: 500 } },
  workingDirectory: "",
} as const;

function refund(cents: number, definitionHash = "d1") {
  const place = { workingDirectory: "/srv", needsExact: false };
  return { tool: "billing.refund", definitionHash, input: { cents }, ...place };
}

function decided(id: string, state: DecisionState, ...calls: DecidedCalls["calls"]): DecidedCalls {
  const saidNo = { by: "ada", reason: `not ${id}` };
  return { id, state, calls, ...(state.startsWith("rejected") ? { saidNo } : {}) };
}

test("a new rule is replayed: it would have approved 214, two of which a person rejected", () => {
  const yes = Array.from({ length: 212 }, (_, index) =>
    decided(`yes-${index}`, index % 2 === 0 ? "executed" : "approved", refund(index)),
  );
  const no = [decided("no-1", "rejected_ml", refund(1)), decided("no-2", "rejected_ml", refund(2))];
  const others = [decided("large", "executed", refund(501)), decided("e", "executed")];
  const replay = replayRule(RULE, [...yes, ...no, ...others]);
  expect(replay.looked).toBe(216);
  expect(replay.agreed).toHaveLength(212);
  expect(replay.rejected).toEqual([
    { id: "no-1", by: "ada", reason: "not no-1" },
    { id: "no-2", by: "ada", reason: "not no-2" },
  ]);
  expect(replay.text).toBe(
    "Of 216 decisions it would have approved 214, 2 of which were rejected.",
  );
});

test("a decision counts once, by its outcome, for all seven states", () => {
  const all = DECISION_STATES.map((state) => decided(state, state, refund(1)));
  const replay = replayRule(RULE, all);
  expect(replay.agreed).toEqual(["approved", "executed", "failed"]);
  expect(replay.rejected.map(({ id }) => id)).toEqual(["rejected_ml"]);
  expect(replay.stopped.map(({ id }) => id)).toEqual(["rejected_tech"]);
  expect(replay.open).toEqual(["pending_tech", "pending_ml"]);
  expect(replay.text).toBe(
    "Of 7 decisions it would have approved 7, 1 of which were rejected, 1 of which the technical review stopped, 2 of which are not decided yet.",
  );
});

test("a bundle counts only when the rule covers every call of it", () => {
  const replay = replayRule(RULE, [
    decided("both", "executed", refund(1), refund(2)),
    decided("one", "executed", refund(1), refund(900)),
    decided("mixed", "executed", refund(1), { ...refund(1), tool: "mail.send" }),
  ]);
  expect(replay.agreed).toEqual(["both"]);
});

test("decisions about another definition of the tool prove nothing, but are reported", () => {
  const replay = replayRule(RULE, [
    decided("old", "rejected_ml", refund(1, "d0")),
    decided("half", "executed", refund(1), refund(1, "d0")),
    decided("else", "executed", { ...refund(1, "d0"), tool: "mail.send" }),
    decided("odd", "executed", { ...refund(1), input: { cents: Number.NaN } }),
  ]);
  expect(replay).toMatchObject({ agreed: [], rejected: [], otherDefinition: 2 });
  expect(replay.text).toBe(
    "Of 4 decisions it would have approved 0. 2 more were of another definition of the tool.",
  );
});
