import { expect, test } from "vitest";
import { isSallyportError } from "../model/errors.ts";
import type { GateAnswer } from "../model/finding.ts";
import { checkPermission, seeCall } from "./decide.ts";
import { isAllowedBy } from "./patterns.ts";
import { compilePolicy, type Rule } from "./policy.ts";

type Draft = Partial<Rule>;

function judge(command: string, ...drafts: readonly Draft[]): GateAnswer {
  const rules = drafts.map(
    (draft, index): Rule => ({
      id: `r${index}`,
      effect: "allow",
      tool: "bash",
      reason: "For the test.",
      ...((draft.effect ?? "allow") === "allow" && draft.command ? { folder: "/work" } : {}),
      ...draft,
    }),
  );
  const facts = {
    tool: "bash",
    permissionClass: "bash",
    input: { command },
    resources: [{ kind: "command", command, folder: "/work" }],
    tenant: "t",
    sessionId: "s",
    chain: ["agent"],
    now: 1_000,
  } as const;
  return checkPermission(seeCall(facts), {
    policy: compilePolicy({ version: "1", rules }),
    fileRoots: [],
  });
}

const cannotBeARule = (command: readonly string[]) => {
  try {
    judge("ls", { command });
    return false;
  } catch (error) {
    return isSallyportError(error, "invalid_input");
  }
};

test("a rule that allows is literal: options must be named, wildcards match operands only [I-21]", () => {
  const sort = { command: ["sort", "**"], options: ["-n", "--key=*"] };
  expect(judge("sort a b", sort).answer).toBe("allow");
  expect(judge("sort -n a", sort).answer).toBe("allow");
  expect(judge("sort a -n", sort).answer).toBe("allow");
  expect(judge("sort --key=2 a", sort).answer).toBe("allow");
  for (const command of [
    "sort -o x a",
    "sort -no x a",
    "sort a -o x",
    "sort --output=x a",
    "sort --compress-program=sh a",
    "sort -- -o",
  ]) {
    expect(judge(command, sort).answer, command).toBe("ask");
  }
  for (const wide of [["-*"], ["--*"], ["-n*"], ["--out*"], ["a"], ["*"]]) {
    expect(() => judge("sort", { command: ["sort"], options: wide }), String(wide)).toThrow(
      /options|wildcard/,
    );
  }
  expect(cannotBeARule(["*", "x"])).toBe(true);
  expect(cannotBeARule(["**"])).toBe(true);
  expect(cannotBeARule(["l*"])).toBe(true);
});

test("a prefix with a wildcard does not match a path outside its folder [I-21]", () => {
  const cat = { command: ["cat", "/work/*"] };
  expect(judge("cat /work/a/b", cat).answer).toBe("allow");
  for (const path of [
    "/work/../etc/hosts",
    "/work/a/../../etc/hosts",
    "/work/..",
    "/workshop",
    "/etc/hosts",
  ]) {
    expect(judge(`cat ${path}`, cat).answer, path).toBe("ask");
  }
});

test("programs that run others are allowed word for word or not at all [I-21]", () => {
  expect(judge("npx tsc", { command: ["npx", "**"] }).answer).toBe("ask");
  expect(judge("npx tsc", { command: ["npx", "tsc"] }).answer).toBe("allow");
  expect(judge("python3.12 x.py", { command: ["python3.12", "*"] }).answer).toBe("ask");
  expect(judge("docker exec web ls", { command: ["docker", "**"] }).answer).toBe("ask");
  expect(judge("docker ps", { command: ["docker", "**"] }).answer).toBe("allow");
});

test("a restriction also applies to glue and to programs named by path [I-21]", () => {
  const pwd = [{ command: ["pwd"], effect: "deny" as const }, { command: ["ls"] }];
  expect(judge("ls; true", ...pwd).answer).toBe("allow");
  expect(judge("ls; pwd", ...pwd).answer).toBe("deny");
  expect(judge("pwd", { command: ["pwd"] }).answer).toBe("ask");
  const placed = { command: ["/opt/tool/deploy"], effect: "deny" as const };
  for (const command of ["deploy", "./deploy", "/opt/tool/deploy now", "sh -c deploy"]) {
    expect(judge(command, placed).answer, command).toBe("deny");
  }
});

test("a restriction matches any path and any order of options, also in clusters [I-21]", () => {
  const push = [
    { command: ["git", "push", "--no-verify"], effect: "deny" as const },
    { command: ["git", "push", "**"] },
  ];
  expect(judge("git push origin main", ...push).answer).toBe("allow");
  for (const command of [
    "git push --no-verify",
    "git push origin --no-verify",
    "git -C x push --no-verify",
    "/usr/bin/git push --no-verify",
  ]) {
    expect(judge(command, ...push).answer, command).toBe("deny");
  }
  const rm = [
    { command: ["rm", "-rf"], effect: "deny" as const },
    { command: ["rm", "**"], options: ["-r", "-f", "-rf", "-v"] },
  ];
  expect(judge("rm -r x", ...rm).answer).toBe("allow");
  for (const command of ["rm -rf x", "rm -fr x", "rm -r -f x", "rm x -rvf", "rm -r x -f"]) {
    expect(judge(command, ...rm).answer, command).toBe("deny");
  }
});

test("a rule that names no command allows none [I-21]", () => {
  expect(judge("ls", {}).answer).toBe("ask");
  expect(judge("ls", { class: "bash", command: ["ls"] }).answer).toBe("allow");
  expect(() => judge("ls", { class: "bash" })).toThrow(/without naming a command/);
});

test("a rule cannot allow programs that can run anything [I-21]", () => {
  for (const program of [
    "eval",
    "source",
    ".",
    "ssh",
    "su",
    "trap",
    "alias",
    "vim",
    "/usr/bin/ssh",
    "SSH",
    "ld.so",
  ]) {
    expect(cannotBeARule([program, "x"]), program).toBe(true);
    expect(() => judge("ls", { command: [program], effect: "deny" })).not.toThrow();
  }
});

test("a word that only the shell can resolve is not matched by a rule that allows, not even by a wildcard [I-21]", () => {
  const known = (text: string) => ({ text, known: true });
  const open = { text: "a", known: false };
  expect(isAllowedBy([known("ls"), known("a")], ["ls", "**"], [])).toBe(true);
  expect(isAllowedBy([known("ls"), open], ["ls", "**"], [])).toBe(false);
  expect(isAllowedBy([known("ls"), open], ["ls", "a"], [])).toBe(false);
  expect(isAllowedBy([{ text: "ls", known: false }], ["ls"], [])).toBe(false);
  expect(isAllowedBy([], ["ls"], [])).toBe(false);
});
