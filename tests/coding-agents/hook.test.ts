// The installed command of each host without its program: what it prints for every answer, how long it waits, and what it does
// when it is disturbed. The published programs are in contracts.test.ts.

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { writeHookAccess } from "../../src/coding-agents/access.ts";
import { GUARDED, guardedCommand, withMark } from "../../src/coding-agents/guard.ts";
import { planInstall } from "../../src/coding-agents/install.ts";
import type { JsonObject } from "../../src/util/json.ts";
import type { HostName } from "../support/hosts/run-host.ts";
import { approve, HOOK_ENV, openWorld, PROGRAM, type World } from "./world.ts";

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface How {
  readonly env?: NodeJS.ProcessEnv;
  readonly started?: (child: ChildProcess) => void;
}

function inShell(command: string, input: string, { env = {}, started }: How = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const own = { PATH: process.env["PATH"], ...HOOK_ENV, ...env };
    const child = spawn("/bin/sh", ["-c", command], { env: own });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    started?.(child);
  });
}

/** What the host would start before a call. opencode starts the words of the plugin itself. */
function commandOf({ place }: World): string {
  if (place.host === "opencode") {
    const words = [...place.program, "hook", "opencode", "--data", place.data, "--wait", "0"];
    return words.map((word) => `'${word}'`).join(" ");
  }
  const [planned] = planInstall(place);
  const { hooks } = JSON.parse(planned?.content ?? "");
  return (hooks.PreToolUse ?? hooks.BeforeTool)[0].hooks[0].command;
}

const CLAUDE = (when: "before" | "after", { project }: World, id: string, command: string) => ({
  hook_event_name: when === "before" ? "PreToolUse" : "PostToolUse",
  session_id: "s1",
  cwd: project,
  tool_name: "Bash",
  tool_use_id: id,
  tool_input: { command },
  ...(when === "after" ? { tool_response: { stdout: "done" } } : {}),
});

type Event = typeof CLAUDE;
const EVENTS: Readonly<Record<HostName, (...of: Parameters<Event>) => object>> = {
  "claude-code": CLAUDE,
  codex: CLAUDE,
  gemini: (when, { project }, _id, command) => ({
    hook_event_name: when === "before" ? "BeforeTool" : "AfterTool",
    session_id: "s1",
    cwd: project,
    tool_name: "run_shell_command",
    tool_input: { command },
  }),
  opencode: (when, { project }, call, command) => ({
    when,
    session: "s1",
    call,
    tool: "bash",
    cwd: project,
    input: { command },
  }),
};

const claudeShape = (permissionDecision: string, permissionDecisionReason: unknown, more = {}) => ({
  hookSpecificOutput: {
    hookEventName: "PreToolUse",
    permissionDecision,
    permissionDecisionReason,
    ...more,
  },
});
const claude = {
  allow: (reason: unknown) => claudeShape("allow", reason),
  deny: (reason: unknown) => claudeShape("deny", reason),
  edit: (reason: unknown, updatedInput: object) => claudeShape("allow", reason, { updatedInput }),
};
const plain = {
  allow: (reason: unknown) => ({ decision: "allow", reason }),
  deny: (reason: unknown) => ({ decision: "deny", reason }),
};
const SHAPES = {
  "claude-code": claude,
  codex: claude,
  gemini: {
    ...plain,
    edit: (reason: unknown, tool_input: object) => ({
      decision: "allow",
      reason,
      hookSpecificOutput: { hookEventName: "BeforeTool", tool_input },
    }),
  },
  opencode: {
    ...plain,
    edit: (reason: unknown, input: object) => ({ decision: "allow", reason, input }),
  },
} as const;

const HOSTS = ["claude-code", "codex", "gemini", "opencode"] as const;
const some = expect.stringMatching(/\w+ \w+/);
const TOOLS = {
  "claude-code": "Bash",
  codex: "Bash",
  gemini: "run_shell_command",
  opencode: "bash",
};

const open = (name: HostName, more = {}) =>
  openWorld(name, { hook: "missing", commands: [["touch", "**"]], ...more });

async function answers(world: World, command: string, how: How = {}, id: string = randomUUID()) {
  const { host } = world.place;
  const event = EVENTS[host]("before", world, id, command);
  const { code, stdout, stderr } = await inShell(commandOf(world), JSON.stringify(event), how);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^\{.*\}\n$/);
  return JSON.parse(stdout) as JsonObject;
}

describe.each(HOSTS)("%s", { timeout: 60_000 }, (host) => {
  const shape = SHAPES[host];

  test("allow, deny and a call that waits have exactly the host's shape, each with a reason", async () => {
    const world = await open(host);
    expect(await answers(world, "touch a")).toEqual(
      shape.allow(expect.stringMatching(/rules allow/)),
    );
    expect(await answers(world, "rm -rf src")).toEqual(
      shape.deny(expect.stringMatching(/cannot be undone/)),
    );
    const attended = { env: { CLAUDE_CODE_SESSION_ATTENDED: "1" } };
    expect(await answers(world, "make all", attended)).toEqual(
      shape.deny(expect.stringMatching(/waits for a person as decision/)),
    );
  });

  test("a reviewer's edit is passed on as the input of the call, in any language", async () => {
    const world = await open(host, { wait: 0 });
    await answers(world, "make ten", {}, "first");
    const { gate } = world.served;
    const [question] = await gate.interactions.list();
    if (question === undefined) throw new Error("nothing was asked");
    const input = { command: "echo 'één' \u{1f600}" };
    const edited = { host, tool: TOOLS[host], cwd: world.project, input };
    const how = { hash: question.hash, by: "person:bob", inputs: [edited] };
    await gate.interactions.edit(question.id, how);
    await approve(world);
    expect(await answers(world, "make ten", {}, "second")).toEqual(
      shape.edit(expect.stringMatching(/person:bob changed/), input),
    );
  });

  test("a call that waits and is approved meanwhile is allowed", async () => {
    const world = await open(host, { wait: 20 });
    const attended = { env: { CLAUDE_CODE_SESSION_ATTENDED: "1" } };
    const command =
      host === "opencode" ? commandOf(world).replace(/'0'$/, "'20'") : commandOf(world);
    const event = JSON.stringify(EVENTS[host]("before", world, randomUUID(), "make all"));
    const answered = inShell(command, event, attended);
    await expect
      .poll(async () => (await world.served.gate.interactions.list()).length, { timeout: 15_000 })
      .toBe(1);
    await approve(world);
    expect(JSON.parse((await answered).stdout)).toEqual(shape.allow(some));
  });

  test("without a server the answer is deny, and names the configuration to start it with", async () => {
    const world = await open(host);
    const file = path.join(path.dirname(world.data), "sallyport.config.mjs");
    writeFileSync(file, "export default {};\n");
    await world.stop();
    const start = `sallyport serve --data ${world.data} --config ${file}`;
    expect(await answers(world, "touch a")).toEqual(shape.deny(expect.stringContaining(start)));
  });

  test("input that is not an event of the host is denied", async () => {
    const world = await open(host);
    for (const input of ["", "{", "[]", "null", '{"session_id":1}']) {
      const { stdout } = await inShell(commandOf(world), input);
      expect(JSON.parse(stdout), input).toEqual(shape.deny(expect.stringMatching(/hook .*failed/)));
    }
  });
});

describe("Claude Code, headless", { timeout: 60_000 }, () => {
  const headless = { env: { CLAUDE_CODE_SESSION_ATTENDED: "0" } };
  const deferred = claudeShape("defer", some);

  test("of three calls in one turn that wait, the first is deferred, again when it is resumed too early", async () => {
    const world = await open("claude-code");
    expect(await answers(world, "make one", headless, "a")).toEqual(deferred);
    for (const id of ["b", "c"]) {
      expect(await answers(world, `make ${id}`, headless, id)).toEqual(
        claude.deny(expect.stringMatching(/another call waits/)),
      );
    }
    expect(await answers(world, "make one", headless, "a")).toEqual(deferred);
    expect(await world.served.gate.interactions.list()).toHaveLength(3);
    await approve(world);
    for (const [id, command] of [
      ["a", "one"],
      ["b2", "b"],
      ["c2", "c"],
    ] as const) {
      expect(await answers(world, `make ${command}`, headless, id)).toEqual(claude.allow(some));
    }
    expect(await answers(world, "make one", headless, "a")).not.toEqual(claude.allow(some));
  });

  test("the call of a sub-agent is never deferred: the host would drop it", async () => {
    const world = await open("claude-code");
    const event = { ...CLAUDE("before", world, "x", "make one"), agent_type: "explorer" };
    const { stdout } = await inShell(commandOf(world), JSON.stringify(event), headless);
    expect(JSON.parse(stdout)).toEqual(claude.deny(expect.stringMatching(/waits for a person/)));
  });
});

describe("a report", { timeout: 60_000 }, () => {
  const settle = async (world: World, more: object) => {
    const [planned] = planInstall(world.place);
    const { hooks } = JSON.parse(planned?.content ?? "");
    const event = { ...CLAUDE("after", world, "r", "touch a"), ...more };
    const command = hooks.PostToolUse[0].hooks[0].command;
    const ended = await inShell(command, JSON.stringify(event));
    const { gate } = world.served;
    return { ended, operations: await gate.operations.listBySession("claude-code:s1") };
  };

  test.each([
    ["success", {}, "success"],
    [
      "a command that failed has run",
      { hook_event_name: "PostToolUseFailure", error: "no" },
      "success",
    ],
    [
      "a call that was interrupted is not reported",
      { hook_event_name: "PostToolUseFailure", is_interrupt: true },
      "started",
    ],
  ])("%s", async (_, more, status) => {
    const world = await open("claude-code");
    await answers(world, "touch a", {}, "r");
    const { ended, operations } = await settle(world, more);
    expect(ended).toMatchObject({ code: 0, stdout: "{}\n" });
    expect(operations).toMatchObject([{ status, callId: "r" }]);
  });

  test("the diff of the work tree runs no program that its settings name", async () => {
    const world = await open("claude-code");
    const git = (words: string) =>
      inShell(
        `cd '${world.project}' && git -c user.name=a -c user.email=a@example.com ${words}`,
        "",
      );
    await git("init -q");
    writeFileSync(path.join(world.project, ".gitattributes"), "*.txt diff=evil\n");
    writeFileSync(path.join(world.project, "a.txt"), "one\n");
    await git("add -A");
    await git("commit -qm first");
    writeFileSync(path.join(world.project, "a.txt"), "two\n");
    for (const name of ["diff.evil.textconv", "diff.external", "core.fsmonitor"]) {
      await git(`config ${name} "touch ${world.project}/RAN; cat"`);
    }
    await answers(world, "touch a", {}, "r");
    const { operations } = await settle(world, {});
    expect(operations[0]?.undo?.manualGuide).toMatch(/-one\n\+two/);
    expect(world.has("RAN")).toBe(false);
  });
});

describe("disturbed", { timeout: 60_000 }, () => {
  test("the hook answers deny when it is asked to end while it waits", async () => {
    const world = await open("codex", { wait: 30 });
    const event = JSON.stringify(CLAUDE("before", world, "w", "make all"));
    let hook: ChildProcess | undefined;
    const words = [...PROGRAM, "hook", "codex", "--data", world.data, "--wait", "30"];
    const command = `exec ${words.map((word) => `'${word}'`).join(" ")}`;
    const started = (child: ChildProcess) => {
      hook = child;
    };
    const answered = inShell(command, event, { started });
    await expect
      .poll(async () => (await world.served.gate.interactions.list()).length, { timeout: 15_000 })
      .toBe(1);
    hook?.kill("SIGTERM");
    expect(JSON.parse((await answered).stdout)).toEqual(
      claude.deny(expect.stringMatching(/was ended/)),
    );
  });

  test("a server that never answers is given up before the guard and the host lose patience", async () => {
    const world = await open("codex");
    const { createServer } = await import("node:http");
    const server = createServer(() => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    await world.stop();
    const tokens = { "claude-code": "t", codex: "t", gemini: "t", opencode: "t" };
    writeHookAccess(world.data, { url: `http://127.0.0.1:${port}`, pid: 1, tokens });
    const begun = performance.now();
    expect(await answers(world, "touch a")).toEqual(
      claude.deny(expect.stringMatching(/did not answer in time/)),
    );
    expect(performance.now() - begun).toBeLessThan(16_000);
    server.closeAllConnections();
    server.close();
  });
});

describe("the guard", { timeout: 30_000 }, () => {
  const answer = { decision: "allow", reason: "ümlaut 'quoted' %s \\ sallyport:3" };
  const right = withMark(JSON.stringify(answer));
  const quoted = `'${right.replaceAll("'", "'\\''")}'`;
  const guarded = (text: string) =>
    guardedCommand({ host: "gemini", words: ["/bin/sh", "-c", `${text} #`], seconds: 1 });

  test.each(["/bin/sh", "/bin/bash"])("%s: one whole answer is passed on", async (shell) => {
    const command = `${shell} -c '${guarded(`printf %s ${quoted}`).replaceAll("'", "'\\''")}'`;
    const { code, stdout } = await inShell(command, "");
    expect([code, JSON.parse(stdout)]).toEqual([0, answer]);
  });

  test.each([
    ["it says nothing", "exit 0"],
    ["it answers without the mark", `printf %s '${JSON.stringify({ decision: "allow" })}'`],
    ["a line before the answer", `echo log; printf %s ${quoted}`],
    ["a line after the answer", `printf %s ${quoted}; echo; echo log`],
    ["a word behind the answer", `printf %s ${quoted}; printf x`],
    ["half an answer", `printf %s ${quoted} | head -c 20`],
    ["the second half of an answer", `printf %s ${quoted} | tail -c 40`],
    ["it answers twice", `printf %s ${quoted}; printf %s ${quoted}`],
    ["it answers and fails", `printf %s ${quoted}; exit 1`],
    ["it is killed", "kill -9 $$"],
    ["it is stopped", "kill -STOP $$"],
    ["it hangs", "exec sleep 12"],
    ["it hangs, and its child keeps the pipe", "sleep 12 2>/dev/null; exit 0"],
    ["it ends, and its child keeps the pipe", `sleep 12 2>/dev/null & printf %s ${quoted}`],
    ["its shell is killed", "kill -9 $PPID; sleep 1"],
  ])("%s: refused, with exit 2, a text and no other answer", async (_, text) => {
    const begun = performance.now();
    const { code, stdout, stderr } = await inShell(guarded(`exec 2>/dev/null; ${text}`), "{}");
    expect(code).toBe(2);
    expect(stderr).toMatch(/Not executed: the hook of Sallyport/);
    if (stdout !== "") expect(JSON.parse(stdout)).toEqual(plain.deny(some));
    expect(performance.now() - begun).toBeLessThan(6_000);
  });

  test("a folder with spaces and quotes is one word of the command", async () => {
    const world = await open("codex");
    const odd = path.join(world.home, `it's "odd" $HOME`);
    mkdirSync(odd);
    const words = ["/bin/sh", "-c", 'printf %s "$1" >&2', "sh", odd];
    const { stderr } = await inShell(guardedCommand({ host: "codex", words, seconds: 1 }), "");
    expect(stderr).toContain(odd);
    rmSync(odd, { recursive: true });
  });

  test("without the guard the hook prints only its answer", async () => {
    const world = await open("opencode");
    expect(commandOf(world)).not.toContain(GUARDED);
    expect(await answers(world, "touch a")).toEqual(plain.allow(some));
  });
});

test("opencode: the plugin throws for every end of its hook but an explicit allow, also when it hangs", {
  timeout: 60_000,
}, async () => {
  const world = await open("opencode");
  const before = async (text: string, at: number) => {
    const place = { ...world.place, program: ["/bin/sh", "-c", `${text} #`], wait: 0 };
    const [plugin] = planInstall(place);
    const file = path.join(world.home, `plugin-${at}.mjs`);
    writeFileSync(file, plugin?.content ?? "");
    const { Sallyport } = await import(pathToFileURL(file).href);
    const hooks = await Sallyport({ directory: world.project });
    const input = { tool: "bash", sessionID: "s", callID: "c" };
    return hooks["tool.execute.before"](input, { args: { command: "touch a" } });
  };
  await before(`echo '{"decision":"allow"}'`, 0);
  const ends = ["exit 0", "echo log", "echo null", `echo log; echo '{"decision":"allow"}'`]
    .concat([`echo '{"decision":"allow"}'; exit 1`, "kill -9 $$", "kill -STOP $$"])
    .concat(["sleep 5 2>/dev/null & exit 0", `echo '{"decision":"maybe"}'`]);
  const came = await Promise.allSettled(ends.map((text, at) => before(text, at + 1)));
  expect(came.map(({ status }) => status)).toEqual(ends.map(() => "rejected"));
});

test("sallyport policy test judges a recorded session by other rules, and names the rule of each call", {
  timeout: 60_000,
}, async () => {
  const world = await open("claude-code");
  const hook = [...PROGRAM, "hook", "claude-code", "--data", world.data];
  for (const [id, command] of [
    ["one", "touch a"],
    ["two", "ls a"],
  ] as const) {
    await answers(world, command, {}, id);
    const report = JSON.stringify(CLAUDE("after", world, id, command));
    await inShell(hook.map((word) => `'${word}'`).join(" "), report);
  }
  await answers(world, "make all", { env: { CLAUDE_CODE_SESSION_ATTENDED: "1" } }, "three");
  await answers(world, "rm -rf src", {}, "four");
  const audit = await world.served.gate.audit.read({ after: 0, limit: 200 });
  expect(audit.map(({ data }) => data).join()).toContain("policy:coding.own.0.touch-");
  const config = path.join(world.home, "rules.mjs");
  const codingAgents = JSON.stringify({ project: world.project, commands: [["make", "all"]] });
  writeFileSync(config, `export default { tools: [], codingAgents: ${codingAgents} };\n`);
  const words = ["--data", world.data, "--json", "policy", "test", "claude-code:s1"];
  const command = [...PROGRAM, ...words, "--config", config].map((word) => `'${word}'`).join(" ");
  const { stdout, stderr } = await inShell(command, "");
  expect(stderr).toBe("");
  const { items, changed } = JSON.parse(stdout);
  expect(changed).toBe(1);
  expect(items).toMatchObject([
    { was: "ran_alone", now: "ask" },
    { was: "ran_alone", now: "allow", rules: ["coding.look.0.ls-"] },
    { was: "waiting", now: "allow", rules: ["coding.own.0.make-all"] },
    { was: "refused", now: expect.stringMatching(/not kept/) },
  ]);
});
