import { expect, test } from "vitest";
import { NO_CAPABILITY } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonValue } from "../util/json.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import {
  DELIVERABLE_VERDICTS,
  type Deliverable,
  decideReverseThinking,
  readDeliverable,
  toReplayEvent,
} from "./reverse-thinking.ts";

const good: Deliverable = {
  step: "before refund",
  hiddenAssumptions: ["The invoice is paid."],
  failureScenarios: ["It was refunded by hand yesterday.", "The card is closed."],
  verdict: "A_holds",
  reason: "The ledger shows one payment and no refund.",
};
const json = (more: object = {}): JsonValue =>
  ({ ...structuredClone(good), ...more }) as unknown as JsonValue;
const decide = (
  written: string | JsonValue | undefined,
  whenMissing: "refuse" | "proceed" = "refuse",
) => decideReverseThinking("billing.refund", written, { needed: true, whenMissing });

test("a deliverable records assumptions, failure scenarios, verdict and reason [S2-51 I-41]", () => {
  for (const written of [json(), JSON.stringify(good)]) {
    expect(decide(written)).toEqual({ answer: "allow", findings: [], deliverable: good });
  }
  expect(DELIVERABLE_VERDICTS).toEqual(["A_holds", "B_wins", "depends_on_X"]);
});

test("A_holds continues, B_wins stops, depends_on_X asks [I-41]", () => {
  expect(decide(json({ verdict: "A_holds" })).answer).toBe("allow");
  expect(decide(json({ verdict: "B_wins" })).answer).toBe("deny");
  expect(decide(json({ verdict: "depends_on_X" })).answer).toBe("ask");
  expect(decide(json({ verdict: "B_wins" })).findings[0]?.message).toContain(
    "Nothing was executed. Take that way.",
  );
  expect(decide(json({ verdict: "B_wins" })).deliverable?.verdict).toBe("B_wins");
});

test("the step label is open [I-41]", () => {
  for (const step of ["x", "phase 7/β", "before_tool"]) {
    expect(readDeliverable(json({ step })).ok).toBe(true);
  }
});

const unreadable: readonly (readonly [string, string | JsonValue])[] = [
  ["nothing", ""],
  ["broken text", "{"],
  ["a text around it", `Here it is: ${JSON.stringify(good)}`],
  ["two equal keys", JSON.stringify(good).replace('"step"', '"verdict":"B_wins","step"')],
  ["an array", [json()]],
  ["null", null],
  ["a number", 7],
  ["an unknown verdict", json({ verdict: "a_holds" })],
  ["a list of verdicts", json({ verdict: ["A_holds"] })],
  ["no verdict", json({ verdict: "" })],
  ["no assumptions", json({ hiddenAssumptions: [] })],
  ["assumptions as a text", json({ hiddenAssumptions: "none" })],
  ["an empty scenario", json({ failureScenarios: ["", "x"] })],
  ["a scenario that is no text", json({ failureScenarios: [1] })],
  ["no reason", json({ reason: "   " })],
  ["too long a reason", json({ reason: "x".repeat(5000) })],
  ["too many scenarios", json({ failureScenarios: Array(51).fill("x") })],
  ["a foreign field", json({ approved: true })],
  ["no step", json({ step: 3 })],
];

test.each(unreadable)("unreadable: %s [I-45]", (_, written) => {
  expect(readDeliverable(written).ok).toBe(false);
  expect(decide(written).answer).toBe("deny");
  const proceeding = decide(written, "proceed");
  expect(proceeding).toMatchObject({ answer: "allow", deliverable: undefined });
  expect(proceeding.findings).toMatchObject([{ severity: "warning", policy: "reverse-thinking" }]);
});

test("a missing deliverable is reported and handled by the stated policy, never ignored [I-45]", () => {
  const refused = decide(undefined);
  expect(refused).toMatchObject({ answer: "deny", deliverable: undefined });
  expect(refused.findings[0]?.message).toContain("none was given");
  const proceeding = decide(undefined, "proceed");
  expect(proceeding.answer).toBe("allow");
  expect(proceeding.findings[0]?.message).toContain(
    "It continues without one, as the policy says.",
  );
  for (const odd of [undefined, "", "ignore", "Proceed"]) {
    expect(decide(undefined, odd as never).answer, String(odd)).toBe("deny");
  }
});

test("the flag is false by default, and then nothing is parsed or answered [S2-52 I-44]", () => {
  expect(NO_CAPABILITY.reverseThinking).toBe(false);
  const trap = new Proxy(
    {},
    {
      get: () => expect.unreachable("it was read"),
      ownKeys: () => expect.unreachable("it was read"),
    },
  );
  for (const written of [undefined, "{", json({ verdict: "B_wins" }), trap as JsonValue]) {
    const options = { needed: NO_CAPABILITY.reverseThinking, whenMissing: "refuse" } as const;
    expect(decideReverseThinking("t", written, options)).toEqual({
      answer: "allow",
      findings: [],
      deliverable: undefined,
    });
  }
});

test("it becomes a replay event that survives storage [S2-51 I-43]", () => {
  const call = {
    callId: "c1",
    sessionId: "s1",
    tool: "billing.refund",
    at: "2026-11-15T06:00:00.000Z",
  };
  const event = toReplayEvent(good, call);
  expect(event).toEqual({ kind: "counterfactual", ...call, ...good });
  expect(parseStrictJson(canonicalJson(event))).toEqual(event);
});

test("it is independent of checkpoints: the same answer with and without one [S2-53 S2-54]", () => {
  for (const checkpoint of [true, false]) {
    for (const written of [json(), json({ verdict: "B_wins" }), undefined]) {
      const options = { needed: true, whenMissing: "refuse", checkpoint } as const;
      expect(decideReverseThinking("billing.refund", written, options)).toEqual(decide(written));
    }
  }
});
