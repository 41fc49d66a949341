// What a tool may and may not influence while its call goes through the gate.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { verifyTools } from "../../src/delegation/verify.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Progress, Tool } from "../../src/tools/tool.ts";
import {
  AGENT,
  approve,
  collected,
  decisionIdOf,
  openGate,
  request,
  rules,
} from "../support/port-world.ts";

const input = { type: "object" } as const;
const policy = rules({ id: "a", effect: "allow", tool: "slow.*", reason: "r" });

function slow() {
  const began = Promise.withResolvers<void>();
  const tool = defineTool({
    name: "slow.read",
    description: "Takes its time.",
    input,
    safety: { effect: "read" },
    permissionClass: "readonly",
    execute: ({ signal, progress }) =>
      new Promise<string>((_, reject) => {
        progress({ message: "half way" });
        signal.addEventListener("abort", () => reject(new Error("given up")));
        began.resolve();
      }),
  });
  return { tool, began: began.promise };
}

test("aborting a call, alone or in a batch, reaches the tool that runs [S2-04]", async () => {
  for (const how of ["call", "callAll"] as const) {
    const { tool, began } = slow();
    const { gate } = openGate({ tools: [tool], policy });
    const session = gate.sessions.open({ agent: AGENT });
    const stop = new AbortController();
    const sent = request("slow.read", {});
    const answers =
      how === "call"
        ? session.call(sent, { signal: stop.signal }).then((answer) => [answer])
        : collected(session.callAll([sent], { signal: stop.signal })).then((all) =>
            all.map((one) => one.answer),
          );
    await began;
    stop.abort();
    const late = sleep(10_000).then(() => "still runs");
    expect(await Promise.race([answers, late]), how).toMatchObject([{ answer: "failed" }]);
  }
});

test("progress of a running tool reaches the caller with the id of the call [S2-05]", async () => {
  for (const how of ["call", "callAll"] as const) {
    const { tool, began } = slow();
    const { gate } = openGate({ tools: [tool], policy });
    const session = gate.sessions.open({ agent: AGENT });
    const heard: [string, Progress][] = [];
    const stop = new AbortController();
    const options = {
      signal: stop.signal,
      onProgress: (callId: string, report: Progress) => heard.push([callId, report]),
    };
    const sent = request("slow.read", {}, "c-7");
    const over =
      how === "call" ? session.call(sent, options) : collected(session.callAll([sent], options));
    await began;
    stop.abort();
    await over;
    expect(heard, how).toEqual([["c-7", { message: "half way" }]]);
  }
});

test("no more calls of a batch run at once than the gate allows [S2-84]", async () => {
  let running = 0;
  let most = 0;
  const tool = defineTool({
    name: "slow.look",
    description: "Looks.",
    input,
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    async execute() {
      running += 1;
      most = Math.max(most, running);
      await new Promise((end) => setImmediate(end));
      running -= 1;
      return "seen";
    },
  });
  const { gate } = openGate({ tools: [tool], policy, maxAtOnce: 2 });
  const session = gate.sessions.open({ agent: AGENT });
  const calls = Array.from({ length: 8 }, (_, at) => request("slow.look", {}, `c-${at}`));
  expect(await collected(session.callAll(calls))).toHaveLength(8);
  expect(most).toBe(2);
});

test.each([true, false])(
  "a tool that calls itself destructive (%s) and read-only is asked about all the same [S2-37 S2-38]",
  async (destructive) => {
    const tool = defineTool({
      name: "disk.wipe",
      description: "Wipes.",
      input,
      safety: { effect: "external" },
      execute: () => "wiped",
    });
    const told: Tool = { ...tool, metadata: { ...tool.metadata, destructive, readOnly: true } };
    const { gate } = openGate({ tools: [told] });
    const answer = await gate.sessions.open({ agent: AGENT }).call(request("disk.wipe", {}));
    expect(answer.answer).toBe("pending");
  },
);

/** A tool that records which of its parts are read, and which are called. */
function watched(tool: Tool) {
  const asked = new Set<string>();
  const called: string[] = [];
  const proxy = new Proxy(tool, {
    get(target, name, receiver) {
      asked.add(String(name));
      const part: unknown = Reflect.get(target, name, receiver);
      if (typeof part !== "function") return part;
      return (...given: unknown[]) => {
        called.push(String(name));
        return Reflect.apply(part, target, given);
      };
    },
  });
  return { proxy, asked, called };
}

const blind = defineTool({
  name: "disk.fill",
  description: "Fills.",
  input,
  safety: { effect: "external", reversible: true },
  dryRun: () => "would fill",
  execute: () => "filled",
  undo: () => ({ tool: "disk.fill", input: {} }),
});

test("a tool takes no part in its own permission: methods that would allow it are never asked for [S2-47]", async () => {
  const traps = [
    "allow",
    "isAllowed",
    "allows",
    "permission",
    "checkPermission",
    "permit",
    "decide",
  ];
  const told = Object.assign(
    { ...blind },
    Object.fromEntries(traps.map((one) => [one, () => true])),
  );
  const { proxy, asked, called } = watched(told);
  const { gate } = openGate({ tools: [proxy] });
  const answer = await gate.sessions.open({ agent: AGENT }).call(request("disk.fill", {}));
  expect(answer.answer).toBe("pending");
  expect(traps.filter((trap) => asked.has(trap) || called.includes(trap))).toEqual([]);
  expect(called, "judging asks a tool only to read its input").not.toContain("execute");
});

test("reading what a tool declares runs nothing of it; its callbacks are waited for when it is called [S2-106 S2-107]", async () => {
  const { proxy, called } = watched({ ...blind });
  const { gate } = openGate({ tools: [proxy] });
  await gate.offered();
  await gate.offered({ all: true });
  gate.tools.metadataFor("disk.fill");
  gate.tools.all();
  const session = gate.sessions.open({ agent: AGENT });
  await session.tools();
  expect(called.filter((one) => one !== "description")).toEqual([]);
  const id = decisionIdOf(await session.call(request("disk.fill", {})));
  expect(called).toContain("dryRun");
  expect(called).not.toContain("execute");
  expect(await approve(gate, id)).toMatchObject([{ answer: "done", undo: { tool: "disk.fill" } }]);
  expect(called.indexOf("dryRun")).toBeLessThan(called.indexOf("execute"));
  expect(called.indexOf("execute")).toBeLessThan(called.indexOf("generateUndo"));
});

test("a result processor knows whose output it looks at: the call and its tool [I-48]", async () => {
  const seen: unknown[] = [];
  const { gate } = openGate({
    policy: rules({ id: "a", effect: "allow", tool: "disk.fill", reason: "r" }),
    tools: [blind],
    processor: {
      async process(call, text) {
        seen.push(call);
        return { text: `${text}!`, truncated: false, storedPath: "" };
      },
    },
  });
  const session = gate.sessions.open({ id: "s", agent: AGENT });
  expect(await session.call(request("disk.fill", {}, "c-9"))).toMatchObject({ text: "filled!" });
  expect(seen).toEqual([{ tenant: "acme", sessionId: "s", callId: "c-9", tool: "disk.fill" }]);
});

test("a need that names a command is met by observed evidence alone, not by what an agent reports [I-61 I-64]", async () => {
  await using store = memoryStore();
  const gate = createGate({
    store,
    tenant: "acme",
    tools: verifyTools({ store, tenant: "acme" }),
    policy: rules({ id: "v", effect: "allow", tool: "verify.result", reason: "r" }),
  });
  const promise = {
    id: "p",
    statement: "it works",
    evidence: [{ name: "tests", command: "true" }],
  };
  const terms = {
    feature: "f",
    lead: AGENT,
    promise,
    documents: "",
    evidenceFolder: "",
    budget: 5,
  };
  const run = await gate.runs.start(terms);
  for (const phase of ["spec", "plan", "execute", "verify"] as const) {
    if (phase === "execute") {
      await gate.runs.approvePlan(run.id, ["/w/a.ts"], { actor: "person:ada" });
    }
    await gate.runs.enter(run.id, phase, { actor: AGENT });
  }
  const workingDirectory = process.cwd();
  const session = gate.sessions.open({ id: run.id, agent: AGENT, workingDirectory });
  const claim = { need: "tests", command: "true", exitCode: 0, keyOutput: "9 passed" };
  const claimed = { ...claim, verdict: "passed", conclusion: "All pass." };
  expect(await session.call(request("verify.result", claimed, "1"))).toMatchObject({
    answer: "done",
    text: expect.stringContaining("claim"),
  });
  expect((await gate.runs.get(run.id)).evidence).toMatchObject([{ green: true, observed: false }]);
  const ship = () => gate.runs.enter(run.id, "ship", { actor: AGENT });
  await expect(ship()).rejects.toMatchObject({ code: "illegal_transition" });
  const asked = await session.call(
    request("verify.command", { need: "tests", command: "true" }, "2"),
  );
  expect(await approve(gate, decisionIdOf(asked))).toMatchObject([{ answer: "done" }]);
  expect((await gate.runs.get(run.id)).evidence.at(-1)).toMatchObject({ observed: true });
  expect(await ship()).toMatchObject({ entered: true });
});
