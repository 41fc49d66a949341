import fc from "fast-check";
import { expect, test } from "vitest";
import type { GateAnswer } from "../model/finding.ts";
import type { JsonValue } from "../util/json.ts";
import type { CallFacts, ResolvedResource } from "./answers.ts";
import { checkPermission, seeCall } from "./decide.ts";
import { candidates, commandKey, compilePolicy, type Policy, type Rule } from "./policy.ts";

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

const someRule = (id: string) =>
  fc.record({
    id: fc.constant(id),
    effect: fc.constantFrom<Rule["effect"]>("allow", "ask", "deny"),
    tool: fc.constantFrom("bash", "b*", "bas*", "edit", "*"),
    reason: fc.constant("Random."),
  });
// biome-ignore format: a list
const subject = fc.constantFrom<Partial<Rule>>(
  {}, { command: ["ls", "**"], folder: "/work" }, { command: ["rm"], folder: "/work" }, { command: ["git", "push"], folder: "/work" },
  { command: ["rm"] }, { command: ["./x"], folder: "/other" }, { path: "/work/**" }, { path: "/**/a" },
  { path: "/work/a", access: "write" }, { host: "example.com" }, { host: "*.example.com" }, { input: [{ at: "$.n", max: 5 }] }, { input: [{ at: "$.k", equals: "v" }] },
  { input: [{ at: "$.k", oneOf: ["v", "w"] }], command: ["ls", "**"], folder: "/work" }, { expiresAt: "1970-01-01T00:00:00.005Z" }, { class: "bash", command: ["ls"], folder: "/work" },
);
const randomRules = fc
  .array(fc.nat(), { maxLength: 8 })
  .chain((numbers) =>
    fc.tuple(
      ...numbers.map((_, index) =>
        fc
          .tuple(someRule(`r${index}`), subject)
          .map(([base, more]): Rule => ({ ...base, ...more })),
      ),
    ),
  )
  .map((rules) => rules.filter((one) => isFine(one)));
const randomCall = fc.record({
  tool: fc.constantFrom("bash", "edit", "batch"),
  permissionClass: fc.constantFrom<CallFacts["permissionClass"]>(
    "bash",
    "file",
    "webfetch",
    "readonly",
    "generic",
    "",
  ),
  input: fc.constantFrom<JsonValue>({}, { n: 3 }, { n: 9 }, { k: "v" }, { k: "w", n: 5 }),
  resources: fc.subarray<ResolvedResource>([
    { kind: "command", command: "ls a", folder: "/work" },
    { kind: "command", command: "ls; rm x", folder: "/work" },
    { kind: "command", command: "git push", folder: "/work/below" },
    { kind: "command", command: "./x" },
    { kind: "file", path: "a", resolved: "/work/a", access: "write" },
    { kind: "file", path: "b", resolved: "/other/b", access: "read" },
    { kind: "url", url: "https://example.com/" },
    { kind: "url", url: "https://a.example.com/" },
    { kind: "other", id: "x", access: "write" },
  ]),
  now: fc.constantFrom(0, 5, 10),
});

function isFine(one: Rule): boolean {
  try {
    compilePolicy(policyOf(one));
    return true;
  } catch {
    return false;
  }
}

test("in any policy a denial wins, and adding an allowance never turns it into something else [I-19]", () => {
  let denied = 0;
  fc.assert(
    fc.property(randomRules, randomRules, randomCall, (rules, more, call) => {
      const before = judge(policyOf(...rules), facts(call)).answer;
      const allowances = more
        .filter(({ effect }) => effect === "allow")
        .map((one) => ({ ...one, id: `more-${one.id}` }));
      const after = judge(policyOf(...allowances, ...rules), facts(call)).answer;
      if (before === "deny") {
        denied += 1;
        expect(after).toBe("deny");
      }
      if (before === "ask") expect(["ask", "allow"]).toContain(after);
      if (before === "allow") expect(after).toBe("allow");
      const denials = more
        .filter(({ effect }) => effect === "deny")
        .map((one) => ({ ...one, id: `deny-${one.id}` }));
      const stricter = judge(policyOf(...rules, ...denials), facts(call)).answer;
      const order = ["deny", "ask", "allow"];
      expect(order.indexOf(stricter)).toBeLessThanOrEqual(order.indexOf(before));
    }),
    { numRuns: 1500 },
  );
  expect(denied).toBeGreaterThan(100);
});

test("the index finds the same rules as a linear scan [I-19]", () => {
  fc.assert(
    fc.property(randomRules, randomCall, (rules, call) => {
      const alone = rules
        .filter(({ effect }) => effect !== "allow")
        .map((one) => judge(policyOf(one), facts({ ...call, permissionClass: "readonly" })).answer);
      const together = judge(
        policyOf(...rules.filter(({ effect }) => effect !== "allow")),
        facts({ ...call, permissionClass: "readonly" }),
      ).answer;
      const strictest = ["deny", "ask", "allow"].find((one) => ["allow", ...alone].includes(one));
      expect(together).toBe(strictest);
    }),
    { numRuns: 1000 },
  );
});

test("a lookup in ten thousand rules examines at most fifty", () => {
  const many = (count: number) =>
    compilePolicy(
      policyOf(
        rule("mine", { tool: "bash", command: ["ls"], folder: "/work" }),
        ...Array.from({ length: count }, (_, index) =>
          rule(
            `r${index}`,
            [
              { tool: `tool-${index}` },
              { tool: "bash", command: [`program-${index}`], folder: "/work" },
              { tool: "bash", path: `/home/user-${index}/**` },
              { tool: "bash", host: `host-${index}.example.com` },
              { tool: "bash", input: [{ at: "$.id", equals: index }] },
            ][index % 5],
          ),
        ),
      ),
    );
  const call = facts({ tool: "bash", input: { id: 4 } });
  const looked = (count: number) =>
    candidates(many(count).index, call, [commandKey("ls")]).map(({ rule }) => rule.id);
  expect(looked(50)).toEqual(["r4", "mine"]);
  expect(looked(10_000)).toEqual(["r4", "mine"]);
});
