import { expect, test } from "vitest";
import type { GateAnswer } from "../model/finding.ts";
import type { ResolvedResource } from "./answers.ts";
import { checkPermission, type FileRoot, seeCall } from "./decide.ts";
import { compilePolicy, type Rule } from "./policy.ts";

const ROOTS: readonly FileRoot[] = [
  { path: "/work", access: "write" },
  { path: "/shared/docs", access: "read" },
];

function judge(
  resources: readonly ResolvedResource[],
  rules: readonly Partial<Rule>[] = [],
  more: { readonly fileRoots?: readonly FileRoot[]; readonly dangerousPaths?: [] } = {},
): GateAnswer {
  const whole = rules.map(
    (rule, index): Rule => ({
      id: `r${index}`,
      effect: "allow",
      tool: "edit",
      reason: "Test.",
      ...rule,
    }),
  );
  const facts = {
    tool: "edit",
    permissionClass: "file",
    input: {},
    resources,
    tenant: "t",
    sessionId: "s",
    chain: ["agent"],
    now: 0,
  } as const;
  const policy = compilePolicy({ version: "1", rules: whole });
  return checkPermission(seeCall(facts), { policy, fileRoots: ROOTS, ...more });
}

const read = (resolved: string, path = "given"): ResolvedResource => ({
  kind: "file",
  path,
  resolved,
  access: "read",
});
const write = (resolved: string, path = "given"): ResolvedResource => ({
  kind: "file",
  path,
  resolved,
  access: "write",
});

test("files inside an open folder are allowed, others ask, by whole names [S2-42 I-22]", () => {
  for (const path of ["/work", "/work/a", "/work/a/b.ts", "/shared/docs/x"]) {
    expect(judge([read(path)]).answer, path).toBe("allow");
  }
  for (const path of [
    "/workshop/a",
    "/wor",
    "/",
    "/Work/a",
    "/shared/docsx",
    "/shared",
    "/other/work",
  ]) {
    expect(judge([read(path)]).answer, path).toBe("ask");
  }
  expect(judge([write("/work/a")]).answer).toBe("allow");
  expect(judge([write("/shared/docs/x")]).answer).toBe("ask");
});

test("the resolved path is judged, whatever the given one looks like [I-22]", () => {
  expect(judge([read("/outside/secret", "/work/link/secret")]).answer).toBe("ask");
  expect(judge([read("/work/a", "../../etc/passwd")]).answer).toBe("allow");
});

test.each([
  "/work/../etc/x",
  "/work/./a",
  "work/a",
  "",
  "/work//a",
  "/work/a\0b",
  "C:work",
  "~/x",
  "//host/share",
])("a path that is not resolved to the end is denied: %j [I-22]", (path) => {
  expect(judge([read(path)]).answer).toBe("deny");
  expect(judge([read("/work/a"), write(path)]).answer).toBe("deny");
});

test("an unresolved file is denied, whatever else is allowed [I-22]", () => {
  const unresolved = {
    kind: "unresolved",
    path: "loop",
    access: "read",
    reason: "too many links",
  } as const;
  const answer = judge([unresolved], [{ path: "/**" }], {
    fileRoots: [{ path: "/", access: "write" }],
  });
  expect(answer.answer).toBe("deny");
  expect(answer.findings[0]?.message).toContain("too many links");
  expect(answer.findings[0]?.message).toContain("Nothing was executed.");
});

test("each file must be allowed by itself [I-22]", () => {
  expect(judge([write("/work/a"), write("/work/b")]).answer).toBe("allow");
  expect(judge([write("/work/a"), write("/other/b")]).answer).toBe("ask");
  expect(judge([write("/work/a"), write("/home/me/.ssh/config")]).answer).toBe("deny");
});

test("rules allow and deny paths, and deny wins [S2-42]", () => {
  const open = { path: "/data/**" };
  expect(judge([write("/data/x/y")], [open]).answer).toBe("allow");
  expect(judge([write("/database/x")], [open]).answer).toBe("ask");
  expect(judge([write("/data/x")], [{ ...open, access: "read" }]).answer).toBe("ask");
  expect(judge([read("/data/x")], [{ ...open, access: "read" }]).answer).toBe("allow");
  expect(judge([write("/work/prod/x")], [{ path: "/work/prod/**", effect: "deny" }]).answer).toBe(
    "deny",
  );
  expect(judge([write("/work/prod/x")], [{ path: "/work/prod/**", effect: "ask" }]).answer).toBe(
    "ask",
  );
  expect(
    judge([read("/work/prod/x")], [{ path: "/work/prod/**", effect: "deny", access: "write" }])
      .answer,
  ).toBe("allow");
  expect(judge([write("/data/x")], [{}]).answer, "a rule without a path opens none").toBe("ask");
});

test("wildcards in paths match within names, not across them [S2-42]", () => {
  const answer = (pattern: string, path: string) => judge([read(path)], [{ path: pattern }]).answer;
  expect(answer("/data/*.csv", "/data/a.csv")).toBe("allow");
  expect(answer("/data/*.csv", "/data/b/a.csv")).toBe("ask");
  expect(answer("/data/*/in", "/data/x/in")).toBe("allow");
  expect(answer("/data/*/in", "/data/x/y/in")).toBe("ask");
  expect(answer("/data/**/in", "/data/x/y/in")).toBe("allow");
  expect(answer("/data/**", "/data")).toBe("allow");
  expect(answer("/data", "/data/x")).toBe("ask");
  expect(answer("/**/x/**/y", "/a/x/b/c/y")).toBe("allow");
  expect(answer("/**/x/**/y", "/a/b/c/y")).toBe("ask");
});

test.each([
  ["/home/me/.ssh/authorized_keys", "deny", "ask"],
  ["/home/me/.ssh/id_ed25519", "deny", "deny"],
  ["/work/.git/hooks/pre-commit", "deny", "allow"],
  ["/work/.env", "ask", "ask"],
  ["/work/.github/workflows/ci.yml", "ask", "allow"],
  ["/root/.bashrc", "deny", "ask"],
  ["/work/.BashRC", "deny", "allow"],
  ["/etc/passwd", "deny", "ask"],
  ["/etc/shadow", "deny", "deny"],
  ["/etc/hosts", "ask", "ask"],
  ["/dev/sda", "deny", "ask"],
  ["/proc/self/environ", "deny", "deny"],
  ["/proc/1/mem", "deny", "deny"],
  ["/usr/bin/ls", "ask", "ask"],
  ["/work/src/index.ts", "allow", "allow"],
  ["/work/environment.ts", "allow", "allow"],
])("dangerous path %s: writing %s, reading %s [S2-42]", (path, writing, reading) => {
  expect(judge([write(path)]).answer).toBe(writing);
  expect(judge([read(path)]).answer).toBe(reading);
});

test("a dangerous path overrides rules and roots, and the table is data [S2-42]", () => {
  const everything = { fileRoots: [{ path: "/", access: "write" }] } as const;
  expect(judge([write("/home/me/.ssh/config")], [{ path: "/**" }], everything).answer).toBe("deny");
  expect(judge([write("/etc/hosts")], [{ path: "/etc/hosts" }], everything).answer).toBe("ask");
  expect(judge([write("/etc/hosts")], [], { ...everything, dangerousPaths: [] }).answer).toBe(
    "allow",
  );
});

test("a file tool that does not declare its files, or touches other resources, asks [S2-42]", () => {
  expect(judge([]).answer).toBe("ask");
  expect(judge([read("/work/a"), { kind: "command", command: "ls" }]).answer).toBe("ask");
  expect(judge([read("/work/a"), { kind: "other", id: "x", access: "read" }]).answer).toBe("ask");
});

test("paths of Windows are compared by their names too [S2-42]", () => {
  const roots = { fileRoots: [{ path: "C:\\work", access: "write" }] } as const;
  expect(judge([write("C:\\work\\a")], [], roots).answer).toBe("allow");
  expect(judge([write("C:\\workshop\\a")], [], roots).answer).toBe("ask");
  expect(judge([write("C:\\Users\\me\\.ssh\\config")], [], roots).answer).toBe("deny");
  expect(judge([write("C:\\work\\..\\x")], [], roots).answer).toBe("deny");
});
