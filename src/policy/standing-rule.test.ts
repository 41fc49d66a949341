import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type InputPattern,
  type StandingRule,
  type StandingRuleDraft,
  standingRuleProblem,
  type ValueTest,
} from "../model/standing-rule.ts";
import type { Tool } from "../tools/tool.ts";
import { fromIso } from "../util/clock.ts";
import type { JsonValue } from "../util/json.ts";
import { matchesRule, type RuledCall, ruledTool } from "./review-rules.ts";

const UNTIL = "2026-12-01T00:00:00.000Z";

function rule(over: Partial<StandingRule> = {}): StandingRule {
  return {
    id: "rule-1",
    tool: "billing.refund",
    definitionHash: "d1",
    pattern: { invoice: { like: "INV-*" }, cents: { atLeast: 1, atMost: 500 } },
    workingDirectory: "",
    reason: "small refunds",
    status: "active",
    madeBy: "ada",
    confirmedBy: "",
    uses: 0,
    endedBy: "",
    endReason: "",
    expiresAt: UNTIL,
    createdAt: "2026-11-15T00:00:00.000Z",
    updatedAt: "2026-11-15T00:00:00.000Z",
    version: 1,
    ord: 1,
    ...over,
  };
}

function call(over: Partial<RuledCall> = {}): RuledCall {
  return {
    tool: "billing.refund",
    definitionHash: "d1",
    safetyClass: "reversible",
    needsExact: false,
    input: { invoice: "INV-7", cents: 500 },
    workingDirectory: "/srv",
    askers: ["agent:bot", "bob"],
    now: fromIso(UNTIL),
    ...over,
  };
}

function draft(over: Partial<StandingRuleDraft> = {}): StandingRuleDraft {
  const { tool, definitionHash, safetyClass, needsExact } = call();
  const { pattern, workingDirectory, reason } = rule();
  const facts = { tool, definitionHash, safetyClass, needsExact, destructive: false };
  return { ...facts, pattern, workingDirectory, reason, forMs: 60_000, ...over };
}

const passes = (test: ValueTest, value: JsonValue) =>
  matchesRule(rule({ pattern: { v: test } }), call({ input: { v: value } }));

/** A shell: one text determines its whole effect. */
const shell = { tool: "shell.run", needsExact: true, workingDirectory: "/srv" };
const shellRule = (command: string) =>
  rule({ tool: "shell.run", workingDirectory: "/srv", pattern: { command: { equals: command } } });
const runs = (allowed: string, command: string) =>
  matchesRule(shellRule(allowed), call({ ...shell, input: { command } }));
const problemOf = (test: ValueTest) =>
  standingRuleProblem(draft({ ...shell, pattern: { command: test } }));

describe("what products of this kind got wrong", () => {
  test("a rule is about the command, not about the shell that runs it [R4]", () => {
    expect(runs("sh -c 'ls'", "sh -c 'ls'")).toBe(true);
    for (const other of ["sh", "sh -c 'rm -rf /'", "sh -c 'ls'; rm -rf /", "sh -c 'ls' "]) {
      expect(runs("sh -c 'ls'", other), other).toBe(false);
    }
    expect(problemOf({ like: "sh -c *" })).toMatch(/must name the value/);
    expect(problemOf({ any: true })).toMatch(/must name the value/);
    expect(problemOf({ oneOf: ["ls", "pwd"] })).toBeUndefined();
  });

  test("a rule for env does not carry a shell behind it [R5]", () => {
    expect(runs("env", "env")).toBe(true);
    expect(runs("env", "env sh -c 'rm -rf /'")).toBe(false);
    // Nor where a tool does not declare that it runs commands.
    expect(passes({ like: "env *" }, "env sh -c id")).toBe(false);
    expect(passes({ like: "env*" }, "env;id")).toBe(false);
  });

  test("trust in one login shell line is not trust in the next [R6]", () => {
    expect(runs("sh -lc 'make'", "sh -lc 'make'")).toBe(true);
    expect(runs("sh -lc 'make'", "sh -lc 'make deploy'")).toBe(false);
    expect(runs("sh -lc 'make'", "sh -c 'make'")).toBe(false);
  });

  test("trust in one applet of busybox is not trust in busybox [R7]", () => {
    expect(runs("busybox ls", "busybox ls")).toBe(true);
    expect(runs("busybox ls", "busybox sh")).toBe(false);
    expect(runs("busybox ls", "busybox")).toBe(false);
  });

  test("a bare name is not the same name in this folder, nor in another folder, nor another tool of that name [R8]", () => {
    expect(runs("deploy", "deploy")).toBe(true);
    expect(runs("deploy", "./deploy")).toBe(false);
    expect(runs("./deploy", "deploy")).toBe(false);
    const asked = { ...shell, input: { command: "./deploy" } };
    expect(matchesRule(shellRule("./deploy"), call(asked))).toBe(true);
    const others: Partial<RuledCall>[] = [
      { workingDirectory: "/tmp" },
      { workingDirectory: "" },
      { definitionHash: "d2" },
      { tool: "shell.Run" },
      { tool: "other.shell.run" },
    ];
    for (const other of others) {
      expect(matchesRule(shellRule("./deploy"), call({ ...asked, ...other }))).toBe(false);
    }
    const anywhere = { ...shellRule("./deploy"), workingDirectory: "" };
    expect(matchesRule(anywhere, call(asked))).toBe(false);
    expect(standingRuleProblem(draft({ ...shell, workingDirectory: "" }))).toMatch(/directory/);
  });

  test("a rule never approves a call that its author requested [T6]", () => {
    expect(matchesRule(rule(), call())).toBe(true);
    expect(matchesRule(rule({ madeBy: "bob" }), call())).toBe(false);
    expect(matchesRule(rule({ madeBy: "agent:bot" }), call())).toBe(false);
  });
});

describe("a pattern", () => {
  test.each<[ValueTest, JsonValue[], JsonValue[]]>([
    [{ equals: "a" }, ["a"], ["A", "a ", "", 1, null, ["a"]]],
    [{ equals: { b: [1], a: null } }, [{ a: null, b: [1] }], [{ a: null, b: ["1"] }, { b: [1] }]],
    [{ oneOf: ["a", 1, null] }, ["a", 1, null], ["1", true, false, ["a"], {}]],
    [{ atMost: 5 }, [5, 0, -9], [5.001, "5", "1", null, true, [1]]],
    [{ atLeast: 5 }, [5, 99], [4.99, "9", null, true, [9]]],
    [{ atLeast: 1, atMost: 2 }, [1, 1.5, 2], [0, 3, "1"]],
    [{ like: "INV-*" }, ["INV-", "INV-7", "INV-7.a_b+c"], ["inv-7", "xINV-7", "INV-7/../8"]],
    [{ like: "*@acme.test" }, ["ada@acme.test"], ["a@evil.test,b@acme.test", "a b@acme.test", 7]],
    [
      { like: "*" },
      ["main", "über"],
      ["--force", "a/b", "a\\b", "..", "a\n", "$x", "`x`", "\ud800"],
    ],
    [{ any: true }, ["", 0, false, null, "--force"], [{}, [], { a: 1 }]],
  ])("test %j", (test, yes, no) => {
    for (const value of yes) expect(passes(test, value), JSON.stringify(value)).toBe(true);
    for (const value of no) expect(passes(test, value), JSON.stringify(value)).toBe(false);
  });

  test("covers every property: an untested or missing property is no match", () => {
    const pattern: InputPattern = { a: { equals: 1 }, b: { any: true, optional: true } };
    const match = (input: JsonValue) => matchesRule(rule({ pattern }), call({ input }));
    expect(match({ a: 1 })).toBe(true);
    expect(match({ a: 1, b: "x" })).toBe(true);
    expect(match({ b: "x" })).toBe(false);
    expect(match({ a: 1, c: null })).toBe(false);
    expect(match({ a: 1, b: {} })).toBe(false);
    expect(match(JSON.parse('{"a":1,"__proto__":1}'))).toBe(false);
    expect(match(JSON.parse('{"a":1,"toString":1}'))).toBe(false);
    for (const input of [null, [], [1], "a", 1, true]) expect(match(input)).toBe(false);
    expect(matchesRule(rule({ pattern: {} }), call({ input: {} }))).toBe(true);
    expect(matchesRule(rule({ pattern: {} }), call({ input: [] }))).toBe(false);
  });

  test("of equals matches that input and no other", () => {
    // Few values, many of them alike, so that equal inputs are met as often as nearly equal ones.
    const value = fc.constantFrom<JsonValue[]>(
      0,
      1,
      "1",
      "",
      null,
      false,
      [],
      [1],
      ["1"],
      {},
      { a: 1, b: 2 },
    );
    const input = fc.dictionary(fc.constantFrom("a", "b"), value, { maxKeys: 2 });
    let met = 0;
    fc.assert(
      fc.property(input, input, (one, other) => {
        const pattern = Object.fromEntries(
          Object.entries(one).map(([name, equals]) => [name, { equals }]),
        );
        const matches = matchesRule(rule({ pattern }), call({ input: { ...other } }));
        const isEqual = isDeepStrictEqual({ ...one }, { ...other });
        expect(matches).toBe(isEqual);
        if (isEqual) met += 1;
      }),
      { numRuns: process.env["SCALE"] === "full" ? 20_000 : 1_000 },
    );
    expect(met).toBeGreaterThan(5);
  });
});

describe("invalid input is not an approval", () => {
  test("a rule that has ended, by status or by time", () => {
    expect(matchesRule(rule({ status: "revoked" }), call())).toBe(false);
    expect(matchesRule(rule(), call({ now: fromIso(UNTIL) + 1 }))).toBe(false);
    for (const now of [Number.NaN, -Infinity, 1.5, "0" as never, undefined as never]) {
      expect(matchesRule(rule(), call({ now })), String(now)).toBe(false);
    }
    for (const expiresAt of ["", "never", "2027", undefined as never]) {
      expect(matchesRule(rule({ expiresAt }), call()), expiresAt).toBe(false);
    }
  });

  test("a class that cannot be covered, whatever was said when the rule was made", () => {
    expect(matchesRule(rule(), call({ safetyClass: "read" }))).toBe(true);
    for (const safetyClass of ["irreversible", "", "Reversible", undefined as never]) {
      expect(matchesRule(rule(), call({ safetyClass })), safetyClass).toBe(false);
    }
  });

  test("a wildcard for a tool that needs exact inputs, however it came into the store", () => {
    const wide = rule({ workingDirectory: "/srv", pattern: { v: { any: true } } });
    expect(matchesRule(wide, call({ input: { v: 1 } }))).toBe(true);
    expect(matchesRule(wide, call({ input: { v: 1 }, needsExact: true }))).toBe(false);
    expect(matchesRule(wide, call({ input: { v: 1 }, needsExact: undefined as never }))).toBe(
      false,
    );
  });

  test("a test that is not wholly understood", () => {
    const odd: unknown[] = [
      {},
      { optional: true },
      { any: false },
      { any: true, except: "x" },
      { any: true, optional: "no" },
      { like: "*", atMost: 1 },
      { like: "" },
      { like: 1 },
      { oneOf: [] },
      { oneOf: "abc" },
      { oneOf: [{}] },
      { atMost: "9" },
      { atMost: null },
      { equals: "\ud800" },
      { equals: undefined },
      null,
      true,
      [],
      "x",
    ];
    for (const test of odd) {
      for (const value of ["x", 1, null]) {
        expect(passes(test as ValueTest, value), JSON.stringify(test)).toBe(false);
      }
      const pattern = { v: test } as InputPattern;
      expect(standingRuleProblem(draft({ pattern })), JSON.stringify(test)).toBeDefined();
    }
    for (const pattern of [null, [], "x", undefined]) {
      expect(matchesRule(rule({ pattern: pattern as never }), call({ input: {} }))).toBe(false);
    }
  });

  test("empty identities, missing askers and inputs that are not JSON", () => {
    expect(matchesRule(rule({ tool: "" }), call({ tool: "" }))).toBe(false);
    expect(matchesRule(rule({ definitionHash: "" }), call({ definitionHash: "" }))).toBe(false);
    expect(matchesRule(rule(), call({ askers: undefined as never }))).toBe(false);
    const pattern: InputPattern = { v: { any: true } };
    for (const v of [Number.NaN, undefined, 2 ** 60, () => 1, new Date(0), "\ud800"]) {
      expect(matchesRule(rule({ pattern }), call({ input: { v } as never })), String(v)).toBe(
        false,
      );
    }
  });
});

describe("a rule to be made", () => {
  test("is refused for irreversible and destructive tools, with the reason", () => {
    expect(standingRuleProblem(draft())).toBeUndefined();
    expect(standingRuleProblem(draft({ safetyClass: "irreversible" }))).toMatch(
      /cannot be undone, so no rule can cover it/,
    );
    expect(standingRuleProblem(draft({ safetyClass: "" }))).toMatch(/no rule can cover/);
    expect(standingRuleProblem(draft({ destructive: true }))).toMatch(/destroys data/);
    expect(standingRuleProblem(draft({ destructive: undefined as never }))).toMatch(/destroys/);
  });

  test("needs a reason and an end within 90 days", () => {
    const day = 24 * 3_600_000;
    expect(standingRuleProblem(draft({ forMs: 90 * day }))).toBeUndefined();
    for (const forMs of [90 * day + 1, 0, -1, 1.5, Number.NaN, Infinity, undefined as never]) {
      expect(standingRuleProblem(draft({ forMs })), String(forMs)).toMatch(/at most 90 days/);
    }
    for (const reason of ["", "  ", "x".repeat(100_000), undefined as never]) {
      expect(standingRuleProblem(draft({ reason }))).toMatch(/Say why/);
    }
    expect(standingRuleProblem(draft({ tool: "" }))).toMatch(/Name the tool/);
    expect(standingRuleProblem(draft({ definitionHash: "" }))).toMatch(/definition/);
  });

  test("takes its facts from the tool itself", () => {
    const none = ruledTool(plainTool());
    expect(none).toMatchObject({ tool: "x", safetyClass: "irreversible", needsExact: false });
    const generateUndo = () => {
      throw new Error("never asked");
    };
    const undoable = ruledTool(plainTool({ generateUndo }));
    expect(undoable).toMatchObject({ safetyClass: "reversible", destructive: false });
    expect(undoable.definitionHash).not.toBe(none.definitionHash);
    expect(ruledTool(plainTool(), { server: "s" }).definitionHash).not.toBe(none.definitionHash);
    for (const permissionClass of ["bash", "file", "webfetch"] as const) {
      expect(ruledTool(plainTool({ metadata: { permissionClass } })).needsExact).toBe(true);
    }
    expect(ruledTool(plainTool({ resources: () => [] })).needsExact).toBe(true);
    expect(ruledTool(plainTool({ metadata: { destructive: true } })).destructive).toBe(true);
  });
});

function plainTool(more: Partial<Tool> = {}): Tool {
  return {
    name: "x",
    description: () => "does x",
    inputSchema: { type: "object" },
    parseInput: (value) => ({ ok: true, value }),
    execute: async () => ({ text: "done" }),
    ...more,
  };
}
