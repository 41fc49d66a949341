import { describe, expect, test } from "vitest";
import { isSallyportError } from "../model/errors.ts";
import { factorFor, ONE_PERSON, type Requirement, type Vote } from "../model/interaction.ts";
import type { SafetyClass } from "../tools/tool.ts";
import {
  checkReviewRules,
  type RatedCall,
  type ReviewDefaults,
  type ReviewRule,
  reviewFor,
} from "./review-rules.ts";

const DEFAULTS: ReviewDefaults = { deadlineMs: 1_000 };
const call = (tool: string, safetyClass: SafetyClass = "reversible"): RatedCall => ({
  tool,
  safetyClass,
});
const security: Requirement = [{ name: "security", count: 1 }];

function reviewed(calls: readonly RatedCall[], rules: readonly ReviewRule[], defaults = DEFAULTS) {
  const answer = reviewFor(calls, rules, defaults);
  if (!answer.possible) throw new Error(answer.problem);
  return answer.review;
}

function problem(calls: readonly RatedCall[], rules: readonly ReviewRule[]) {
  const answer = reviewFor(calls, rules, DEFAULTS);
  return answer.possible ? undefined : answer.problem;
}

describe("which rules apply to a call", () => {
  test("none: one person, within the default deadline", () => {
    expect(reviewed([call("a")], [])).toEqual({ requires: ONE_PERSON, deadlineMs: 1_000 });
    const defaults = { ...DEFAULTS, requires: security, assignedTo: "sec" };
    expect(reviewed([call("a")], [], defaults)).toEqual({
      requires: security,
      deadlineMs: 1_000,
      assignedTo: "sec",
    });
  });

  test.each<[Omit<ReviewRule, "requires">, RatedCall, boolean]>([
    [{}, call("any"), true],
    [{ tools: ["pay.*", "x"] }, call("pay.refund"), true],
    [{ tools: ["pay.*", "x"] }, call("x"), true],
    [{ tools: ["pay.*", "x"] }, call("xy"), false],
    [{ tools: ["pay.*", "x"] }, call("a.pay.b"), false],
    [{ safetyClasses: ["irreversible"] }, call("a", "irreversible"), true],
    [{ safetyClasses: ["irreversible"] }, call("a", "reversible"), false],
    [{ safetyClasses: ["irreversible"], tools: ["b"] }, call("a", "irreversible"), false],
    // An unknown class counts as the most dangerous.
    [{ safetyClasses: ["irreversible"] }, call("a", "harmless" as never), true],
  ])("%j about %j: %s", (rule, asked, expected) => {
    const { requires } = reviewed([asked], [{ ...rule, requires: security }]);
    expect(requires).toEqual(expected ? security : ONE_PERSON);
  });
});

describe("a bundle", () => {
  test("gets the strictest of all rules for any of its calls", () => {
    const rules: ReviewRule[] = [
      {
        tools: ["pay.*"],
        requires: [{ name: "finance", count: 1, from: ["ada", "bob", "cy"] }],
        deadlineMs: 500,
        escalation: { afterMs: 400, to: "cfo" },
      },
      {
        safetyClasses: ["irreversible"],
        requires: [
          { name: "security", count: 1 },
          { name: "finance", count: 2, from: ["bob", "cy", "dan"] },
        ],
        deadlineMs: 900,
        escalation: { afterMs: 300, to: "ciso" },
        assignedTo: "board",
      },
    ];
    const both = {
      requires: [
        { name: "finance", count: 2, from: ["bob", "cy"] },
        { name: "security", count: 1 },
      ],
      deadlineMs: 500,
      escalation: { afterMs: 300, to: "ciso" },
      assignedTo: "board",
    };
    const calls = [call("pay.refund"), call("db.drop", "irreversible")];
    expect(reviewed(calls, rules)).toEqual(both);
    expect(reviewed(calls.toReversed(), rules.toReversed())).toEqual(both);
    expect(reviewed([call("pay.all", "irreversible")], rules)).toEqual(both);
    expect(reviewed([call("pay.refund")], rules)).toEqual({
      requires: rules[0]?.requires,
      deadlineMs: 500,
      escalation: { afterMs: 400, to: "cfo" },
    });
  });

  test("with a call without a rule adds the defaults", () => {
    const rules: ReviewRule[] = [{ tools: ["pay"], requires: security, deadlineMs: 9_000 }];
    expect(reviewed([call("pay")], rules).deadlineMs).toBe(9_000);
    // An approval by any person is contained in one by named people; two approvals are not.
    expect(reviewed([call("pay"), call("other")], rules)).toEqual({
      requires: security,
      deadlineMs: 1_000,
    });
    const two: Requirement = [{ name: "review", count: 2 }];
    expect(
      reviewed([call("pay"), call("other")], rules, { ...DEFAULTS, requires: two }).requires,
    ).toEqual([...security, ...two]);
    const ada: Requirement = [{ name: "review", count: 1, from: ["ada"] }];
    expect(
      reviewed([call("pay"), call("other")], rules, { ...DEFAULTS, requires: ada }).requires,
    ).toEqual([...ada, ...security]);
  });

  test("whose escalation would come after its deadline has no escalation", () => {
    const rules: ReviewRule[] = [
      { requires: security, deadlineMs: 100 },
      { requires: security, escalation: { afterMs: 100, to: "late" } },
    ];
    expect(reviewed([call("a")], rules)).toEqual({ requires: security, deadlineMs: 100 });
  });

  test("puts the narrowest factor first, so that its only approver is not used for another", () => {
    const rules: ReviewRule[] = [
      { requires: [{ name: "review", count: 1 }] },
      { requires: [{ name: "security", count: 1, from: ["ada"] }] },
    ];
    const { requires } = reviewed([call("a")], rules);
    expect(factorFor("ada", requires, [])?.name).toBe("security");
    const votes: Vote[] = [{ by: "ada", factor: "security" }];
    expect(factorFor("bob", requires, votes)?.name).toBe("review");
  });

  test("that no set of people could approve is reported as a problem", () => {
    const by = (name: string, count: number, from?: readonly string[]): ReviewRule => ({
      requires: [{ name, count, ...(from === undefined ? {} : { from }) }],
    });
    const a = [call("a")];
    expect(problem(a, [by("s", 1, ["ada"]), by("s", 1, ["bob"])])).toMatch(/names only 0/);
    expect(problem(a, [by("s", 2, ["ada", "bob"]), by("s", 1, ["ada"])])).toMatch(/needs 2 people/);
    expect(problem(a, [by("s", 1, ["ada"]), by("t", 1, ["ada"])])).toMatch(/counts once/);
    expect(problem(a, [by("s", 2, ["ada", "bob"]), by("t", 1, ["ada", "bob"])])).toMatch(/once/);
    // Only when cy takes t is bob free for u.
    const three = [
      by("s", 1, ["ada", "bob"]),
      by("t", 1, ["bob", "cy"]),
      by("u", 1, ["bob", "ada"]),
    ];
    expect(problem(a, three)).toBeUndefined();
    expect(problem(a, [by("s", 1, ["ada", "bob"]), by("t", 1, ["ada"])])).toBeUndefined();
    expect(problem(a, [by("s", 1, ["ada"]), by("t", 9)])).toBeUndefined();
    const two = ["finance", "legal"].map((assignedTo) => ({ requires: security, assignedTo }));
    expect(problem(a, two)).toMatch(/different people \(finance, legal\)/);
    expect(problem([], [])).toMatch(/nothing to review/);
  });
});

describe("rules are checked once, at start", () => {
  test("good ones pass", () => {
    checkReviewRules([]);
    checkReviewRules(
      [
        {
          tools: ["pay.*"],
          safetyClasses: ["irreversible", "reversible"],
          requires: [{ name: "s", count: 2, from: ["ada", "bob"] }],
          deadlineMs: 10,
          escalation: { afterMs: 9, to: "cy" },
          assignedTo: "sec",
        },
      ],
      DEFAULTS,
    );
  });

  test.each<[string, unknown]>([
    ["no rule", null],
    ["nobody has to say yes", {}],
    ["no factor", { requires: [] }],
    ["a factor that is none", { requires: ["ada"] }],
    ["nobody at all", { requires: [{ name: "s", count: 0 }] }],
    ["too few people", { requires: [{ name: "s", count: 2, from: ["ada"] }] }],
    ["no people", { requires: [{ name: "s", count: 1, from: [] }] }],
    ["people that are one text", { requires: [{ name: "s", count: 1, from: "ada" }] }],
    [
      "one person for two factors",
      {
        requires: [
          { name: "s", count: 1, from: ["ada"] },
          { name: "t", count: 1, from: ["ada"] },
        ],
      },
    ],
    ["a word that means nothing", { requires: security, tool: ["x"] }],
    ["no tools", { requires: security, tools: [] }],
    ["tools that are one text", { requires: security, tools: "pay.*" }],
    ["a class that does not exist", { requires: security, safetyClasses: ["external"] }],
    ["no deadline", { requires: security, deadlineMs: 0 }],
    ["a deadline that is no number", { requires: security, deadlineMs: "1" }],
    ["an escalation too late", { requires: security, escalation: { afterMs: 1_000, to: "x" } }],
    ["an escalation to nobody", { requires: security, escalation: { afterMs: 1, to: "" } }],
    ["an assignment to nobody", { requires: security, assignedTo: "" }],
    ["not data", { requires: security, tools: [() => true] }],
  ])("refused: %s", (_, rule) => {
    expect(() => checkReviewRules([rule as ReviewRule], DEFAULTS)).toThrow(/review rule 1/);
    try {
      checkReviewRules([rule as ReviewRule], DEFAULTS);
    } catch (error) {
      expect(isSallyportError(error, "invalid_input")).toBe(true);
    }
  });

  test("so are the defaults and the list itself", () => {
    expect(() => checkReviewRules({} as never)).toThrow(/as a list/);
    expect(() => checkReviewRules([], { deadlineMs: -1 })).toThrow(/deadline/);
    expect(() => checkReviewRules([], {} as never)).toThrow(/deadline/);
    expect(() => checkReviewRules([], { ...DEFAULTS, requires: [] })).toThrow(/review defaults/);
  });
});
