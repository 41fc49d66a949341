import { expect, test } from "vitest";
import { defineTool } from "../tools/define-tool.ts";
import { createRegistry } from "../tools/registry.ts";
import { NO_METADATA, PERMISSION_CLASSES, type PermissionClass } from "../tools/tool.ts";
import type { CallFacts, ResolvedResource } from "./answers.ts";
import { checkPermission, seeCall } from "./decide.ts";
import { compilePolicy, NO_RULES, type Rule } from "./policy.ts";

const facts = (permissionClass: PermissionClass, more: Partial<CallFacts> = {}): CallFacts => ({
  tool: "t.x",
  permissionClass,
  input: {},
  resources: [],
  tenant: "t",
  sessionId: "s",
  chain: ["agent"],
  now: 0,
  ...more,
});
const state = (...rules: readonly Rule[]) => ({
  policy: compilePolicy(rules.length === 0 ? NO_RULES : { version: "1", rules }),
  fileRoots: [{ path: "/work", access: "write" }] as const,
});
const judge = (call: CallFacts, ...rules: readonly Rule[]) =>
  checkPermission(seeCall(call), state(...rules)).answer;
const rule = (effect: Rule["effect"], more: Partial<Rule> = {}): Rule => ({
  id: effect,
  effect,
  tool: "t.x",
  reason: "For the test.",
  ...more,
});

const everything: readonly ResolvedResource[] = [
  { kind: "command", command: "ls" },
  { kind: "file", path: "a", resolved: "/work/a", access: "write" },
  { kind: "url", url: "https://example.com/" },
];

test("the recognised classes are bash, file, webfetch, readonly, generic and empty [S2-41]", () => {
  expect([...PERMISSION_CLASSES].sort()).toEqual([
    "",
    "bash",
    "file",
    "generic",
    "readonly",
    "webfetch",
  ]);
  for (const odd of [
    "Bash",
    "shell",
    "read-only",
    " ",
    "constructor",
    "__proto__",
    undefined,
    null,
  ]) {
    expect(judge(facts(odd as PermissionClass, { resources: everything })), String(odd)).toBe(
      "deny",
    );
  }
});

test("the class alone selects the check: the same call, six classes [S2-41 S2-42]", () => {
  const file = { kind: "file", path: "a", resolved: "/work/a", access: "write" } as const;
  const answers = PERMISSION_CLASSES.map((one) => [one, judge(facts(one, { resources: [file] }))]);
  expect(Object.fromEntries(answers)).toEqual({
    bash: "ask",
    file: "allow",
    webfetch: "ask",
    readonly: "allow",
    generic: "ask",
    "": "ask",
  });
});

test("readonly is allowed, generic asks unless a rule allows [S2-42 I-20]", () => {
  expect(judge(facts("readonly"))).toBe("allow");
  expect(judge(facts("readonly", { resources: everything }))).toBe("allow");
  expect(judge(facts("generic"))).toBe("ask");
  expect(judge(facts("generic"), rule("allow"))).toBe("allow");
});

test("the empty class is the built-in fallback, the same as generic [S2-42]", () => {
  for (const rules of [
    [],
    [rule("allow")],
    [rule("ask")],
    [rule("deny")],
    [rule("allow"), rule("deny")],
  ]) {
    expect(judge(facts(""), ...rules)).toBe(judge(facts("generic"), ...rules));
  }
});

test("a rule against a readonly tool still applies [I-20]", () => {
  expect(judge(facts("readonly"), rule("deny"))).toBe("deny");
  expect(judge(facts("readonly"), rule("ask"))).toBe("ask");
});

test("a tool's own declarations never change the permission [S2-37 S2-38 T12]", () => {
  for (const permissionClass of PERMISSION_CLASSES) {
    for (const rules of [[], [rule("allow")], [rule("deny")]]) {
      const plain = judge(facts(permissionClass, { resources: everything }), ...rules);
      for (const readOnly of [true, false]) {
        for (const destructive of [true, false]) {
          const metadata = { ...NO_METADATA, permissionClass, readOnly, destructive };
          const annotated = {
            ...facts(permissionClass, { resources: everything }),
            ...metadata,
            metadata,
            annotations: { readOnlyHint: readOnly },
          };
          expect(judge(annotated, ...rules)).toBe(plain);
        }
      }
    }
  }
});

test("a tool takes no part in the check: nothing of it is called [S2-47]", () => {
  const trap = () => expect.unreachable("the tool was asked");
  const call = {
    ...facts("generic"),
    execute: trap,
    resources: [],
    checkPermission: trap,
    dryRun: trap,
  };
  expect(judge(call)).toBe("ask");
});

test("registering a tool with a class is all it takes for the check to know it [S2-43 I-18]", () => {
  const table = createRegistry();
  for (const [name, permissionClass] of [
    ["acme.read", "readonly"],
    ["acme.run", "bash"],
  ] as const) {
    const input = { type: "object" } as const;
    table.register(
      defineTool({ name, description: name, input, permissionClass, execute: () => "" }),
    );
  }
  const call = (tool: string) =>
    judge(facts(table.metadataFor(tool).metadata.permissionClass, { tool }));
  expect(call("acme.read")).toBe("allow");
  expect(call("acme.run")).toBe("ask");
  expect(call("never.seen")).toBe("ask");
  // No name is special: a tool called like a well-known one has only the class it declared.
  for (const name of ["bash", "Bash", "read_file", "WebFetch", "ls"]) {
    expect(judge(facts("", { tool: name, resources: everything }))).toBe("ask");
    expect(judge(facts("readonly", { tool: name }))).toBe("allow");
  }
});

test("an unresolved file denies in every class [I-22]", () => {
  const resources = [{ kind: "unresolved", path: "x", access: "read", reason: "because" }] as const;
  for (const one of PERMISSION_CLASSES)
    expect(judge(facts(one, { resources }), rule("allow"))).toBe("deny");
});
