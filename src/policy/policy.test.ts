import { describe, expect, test } from "vitest";
import { isSallyportError } from "../model/errors.ts";
import type { GateAnswer } from "../model/finding.ts";
import type { JsonValue } from "../util/json.ts";
import type { CallFacts, ResolvedResource } from "./answers.ts";
import { checkPermission, seeCall } from "./decide.ts";
import { compilePolicy, NO_RULES, type Policy, policyHash, type Rule } from "./policy.ts";

const rule = (id: string, more: Partial<Rule> = {}): Rule => ({
  id,
  effect: "allow",
  tool: "crm.update",
  reason: "For the test.",
  ...more,
});
const policyOf = (...rules: readonly Rule[]): Policy => ({ version: "1", rules });
const facts = (more: Partial<CallFacts> = {}): CallFacts => ({
  tool: "crm.update",
  permissionClass: "generic",
  input: {},
  resources: [],
  tenant: "t",
  sessionId: "s",
  chain: ["agent"],
  now: 0,
  ...more,
});
const judge = (policy: Policy, call: CallFacts = facts()): GateAnswer =>
  checkPermission(seeCall(call), { policy: compilePolicy(policy), fileRoots: [] });

test("rules first, then ask; deny beats ask, ask beats allow, in any order [I-19 I-20]", () => {
  const allow = rule("a");
  const ask = rule("b", { effect: "ask" });
  const deny = rule("c", { effect: "deny" });
  expect(judge(policyOf()).answer).toBe("ask");
  expect(judge(policyOf(allow)).answer).toBe("allow");
  expect(judge(policyOf(allow, ask)).answer).toBe("ask");
  expect(judge(policyOf(ask, allow)).answer).toBe("ask");
  for (const rules of [
    [allow, ask, deny],
    [deny, ask, allow],
    [ask, deny, allow],
    [deny, allow],
  ]) {
    expect(judge(policyOf(...rules)).answer).toBe("deny");
  }
});

test("a denial by a rule names the rule, the reason and what to do [I-19]", () => {
  const { findings } = judge(
    policyOf(rule("freeze", { effect: "deny", reason: "Sales are frozen" })),
  );
  expect(findings[0]).toMatchObject({ severity: "hard-deny", policy: "rule.freeze" });
  expect(findings[0]?.message).toContain("Sales are frozen. Nothing was executed.");
});

test("tools match exactly, or by prefix when the rule has a wildcard", () => {
  const answer = (tool: string, called: string) =>
    judge(policyOf(rule("r", { tool })), facts({ tool: called })).answer;
  expect(answer("crm.update", "crm.update")).toBe("allow");
  expect(answer("crm.*", "crm.update")).toBe("allow");
  expect(answer("crm.update*", "crm.update")).toBe("allow");
  for (const called of ["crm.Update", "crm.update2", "crm", "xcrm.update", "crm.update "]) {
    expect(answer("crm.update", called), called).toBe("ask");
  }
  expect(answer("crm.*", "crmx")).toBe("ask");
  expect(judge(policyOf(rule("r", { tool: "*", effect: "deny" }))).answer).toBe("deny");
});

test("a rule with a list of tools applies to each of them and to no other", () => {
  const listed = policyOf(rule("r", { tool: ["crm.update", "mail.*", "crm.update"] }));
  for (const called of ["crm.update", "mail.send", "mail.draft"]) {
    expect(judge(listed, facts({ tool: called })).answer, called).toBe("allow");
  }
  expect(judge(listed, facts({ tool: "crm.delete" })).answer).toBe("ask");
  const denied = policyOf(rule("r", { tool: ["crm.update", "mail.*"], effect: "deny" }));
  expect(judge(denied, facts({ tool: "mail.send" })).answer).toBe("deny");
  for (const tool of [[], [""], ["a", "b c"], [1 as never]]) {
    expect(() => compilePolicy(policyOf(rule("r", { tool })))).toThrow(/needs a tool/);
  }
  expect(() => judge(policyOf(rule("r", { tool: ["crm.update", "*"] })))).toThrow(
    /every call of every tool/,
  );
});

test("a rule with a tool effect applies to tools that declare it; of one that declares nothing a person is asked", () => {
  const outside = (effect: Rule["effect"], toolEffect: Rule["toolEffect"] = "external") =>
    policyOf(rule("r", { tool: effect === "allow" ? "crm.*" : "*", effect, toolEffect }));
  const answer = (policy: ReturnType<typeof policyOf>, effect: NonNullable<CallFacts["effect"]>) =>
    judge(policy, facts({ tool: "crm.update", effect })).answer;
  expect(answer(outside("deny"), "external")).toBe("deny");
  expect(answer(outside("deny"), "write")).toBe("ask");
  expect(answer(outside("deny"), "")).toBe("ask");
  expect(answer(outside("allow", "write"), "write")).toBe("allow");
  expect(answer(outside("allow", "write"), "external")).toBe("ask");
  expect(answer(outside("allow", "write"), "")).toBe("ask");
  // An allowing rule beside it: the missing declaration must not avoid the restriction.
  const both = policyOf(
    rule("a", { tool: "crm.*" }),
    rule("d", { tool: "*", effect: "deny", toolEffect: "external" }),
  );
  expect(answer(both, "write")).toBe("allow");
  expect(answer(both, "")).toBe("ask");
  const reads = policyOf(rule("r", { tool: "*", toolEffect: "read" }));
  expect(answer(reads, "read")).toBe("allow");
  expect(() => judge(outside("allow", "reads" as never))).toThrow(/toolEffect/);
  expect(() => judge(policyOf(rule("r", { tool: "*", toolEffect: "write" })))).toThrow(
    /every call/,
  );
});

test("a rule with a class applies to that class only; a tool without a class counts as generic", () => {
  const generic = policyOf(rule("r", { class: "generic" }));
  expect(judge(generic, facts({ permissionClass: "generic" })).answer).toBe("allow");
  expect(judge(generic, facts({ permissionClass: "" })).answer).toBe("allow");
  expect(judge(policyOf(rule("r", { class: "readonly", effect: "deny" }))).answer).toBe("ask");
});

test("a rule is void from its expiry on", () => {
  const until = { expiresAt: "1970-01-01T00:01:00.000Z" };
  const at = (now: number, effect: Rule["effect"]) =>
    judge(policyOf(rule("r", { ...until, effect })), facts({ now })).answer;
  expect([at(59_999, "allow"), at(60_000, "allow"), at(60_001, "allow")]).toEqual([
    "allow",
    "ask",
    "ask",
  ]);
  expect([at(59_999, "deny"), at(60_000, "deny")]).toEqual(["deny", "ask"]);
});

describe("input tests", () => {
  const answer = (test: object, input: JsonValue) =>
    judge(
      policyOf(rule("r", { input: [test] as unknown as NonNullable<Rule["input"]> })),
      facts({ input }),
    ).answer;
  test.each<[object, JsonValue, string]>([
    [{ at: "$.a", equals: 1 }, { a: 1 }, "allow"],
    [{ at: "$.a", equals: 1 }, { a: "1" }, "ask"],
    [{ at: "$.a", equals: null }, { a: null }, "allow"],
    [{ at: "$.a", equals: null }, {}, "ask"],
    [{ at: "$.a", equals: { x: 1, y: [2] } }, { a: { y: [2], x: 1 } }, "allow"],
    [{ at: "$.a", equals: 0 }, { a: -0 }, "allow"],
    [{ at: "$", equals: 5 }, 5, "allow"],
    [{ at: "$.a", oneOf: ["x", "y"] }, { a: "y" }, "allow"],
    [{ at: "$.a", oneOf: ["x", "y"] }, { a: "z" }, "ask"],
    [{ at: "$.a[1].b", prefix: "inv_" }, { a: [0, { b: "inv_7" }] }, "allow"],
    [{ at: "$.a[1].b", prefix: "inv_" }, { a: [0, { b: "xinv_7" }] }, "ask"],
    [{ at: "$.a[1]", prefix: "x" }, { a: { 1: "x" } }, "ask"],
    [{ at: '$["a"]["1"]', prefix: "x" }, { a: ["", "x"] }, "ask"],
    [{ at: '$["odd key"]', min: 1, max: 10 }, { "odd key": 10 }, "allow"],
    [{ at: '$["odd key"]', min: 1, max: 10 }, { "odd key": 10.5 }, "ask"],
    [{ at: "$.a", max: 100 }, { a: "5" }, "ask"],
    [{ at: "$.a", max: 100 }, {}, "ask"],
    [{ at: "$.a", min: 0 }, { a: null }, "ask"],
    [{ at: "$.constructor.name", prefix: "O" }, {}, "ask"],
    [{ at: "$.__proto__", equals: {} }, {}, "ask"],
    [{ at: "$.a.length", min: 0 }, { a: [1] }, "ask"],
    [{ at: "$.a.length", min: 0 }, { a: "text" }, "ask"],
  ])("%j for %j gives %s", (test, input, expected) => {
    expect(answer(test, input)).toBe(expected);
  });

  test("all tests of a rule must hold", () => {
    const both = policyOf(
      rule("r", {
        input: [
          { at: "$.a", equals: 1 },
          { at: "$.b", max: 5 },
        ],
      }),
    );
    expect(judge(both, facts({ input: { a: 1, b: 5 } })).answer).toBe("allow");
    expect(judge(both, facts({ input: { a: 1, b: 6 } })).answer).toBe("ask");
    expect(judge(both, facts({ input: { a: 2, b: 5 } })).answer).toBe("ask");
  });
});

describe("a rule that is not exactly understood is rejected at compile time [T27]", () => {
  const bad: readonly (readonly [string, object])[] = [
    ["an unknown key", { expireAt: "2030-01-01T00:00:00.000Z" }],
    ["a regular expression", { command: [/rm.*/] }],
    ["a function", { input: () => true }],
    ["an unknown effect", { effect: "permit" }],
    ["no reason", { reason: " " }],
    ["no tool", { tool: "" }],
    ["a wildcard inside a tool", { tool: "a*b" }],
    ["two wildcards", { tool: "a**" }],
    ["a tool outside ASCII", { tool: "crm.upd\u0430te" }],
    ["an unknown class", { class: "shell" }],
    ["the empty class", { class: "" }],
    ["two subjects", { path: "/a", host: "example.com" }],
    ["a subject the class does not look at", { class: "file", host: "example.com" }],
    ["an allowance without a subject", { class: "webfetch" }],
    ["an allowance for everything", { tool: "*" }],
    ["access without a path", { access: "read" }],
    ["an unknown access", { path: "/a", access: "execute" }],
    ["a relative path", { path: "a/b" }],
    ["a path with a parent step", { path: "/a/../b" }],
    ["a path with half a double star", { path: "/a/**b" }],
    ["a host with a path", { host: "example.com/x" }],
    ["a host with a user", { host: "me@example.com" }],
    ["a host that is a whole country", { host: "*.com" }],
    ["a star in the middle of a host", { host: "a.*.com" }],
    ["names below an address", { host: "*.1.2.3.4" }],
    ["an empty command", { command: [] }],
    ["a command as one text", { command: "ls -la" }],
    ["a star inside a word", { command: ["ls", "a*b"] }],
    ["options without a command", { options: ["-l"] }],
    ["options of a denial", { effect: "deny", command: ["ls"], options: ["-l"] }],
    ["an empty input", { input: [] }],
    ["a test that asks for nothing", { input: [{ at: "$.a" }] }],
    ["a test with an unknown key", { input: [{ at: "$.a", matches: "^a" }] }],
    ["a test with a bad path", { input: [{ at: "a.b", equals: 1 }] }],
    ["a test with a broken path", { input: [{ at: "$.a[", equals: 1 }] }],
    ["a test with a negative index", { input: [{ at: "$[-1]", equals: 1 }] }],
    ["equals and oneOf", { input: [{ at: "$", equals: 1, oneOf: [1] }] }],
    ["an empty oneOf", { input: [{ at: "$", oneOf: [] }] }],
    ["an empty prefix", { input: [{ at: "$", prefix: "" }] }],
    ["a bound that is no number", { input: [{ at: "$", max: "9" }] }],
    ["a bound that is not finite", { input: [{ at: "$", max: Number.NaN }] }],
    ["an expiry in words", { expiresAt: "tomorrow" }],
    ["an expiry without a zone", { expiresAt: "2030-01-01T00:00:00.000" }],
    ["an expiry that does not exist", { expiresAt: "2030-02-30T00:00:00.000Z" }],
  ];
  test.each(bad)("%s", (_, part) => {
    const broken = policyOf({ ...rule("broken"), ...part } as Rule);
    try {
      compilePolicy(broken);
      expect.unreachable("was accepted");
    } catch (error) {
      expect(isSallyportError(error, "invalid_input"), String(error)).toBe(true);
    }
  });

  test("the error names the rule and the problem", () => {
    const broken = policyOf(rule("fine"), rule("odd", { path: "a" }));
    expect(() => compilePolicy(broken)).toThrow(
      /Rule "odd" has a path that must be an absolute path/,
    );
  });

  test("two rules of one id, no version, no rules", () => {
    expect(() => compilePolicy(policyOf(rule("a"), rule("a")))).toThrow(/the id of another rule/);
    expect(() => compilePolicy({ version: "", rules: [] })).toThrow(/version/);
    expect(() => compilePolicy({ version: "1" } as unknown as Policy)).toThrow(/rules/);
    expect(() => compilePolicy({ ...NO_RULES, rule: [] } as unknown as Policy)).toThrow(
      /unknown key/,
    );
  });

  test("patterns with many wildcards are matched in linear steps", () => {
    const stars = Array.from({ length: 50 }, (_, index) => (index % 2 ? "a" : "**")).join("/");
    const path = `/${stars}/b`;
    const deep = `/${"a/".repeat(2000)}c`;
    const compiled = compilePolicy(
      policyOf(
        rule("r", { path }),
        rule("s", { command: ["x", ...Array(90).fill("**"), "y"], effect: "deny" }),
      ),
    );
    const resources: readonly ResolvedResource[] = [
      { kind: "file", path: deep, resolved: deep, access: "read" },
      { kind: "command", command: `x ${"z ".repeat(150)}` },
    ];
    const start = process.cpuUsage();
    checkPermission(seeCall(facts({ resources, permissionClass: "file" })), {
      policy: compiled,
      fileRoots: [],
    });
    const { user, system } = process.cpuUsage(start);
    expect((user + system) / 1000).toBeLessThan(500);
  });
});

test("a rule for this exact tool that cannot be evaluated asks a person", () => {
  const hidden = policyOf(rule("allow"), rule("no", { effect: "deny", path: "/prod/**" }));
  expect(judge(hidden).answer).toBe("ask");
  const far = policyOf(rule("allow"), rule("no", { effect: "deny", tool: "*", path: "/prod/**" }));
  expect(judge(far).answer).toBe("allow");
  const over = policyOf(
    rule("allow"),
    rule("no", { effect: "deny", path: "/prod/**", expiresAt: "1969-01-01T00:00:00.000Z" }),
  );
  expect(judge(over).answer).toBe("allow");
});

test("denials by path, host and command apply to every class", () => {
  const rules = policyOf(
    rule("allow"),
    rule("path", { effect: "deny", tool: "*", path: "/prod/**" }),
    rule("host", { effect: "deny", tool: "*", host: "*.prod.dev" }),
    rule("command", { effect: "deny", tool: "*", command: ["kubectl"] }),
  );
  const withResource = (
    resource: ResolvedResource,
    permissionClass: CallFacts["permissionClass"],
  ) => judge(rules, facts({ resources: [resource], permissionClass })).answer;
  for (const permissionClass of ["generic", "readonly", ""] as const) {
    expect(
      withResource(
        { kind: "file", path: "x", resolved: "/prod/x", access: "read" },
        permissionClass,
      ),
    ).toBe("deny");
    expect(withResource({ kind: "url", url: "https://db.prod.dev/" }, permissionClass)).toBe(
      "deny",
    );
    expect(withResource({ kind: "command", command: "ls | kubectl get x" }, permissionClass)).toBe(
      "deny",
    );
  }
});

test("the hash is the identity of the content, and nothing else [T5]", () => {
  const policy = policyOf(rule("a", { input: [{ at: "$.a", equals: 1 }] }));
  const reordered = JSON.parse(
    '{"rules":[{"reason":"For the test.","input":[{"equals":1,"at":"$.a"}],"tool":"crm.update","effect":"allow","id":"a"}],"version":"1"}',
  );
  expect(policyHash(reordered)).toBe(policyHash(policy));
  expect(compilePolicy(policy).hash).toBe(policyHash(policy));
  const others = [
    policyOf(rule("b", { input: [{ at: "$.a", equals: 1 }] })),
    policyOf(rule("a", { input: [{ at: "$.a", equals: "1" }] })),
    { ...policy, version: "2" },
    policyOf(...policy.rules, rule("b")),
  ];
  expect(new Set([policy, ...others].map(policyHash)).size).toBe(5);
});
