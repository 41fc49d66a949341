// Where commands run is the operator's to say: sessions open only in listed folders, and rules name theirs.

import { renameSync, symlinkSync } from "node:fs";
import {
  mkdir,
  mkdtemp,
  readdir,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import type { Rule } from "../../src/policy/policy.ts";
import { fileTools } from "../../src/tools/builtin/files.ts";
import { shellRun } from "../../src/tools/builtin/shell-run.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { rules } from "../support/port-world.ts";
import { openHttp } from "./http-world.ts";

let base = "";
const at = (...names: string[]) => path.join(base, ...names);

beforeEach(async () => {
  base = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-folders-")));
  for (const folder of ["app/sub", "scratch", "app-else"]) {
    await mkdir(at(folder), { recursive: true });
    await writeFile(at(folder, "check.sh"), "touch PWNED\n", { mode: 0o755 });
  }
  await writeFile(at("app/check.sh"), "#!/bin/sh\necho honest\n", { mode: 0o755 });
  await symlink(at("scratch"), at("app/way-out"));
  await symlink(at("app"), at("way-in"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
});

const CHECK = {
  id: "check",
  effect: "allow",
  tool: "shell.run",
  reason: "meant for the app",
} as const;

async function openWorld(over: Partial<GateOptions> = {}, rule: Partial<Rule> = {}) {
  const check = { ...CHECK, command: ["./check.sh"], ...rule } as Rule;
  const world = await openHttp({
    port: {
      tools: [...fileTools(), shellRun({ directory: at("app") })],
      fileRoots: [{ path: base, access: "write" }],
      policy: rules(check),
      ...over,
    },
  });
  return { ...world, agent: await world.client("acme", "agent") };
}

const pwned = async () =>
  (await readdir(base, { recursive: true })).filter((n) => n.endsWith("PWNED"));

test("over HTTP a session opens only in folders that the operator listed, by default in none [H7]", async () => {
  const { agent } = await openWorld({ sessionFolders: [] }, { folder: at("app") });
  await expect(agent.sessions.open({ id: "a", workingDirectory: at("app") })).rejects.toMatchObject(
    {
      code: "not_allowed",
      details: { hint: expect.stringContaining("sessionFolders") },
    },
  );
  const { id, workingDirectory } = await agent.sessions.open({ id: "b" });
  expect(workingDirectory).toBe("");
  const call = { id, callId: "1", tool: "shell.run", input: { command: "./check.sh" } };
  expect((await agent.sessions.call(call)).answer).toBe("done");

  const listed = await openWorld({ sessionFolders: [at("way-in")] }, { folder: at("app") });
  const open = (workingDirectory: string) => listed.agent.sessions.open({ workingDirectory });
  expect((await open(at("app"))).workingDirectory).toBe(at("app"));
  expect((await open(at("way-in", "sub"))).workingDirectory).toBe(at("app", "sub"));
  for (const other of [
    at("scratch"),
    at("app/way-out"),
    at("app/../scratch"),
    at("app-else"),
    "app",
    ".",
  ]) {
    await expect(open(other), other).rejects.toMatchObject({ code: "not_allowed" });
  }
});

test("a session whose folder is no longer listed, or was replaced by a link, runs nothing there [H7]", async () => {
  const { agent, store, gates } = await openWorld(
    { sessionFolders: [at("app")] },
    { folder: at("app") },
  );
  const record = {
    id: "agent:one:old",
    agent: "agent:one",
    owner: "",
    workingDirectory: at("scratch"),
  };
  await store.tenant("acme").sessions.open(record);
  const call = { id: record.id, callId: "1", tool: "shell.run", input: { command: "./check.sh" } };
  await expect(agent.sessions.call(call)).rejects.toMatchObject({ code: "not_allowed" });
  expect(await pwned()).toEqual([]);
  expect(gates.acme).toBeDefined();
});

test("a rule for a command allows it in its own folder and in no other [H7]", async () => {
  const sessionFolders = [base];
  const { agent } = await openWorld({ sessionFolders }, { folder: at("app") });
  const run = async (workingDirectory: string, command = "./check.sh") => {
    const { id } = await agent.sessions.open({ workingDirectory });
    return (await agent.sessions.call({ id, callId: "1", tool: "shell.run", input: { command } }))
      .answer;
  };
  expect(await run(at("app"))).toBe("done");
  expect(await run(at("way-in"))).toBe("done");
  for (const other of ["scratch", "app/sub", "app/way-out", "app-else"]) {
    expect(await run(at(other)), other).toBe("pending");
  }
  expect(await pwned()).toEqual([]);
});

test("a command that moves to another folder first is not covered by a rule for this one [H7]", async () => {
  const move: Rule = { ...CHECK, id: "cd", command: ["cd", "**"], folder: at("app") };
  const check: Rule = { ...CHECK, command: ["npm", "test"], folder: at("app") };
  const { gates } = await openWorld({ policy: rules(check, move) });
  const session = gates.acme.sessions.open({ agent: "agent:x", workingDirectory: at("app") });
  const commands = [
    "cd ../scratch && npm test",
    "(cd ../scratch; npm test)",
    "pushd ../scratch; npm test",
    "for d in 1 2; do npm test; cd ../scratch; done",
    "bash -c 'cd ../scratch && npm test'",
    "cd sub/.. && npm test",
    "find sub -name check.sh -execdir npm test ';'",
    "npm test; cd ..",
  ];
  for (const [n, command] of commands.entries()) {
    const answer = await session.call({ callId: `c${n}`, tool: "shell.run", input: { command } });
    expect(answer.answer, command).toBe("pending");
  }
  const alone = { callId: "alone", tool: "shell.run", input: { command: "cd sub" } };
  expect((await session.call(alone)).answer).toBe("done");
});

test("a rule that allows a command without naming its folder is refused when the policy is read [H7]", async () => {
  const refused = async (rule: Partial<Rule>) => openWorld({}, rule);
  await expect(refused({})).rejects.toMatchObject({
    code: "invalid_input",
    details: { hint: expect.stringMatching(/check.*folder/) },
  });
  for (const folder of ["app", "", `${at("app")}/*`, `${at("app")}/../scratch`]) {
    await expect(refused({ folder }), folder).rejects.toMatchObject({ code: "invalid_input" });
  }
  await expect(
    openWorld({
      policy: rules({ ...CHECK, tool: "files.read", path: at("app/**"), folder: at("app") }),
    }),
  ).rejects.toMatchObject({ code: "invalid_input" });
});

test("a command's folder that is replaced by a link after it was judged is not used [H7 H4]", async () => {
  const swap = (point: string) => {
    if (point !== "S5.after") return;
    renameSync(at("app"), at("app-away"));
    symlinkSync(at("scratch"), at("app"));
  };
  const { gates } = await openWorld({ at: swap }, { folder: at("app") });
  const session = gates.acme.sessions.open({ agent: "agent:x", workingDirectory: at("app") });
  const answer = await session.call({
    callId: "1",
    tool: "shell.run",
    input: { command: "./check.sh" },
  });
  expect(answer.answer).toBe("failed");
  expect(await pwned()).toEqual([]);
  await rm(at("app"));
  await rename(at("app-away"), at("app"));
});

test("a deny rule with a folder applies there and below, one without a folder everywhere [H7]", async () => {
  const allow: Rule = { ...CHECK, command: ["./check.sh"], folder: at("app") };
  const deny: Rule = {
    id: "no",
    effect: "deny",
    tool: "shell.run",
    command: ["ls"],
    folder: at("app"),
    reason: "r",
  };
  const { gates } = await openWorld({ policy: rules(allow, deny) });
  const run = async (folder: string, command: string) => {
    const session = gates.acme.sessions.open({ agent: "agent:x", workingDirectory: at(folder) });
    return (await session.call({ callId: "1", tool: "shell.run", input: { command } })).answer;
  };
  expect(await run("app", "ls")).toBe("denied");
  expect(await run("app/sub", "ls")).toBe("denied");
  expect(await run("scratch", "ls")).toBe("pending");
  expect(await run("scratch", "cd ../app && ls")).toBe("denied");
});

test("a sub-agent gets a folder inside its parent's, never another one [H7]", async () => {
  const { gates } = await openWorld({ sessionFolders: [at("app")] }, { folder: at("app") });
  const delegate = async (parent: string, workingDirectory?: string) => {
    const session = gates.acme.sessions.open({ agent: "agent:lead", workingDirectory: parent });
    return session.delegate({
      agent: "agent:sub",
      role: "verify",
      task: "check",
      capsule: "run the check",
      promise: { id: "p", statement: "it works", evidence: [{ name: "tests" }] },
      tools: ["shell.run"],
      ...(workingDirectory === undefined ? {} : { workingDirectory }),
    } as never);
  };
  expect(await delegate(at("app"), at("scratch"))).toMatchObject({
    answer: "denied",
    text: expect.stringContaining("folder"),
  });
  expect((await delegate(at("app"), at("app/way-out"))).answer).toBe("denied");
  expect((await delegate(at("app"), "/")).answer).toBe("denied");
  expect((await delegate("", at("scratch"))).answer).toBe("denied");
  expect(await delegate(at("app"), at("app/sub"))).toMatchObject({
    answer: "delegated",
    delegation: { workingDirectory: at("app/sub") },
  });
  expect((await delegate("", at("app"))).answer).toBe("delegated");
  expect((await delegate(at("app"))).answer).toBe("delegated");
});

test("the tools of a session are described for the folder it works in [S2-06]", async () => {
  const here = defineTool({
    name: "here.look",
    description: ({ workingDirectory }) => `Looks into ${workingDirectory || "nothing"}.`,
    input: { type: "object" },
    readOnly: true,
    execute: () => "",
  });
  const { agent } = await openWorld(
    { tools: [here], sessionFolders: [base] },
    { folder: at("app") },
  );
  const { id: sessionId } = await agent.sessions.open({ workingDirectory: at("app") });
  const { items } = await agent.tools.list({ sessionId });
  expect(items[0]?.description).toContain(`Looks into ${at("app")}.`);
});
