import { expect, test } from "vitest";
import { isSallyportError } from "../model/errors.ts";
import type { GateAnswer } from "../model/finding.ts";
import { checkPermission, seeCall } from "./decide.ts";
import { compilePolicy, NO_RULES, type Rule } from "./policy.ts";
import { readShell } from "./shell/read-shell.ts";

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

test("a standing rule applies to the command that runs, never to the shell around it [R4]", () => {
  for (const shell of ["sh", "bash", "/bin/sh", "zsh", "dash", "pwsh", "fish"]) {
    expect(cannotBeARule([shell, "-c", "**"]), shell).toBe(true);
    expect(cannotBeARule([shell]), shell).toBe(true);
  }
  const ls = { command: ["ls"] };
  expect(judge("sh -c ls", ls).answer).toBe("allow");
  expect(judge("sh -c whoami", ls).answer).toBe("ask");
  expect(judge("sh -c 'ls; whoami'", ls).answer).toBe("ask");
});

test("a standing rule has an argument pattern and an expiry [R4]", () => {
  const rule = { command: ["git", "log", "*"], expiresAt: "1970-01-01T00:00:01.001Z" };
  expect(judge("git log main", rule).answer).toBe("allow");
  expect(judge("git log main", { ...rule, expiresAt: "1970-01-01T00:00:01.000Z" }).answer).toBe(
    "ask",
  );
  expect(judge("git log", rule).answer).toBe("ask");
  expect(judge("git log main other", rule).answer).toBe("ask");
  expect(judge("git show main", rule).answer).toBe("ask");
  expect(judge("git log --output=x", rule).answer).toBe("ask");
});

test("a rule that allows env does not allow sh -c inside it, nor any wrapper its content [R5]", () => {
  expect(cannotBeARule(["env", "**"])).toBe(true);
  const env = { command: ["env"] };
  expect(judge("env", env).answer).toBe("allow");
  for (const command of [
    "env sh -c whoami",
    "env whoami",
    "env FOO=1 whoami",
    "env -i whoami",
    "env -u X whoami",
    "env -S 'whoami'",
    "env env env whoami",
    "/usr/bin/env whoami",
    "nice env sh -c whoami",
  ]) {
    expect(judge(command, env).answer, command).toBe("ask");
  }
  for (const wrapper of [
    "sudo",
    "xargs",
    "nohup",
    "timeout",
    "nice",
    "exec",
    "command",
    "time",
    "setsid",
  ]) {
    expect(cannotBeARule([wrapper, "**"]), wrapper).toBe(true);
    expect(judge(`${wrapper} whoami`, { command: ["ls"] }).answer, wrapper).toBe("ask");
  }
});

test("a denied program stays denied inside every wrapper [R5]", () => {
  const rules = [{ command: ["whoami"], effect: "deny" as const }, { command: ["ls", "**"] }];
  for (const command of [
    "whoami",
    "env whoami",
    "sudo whoami",
    "sh -c whoami",
    "bash -lc 'ls; whoami'",
    "nohup nice -n 5 timeout 3 whoami",
    "echo x | xargs whoami",
    "find . -exec whoami {} ;",
    "busybox whoami",
    "command whoami",
    "eval whoami",
    "ls $(whoami)",
    "ls & whoami",
    "/usr/bin/whoami",
    "./whoami",
    "f() { whoami; }",
  ]) {
    expect(judge(command, ...rules).answer, command).toBe("deny");
  }
  expect(judge("env ls", { command: ["env"], effect: "deny" }, { command: ["ls"] }).answer).toBe(
    "deny",
  );
  expect(
    judge("bash -c ls", { command: ["bash"], effect: "ask" }, { command: ["ls"] }).answer,
  ).toBe("ask");
});

test("trust in one login shell call is not reused for another [R6]", () => {
  const rule = { command: ["git", "status"] };
  for (const flags of ["-c", "-lc", "-ec", "-l -c", "-o pipefail -c", "--login -c"]) {
    expect(judge(`bash ${flags} 'git status'`, rule).answer, flags).toBe("allow");
    expect(judge(`bash ${flags} 'git push'`, rule).answer, flags).toBe("ask");
    expect(judge(`bash ${flags} 'git status' x y`, rule).answer, flags).toBe("allow");
    expect(judge(`bash ${flags} "$X"`, rule).answer, flags).toBe("ask");
  }
  expect(judge("bash -lc 'git status; rm -rf /'", rule).answer).toBe("deny");
});

test("trust in busybox is not reused for its other programs [R7]", () => {
  expect(cannotBeARule(["busybox", "ls"])).toBe(true);
  const rule = { command: ["ls"] };
  expect(judge("busybox ls", rule).answer).toBe("allow");
  for (const command of [
    "busybox sh",
    "busybox wget x",
    "busybox sh -c whoami",
    "toybox whoami",
    "busybox --install",
  ]) {
    expect(judge(command, rule).answer, command).toBe("ask");
  }
  expect(judge("busybox rm -rf /", rule).answer).toBe("deny");
});

test("a rule for a name never allows another program of that name [R8]", () => {
  const places = [
    "name",
    "./name",
    "../name",
    "bin/name",
    "/bin/name",
    "/usr/bin/name",
    "/tmp/name",
    "~/name",
    "NAME",
  ];
  for (const allowed of ["name", "./name", "/bin/name", "/tmp/name"]) {
    for (const called of places) {
      const answer = judge(called, { command: [allowed] }).answer;
      expect(answer, `${called} by a rule for ${allowed}`).toBe(
        called === allowed ? "allow" : "ask",
      );
    }
  }
  expect(cannotBeARule(["bin/name"])).toBe(true);
  expect(cannotBeARule(["../name"])).toBe(true);
});

test("a place is not the same place after the folder was changed [R8]", () => {
  const rules = [{ command: ["./name"] }, { command: ["/bin/name"] }, { command: ["cd", "*"] }];
  expect(judge("./name", ...rules).answer).toBe("allow");
  for (const command of [
    "cd x && ./name",
    "cd x; ./name",
    "(cd x && ./name)",
    "cd x\n./name",
    "cd - ; ./name",
  ]) {
    expect(judge(command, ...rules).answer, command).toBe("ask");
  }
  // Rules for commands name their folder, and where `cd` leads is known to the shell alone.
  expect(judge("(cd x); ./name", ...rules).answer).toBe("ask");
  expect(judge("cd x && /bin/name", ...rules).answer).toBe("ask");
  expect(judge("cd x", ...rules).answer).toBe("allow");
});

test("a bash tool that does not declare its command asks [S2-42]", () => {
  const facts = {
    tool: "bash",
    permissionClass: "bash",
    input: {},
    resources: [],
    tenant: "t",
    sessionId: "s",
    chain: ["agent"],
    now: 0,
  } as const;
  const state = { policy: compilePolicy(NO_RULES), fileRoots: [] };
  expect(checkPermission(seeCall(facts), state).answer).toBe("ask");
  const mixed = { ...facts, resources: [{ kind: "other", id: "x", access: "write" }] } as const;
  expect(checkPermission(seeCall(mixed), state).answer).toBe("ask");
});

test("a program that find runs is judged with the words find would pass [I-21]", () => {
  const rules = [
    { command: ["find", "**"], options: ["-exec", "-name"] },
    { command: ["ls", "**"] },
  ];
  expect(judge("find . -name x", ...rules).answer).toBe("allow");
  for (const command of [
    "find . -exec ls {} ;",
    "find . -exec ls {} +",
    "find . -exec ls + {} ;",
    "find . -exec whoami ;",
    "find . -exec ls x ; -exec whoami ;",
    "find . -execdir ls x ;",
    "find . -delete",
    "find . -fprint x",
  ]) {
    expect(judge(command.replaceAll(";", "\\;"), ...rules).answer, command).toBe("ask");
  }
  expect(judge("find . -exec ls x \\;", ...rules).answer).toBe("allow");
});

test("unusual spellings of shell options are not parsed [R6]", () => {
  const rules = [{ command: ["posix"] }, { command: ["ls"] }];
  for (const command of [
    "bash -ooc pipefail posix whoami",
    "bash -c -- ls",
    "bash -c",
    "bash +c ls",
    "bash --init-file x -c ls",
    "bash -c $X ls",
    "bash -",
    "bash -z -c ls",
  ]) {
    expect(judge(command, ...rules).answer, command).toBe("ask");
  }
});

test("every program is found wherever a shell would run it [I-21]", () => {
  const names = (command: string) =>
    readShell(command)
      .parts.map(({ words }) => words[0]?.text)
      .sort();
  expect(names("a && b || c; d | e & f")).toEqual(["a", "b", "c", "d", "e", "f"]);
  expect(names("(a; { b; })")).toEqual(["a", "b"]);
  expect(names('a $(b `c`) <(d) >(e) "$(f)"')).toEqual(["a", "b", "c", "d", "e", "f"]);
  expect(names("a <<E\n$(b)\nE\nc <<'E'\n$(d)\nE\n")).toEqual(["a", "b", "c"]);
  expect(names("if a; then b; elif c; then d; else e; fi; while f; do g; done")).toEqual([
    ..."abcdefg",
  ]);
  expect(names("X=$(a) b; c > $(d); case $(e) in f) g;; esac")).toEqual([
    "a",
    "b",
    "c",
    "d",
    "e",
    "g",
  ]);
  expect(names("f() { a; }; for i in $(b); do c; done")).toEqual(["a", "b", "c"]);
});
