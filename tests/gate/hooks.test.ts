// Every hook point fires where its name says, through the gate, and stops what it guards.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import type { GateHook, HookEvent } from "../../src/gate/hooks.ts";
import { HOOK_POINTS, type HookAnswer, type HookPoint } from "../../src/policy/before-call.ts";
import { AGENT, approve, decisionIdOf, openGate, PERSON, request } from "../support/port-world.ts";

const POINTS = Object.keys(HOOK_POINTS) as HookPoint[];
const SET = { key: "a", value: 1 };

const DELEGATION = {
  agent: "agent:helper",
  role: "research",
  tools: ["world.look"],
  task: "look it up",
  capsule: "all there is to know",
  promise: { id: "p", statement: "it was looked up", evidence: [] },
} as const;

type Answering = (event: HookEvent) => HookAnswer;

function hook(points: readonly HookPoint[], handle: Answering): GateHook {
  return { name: "watch", points, handle };
}

const denies: Answering = ({ point }) => ({ answer: "deny", message: `no at ${point}.` });

/** A life in which every point is reached: the work of a session, a review, an undo, a delegation. */
async function live(hooks: readonly GateHook[]) {
  const problems: string[] = [];
  const world = openGate({ hooks, onHookProblem: ({ message }) => problems.push(message) });
  const { gate } = world;
  const session = gate.sessions.open({ agent: AGENT, owner: "person:owner" });
  const prompt = await session.reach("user_prompt", "Please set a");
  const shortened = await session.reach("before_compaction", { messages: 40 });
  const called = await session.call(request("world.set", SET));
  const done = called.answer === "pending" ? await approve(gate, decisionIdOf(called)) : [called];
  const undone = await session.rollback(PERSON);
  const delegated = await session.delegate(DELEGATION).catch((error: Error) => error);
  if ("token" in delegated) {
    await gate.delegations.report(delegated.delegation.id, "found", delegated.token);
  }
  const stopped = await session.reach("stop", "all is done");
  await session.end("finished");
  return { ...world, session, problems, prompt, shortened, done, undone, delegated, stopped };
}

test("all 14 points fire where their name says and see the session, the input and the result [I-46]", async () => {
  const seen = new Map<HookPoint, HookEvent>();
  const heard = hook(POINTS, (event) => {
    if (!seen.has(event.point)) seen.set(event.point, event);
    return { answer: "allow" };
  });
  const { done, undone, delegated, session } = await live([heard]);
  expect(done).toMatchObject([{ answer: "done" }]);
  expect(undone.undone).toHaveLength(1);
  expect(delegated).toMatchObject({ answer: "delegated" });
  expect([...seen.keys()].toSorted()).toEqual(POINTS.toSorted());
  for (const [, { tenant, sessionId, chain }] of seen) {
    expect(tenant).toBe("acme");
    expect(sessionId === session.id || sessionId.startsWith("dlg-")).toBe(true);
    expect(chain.length).toBeGreaterThan(0);
  }
  const about = Object.fromEntries(seen);
  expect(about).toMatchObject({
    session_start: { sessionId: session.id, owner: "person:owner" },
    user_prompt: { input: "Please set a" },
    before_tool: { tool: "world.set", callId: "c-1", input: SET },
    after_tool: { tool: "world.set", input: SET, result: { answer: "done", text: "set" } },
    before_compaction: { input: { messages: 40 } },
    before_review: { tool: "world.set", input: { tier: "tech" } },
    after_review: { result: { approved: true, validator: "schema" } },
    notification: { input: { type: "confirm" } },
    before_undo: { tool: "world.set", input: { key: "a", value: null } },
    after_undo: { result: { answer: "done" } },
    before_delegation: { input: { agent: "agent:helper", task: "look it up" } },
    after_delegation: {
      chain: ["agent:helper", AGENT],
      result: { state: "reported", output: "found" },
    },
    session_end: { result: { reason: expect.any(String) } },
    stop: { input: "all is done" },
  });
});

test("a hook cannot change what it sees [I-46]", async () => {
  const changes = hook(["before_tool"], (event) => {
    (event.input as { value: number }).value = 999;
    return { answer: "allow" };
  });
  const { done, effects } = await live([changes]);
  expect(done).toMatchObject([{ answer: "denied" }]);
  expect(effects).toEqual([]);
});

/** What a veto at each point leaves undone, as one can see it from outside. */
const STOPPED: Readonly<Record<string, (lived: Awaited<ReturnType<typeof live>>) => void>> = {
  session_start: ({ done, effects, delegated }) => {
    expect(done).toMatchObject([{ answer: "denied", text: expect.stringContaining("no at") }]);
    expect(delegated).toMatchObject({ code: "not_allowed" });
    expect(effects).toEqual([]);
  },
  user_prompt: ({ prompt }) => expect(prompt).toMatchObject({ answer: "deny" }),
  before_tool: ({ done, effects }) => {
    expect(done).toMatchObject([{ answer: "denied" }]);
    expect(effects).toEqual([]);
  },
  before_compaction: ({ shortened }) => expect(shortened).toMatchObject({ answer: "deny" }),
  before_delegation: ({ delegated }) =>
    expect(delegated).toMatchObject({ answer: "denied", text: expect.stringContaining("no at") }),
  before_review: ({ done, effects }) => {
    expect(done).toMatchObject([{ answer: "denied", text: expect.stringContaining("no at") }]);
    expect(effects).toEqual([]);
  },
  before_undo: ({ undone, effects }) => {
    expect(undone.failed).toHaveLength(1);
    expect(effects).toHaveLength(1);
  },
  stop: ({ stopped }) => expect(stopped).toMatchObject({ answer: "deny" }),
};

const VETOES = POINTS.filter((point) => HOOK_POINTS[point].veto);

test.each(VETOES)("a veto at %s stops what it guards [I-46]", async (point) => {
  const check = STOPPED[point];
  if (check === undefined) throw new Error(`no case for ${point}`);
  check(await live([hook([point], denies)]));
});

test.each(VETOES)("a hook that fails at %s means what the table says [I-47]", async (point) => {
  const lived = await live([
    hook([point], () => {
      throw new Error("no at all, broken");
    }),
  ]);
  if (HOOK_POINTS[point].failing === "deny") STOPPED[point]?.(lived);
  else {
    expect(lived.stopped).toEqual({ answer: "allow" });
    expect(lived.problems).toMatchObject([expect.stringContaining("broken")]);
  }
});

test.each(POINTS.filter((point) => !HOOK_POINTS[point].veto))(
  "a no at %s comes too late: it stops nothing and is reported [I-47]",
  async (point) => {
    const lived = await live([hook([point], denies)]);
    expect(lived.done).toMatchObject([{ answer: "done" }]);
    expect(lived.undone.undone).toHaveLength(1);
    expect(lived.delegated).toMatchObject({ answer: "delegated" });
    await expect.poll(() => lived.problems.join()).toContain(`no at ${point}`);
  },
);

test("where nobody can be asked, a hook that asks refuses; before a tool it leads to a person [I-24 I-46]", async () => {
  const asks: Answering = () => ({ answer: "ask", message: "who knows." });
  const { delegated } = await live([hook(["before_delegation"], asks)]);
  expect(delegated).toMatchObject({ answer: "denied", text: expect.stringContaining("who knows") });
  const look = openGate({ hooks: [hook(["before_tool"], asks)] });
  const session = look.gate.sessions.open({ agent: AGENT });
  const answer = await session.call(request("world.look", { key: "a" }));
  expect(answer.answer).toBe("pending");
});

test("a session that ended does no more work until it is opened again, and then it starts anew [I-46]", async () => {
  const heard: string[] = [];
  const hooks = [
    hook(["session_start", "session_end"], ({ point }) => {
      heard.push(point);
      return { answer: "allow" };
    }),
  ];
  const { gate } = openGate({ hooks });
  const open = () => gate.sessions.open({ id: "s", agent: AGENT });
  const session = open();
  await session.call(request("world.look", {}, "1"));
  await session.call(request("world.look", {}, "2"));
  await session.end();
  await expect(session.call(request("world.look", {}, "3"))).rejects.toThrow(/ended/);
  await open().call(request("world.look", {}, "4"));
  expect(heard).toEqual(["session_start", "session_end", "session_start"]);
});

/** A program that is asked as a hook: what it does with the event on its standard input. */
function program(body: string): string {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "hook-")), "hook.mjs");
  const read = 'let text = ""; for await (const part of process.stdin) text += part;';
  writeFileSync(file, `${read} const event = JSON.parse(text); ${body}`);
  return file;
}

function asked(body: string, timeoutMs = 10_000): GateHook {
  const args = [program(body)];
  return { name: "program", points: ["before_tool"], command: process.execPath, args, timeoutMs };
}

test("a program is a hook: it reads the event as JSON and its answer counts [I-46]", async () => {
  const body = `
    const no = event.input.value > 5 || process.env.SECRET_OF_THE_HOST !== undefined;
    console.log(JSON.stringify({ answer: no ? "deny" : "allow", message: event.tool + " by " + event.chain[0] }));`;
  process.env["SECRET_OF_THE_HOST"] = "x";
  const { gate } = openGate({ hooks: [asked(body)] });
  delete process.env["SECRET_OF_THE_HOST"];
  const session = gate.sessions.open({ agent: AGENT });
  const small = await session.call(request("world.set", { key: "a", value: 1 }, "1"));
  expect(small.answer).toBe("pending");
  const large = await session.call(request("world.set", { key: "a", value: 9 }, "2"));
  expect(large).toMatchObject({
    answer: "denied",
    text: expect.stringContaining(`world.set by ${AGENT}`),
  });
});

test.each([
  ["exits with another code than 0", "process.exitCode = 3;", 10_000, "exit code 3"],
  ["writes something else than JSON", 'console.log("fine");', 10_000, "not JSON"],
  ["writes an answer that is none", 'console.log("{}");', 10_000, "an answer that is none"],
  ["writes too much", 'console.log("x".repeat(100_000));', 10_000, "bytes"],
  ["is late", "await new Promise((end) => setTimeout(end, 60_000));", 400, "400 ms"],
])("a program that %s refuses the call [I-47]", async (_, body, timeoutMs, why) => {
  const { gate, effects } = openGate({ hooks: [asked(body, timeoutMs)] });
  const session = gate.sessions.open({ agent: AGENT });
  const answer = await session.call(request("world.set", SET));
  expect(answer).toMatchObject({ answer: "denied", text: expect.stringContaining(why) });
  expect(effects).toEqual([]);
});

test("a program that does not exist refuses the call, and no shell reads its name [I-47]", async () => {
  const hooks = [
    { name: "gone", points: ["before_tool"], command: "true; echo", args: [] },
  ] as const;
  const { gate } = openGate({ hooks });
  const answer = await gate.sessions.open({ agent: AGENT }).call(request("world.set", SET));
  expect(answer).toMatchObject({ answer: "denied", text: expect.stringContaining("ENOENT") });
});

test.each([
  ["an unknown point", { name: "h", points: ["before_lunch"], handle: denies }, "before_lunch"],
  ["no point", { name: "h", points: [], handle: denies }, "names no point"],
  ["no name", { name: " ", points: ["stop"], handle: denies }, "has a name"],
  ["neither function nor program", { name: "h", points: ["stop"] }, "needs a function"],
  ["an empty program", { name: "h", points: ["stop"], command: "" }, "needs a program"],
  ["no time", { name: "h", points: ["stop"], handle: denies, timeoutMs: 0 }, "timeoutMs"],
])("createGate refuses a hook with %s [I-46]", (_, given, why) => {
  expect(() => openGate({ hooks: [given as GateHook] })).toThrow(why);
});
