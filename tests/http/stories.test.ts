// What happened, told in order: the story of a session and of a decision, the counter-checks of calls; and what a call would do,
// asked before it is made. Over HTTP and on the command line.

import { expect, test } from "vitest";
import { type AnswerOf, createClient } from "../../src/client/index.ts";
import type { GatePolicy } from "../../src/policy/decide.ts";
import { memoryTaskStore } from "../../src/tasks/create-task-list.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { runHere } from "../fuzz/cli-run.ts";
import { type HttpWorld, openHttp } from "./http-world.ts";

const SET = { tool: "world.set", input: { key: "a", value: 1 } };

type Line = AnswerOf<"sessions.story">["items"][number];

/** The lines as they are read page by page. */
async function told(
  part: (cursor: object) => Promise<{ items: readonly Line[]; next: string | null }>,
): Promise<readonly Line[]> {
  const lines: Line[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await part(cursor === undefined ? {} : { cursor });
    lines.push(...page.items);
    cursor = page.next;
  }
  return lines;
}

async function cli(world: HttpWorld, ...args: readonly string[]) {
  const token = await world.token("acme", "operator");
  const { out, err } = await runHere([
    ...["--json", "--url", world.server.url, "--token", token, ...args],
  ]);
  return out === "" ? err : JSON.parse(out);
}

test("the story of a session has its task, checks, decision, people, operations and sub-agents in order; of a decision its own [I-82]", async () => {
  const warn: GatePolicy = {
    name: "note",
    points: ["pre-tool"],
    check: () => [{ severity: "warning", policy: "note", message: "seen" }],
  };
  const world = await openHttp({ port: { gatePolicies: [warn] } });
  const agent = await world.client("acme", "agent");
  const auditor = await world.client("acme", "auditor");
  const reviewer = await world.client("acme", "reviewer");
  // Added before its session, and nothing of another session.
  const task = await agent.tasks.add({ subject: "Set a" });
  const other = await agent.sessions.open({ id: "other" });
  await agent.sessions.call({ id: other.id, callId: "x", tool: "world.look", input: { key: "k" } });
  const { fence = 0 } = await agent.tasks.claim({ id: task.id });
  const { id } = await agent.sessions.open({ id: "s", claim: { id: task.id, fence } });
  await agent.tasks.link({ id: task.id, fence, sessionId: id });
  const asked = await agent.sessions.call({ id, callId: "set", ...SET });
  if (asked.answer !== "pending") throw new Error("not asked");
  const { hash } = await reviewer.interactions.get({ id: asked.interactionId });
  await reviewer.interactions.approve({ id: asked.interactionId, hash });
  await agent.sessions.call({ id, callId: "look", tool: "world.look", input: { key: "k" } });
  const delegated = await agent.delegations.delegate({
    sessionId: id,
    agent: "agent:below",
    role: "research",
    task: "Look.",
    capsule: "k",
    promise: { id: "p", statement: "looked", evidence: [] },
    tools: ["world.look"],
    calls: 1,
  });
  if (delegated.answer !== "delegated") throw new Error("not delegated");
  const sub = createClient({ url: world.server.url, token: delegated.token });
  const below = { id: delegated.delegation.id, callId: "b" };
  await sub.delegations.call({ ...below, tool: "world.look", input: { key: "below" } });

  const story = await told((cursor) => auditor.sessions.story({ id, limit: 3, ...cursor }));
  const whole = (await auditor.sessions.story({ id })).items;
  expect(story).toEqual(whole);
  expect(story[0]).toMatchObject({ chapter: "task", type: "task.added", subject: task.id });
  const chapters = [...new Set(story.map(({ chapter }) => chapter))];
  expect(chapters).toEqual(
    expect.arrayContaining(["task", "gate", "decision", "interaction", "operation", "plan"]),
  );
  expect(story.some(({ session }) => session === below.id)).toBe(true);
  expect(story.some(({ session }) => session === other.id)).toBe(false);
  expect(story.map(({ seq }) => seq)).toEqual(
    story.map(({ seq }) => seq).toSorted((a, b) => a - b),
  );
  expect(await cli(world, "sessions", "story", id)).toMatchObject({ items: whole });

  const ofDecision = await told((cursor) =>
    auditor.decisions.story({ id: asked.decisionId, limit: 2, ...cursor }),
  );
  const types = ofDecision.map(({ type }) => type);
  for (const type of ["gate.evaluated", "decision.staged", "operation.started"]) {
    expect(types).toContain(type);
  }
  expect(types.at(-1)).toMatch(/^(?:decision|operation)\./);
  const mine = new Set(ofDecision.map(({ subject }) => subject));
  expect(story.filter(({ subject }) => mine.has(subject))).toEqual(ofDecision);
  expect(types.some((type) => type.startsWith("delegation.") || type.startsWith("task."))).toBe(
    false,
  );
  expect(await cli(world, "decisions", "story", asked.decisionId)).toMatchObject({
    items: ofDecision,
  });

  // An agent reads its own, without what the entries hold; another's are missing.
  const own = (await agent.sessions.story({ id })).items;
  expect(own.map(({ seq }) => seq)).toEqual(whole.map(({ seq }) => seq));
  expect(own.every(({ data }) => data === null)).toBe(true);
  expect(whole.some(({ data }) => data !== null)).toBe(true);
  const stranger = await world.client("acme", "agent", "agent:two");
  const missing = expect.objectContaining({ code: "not_found" });
  await expect(stranger.sessions.story({ id })).rejects.toEqual(missing);
  await expect(stranger.decisions.story({ id: asked.decisionId })).rejects.toEqual(missing);
  await expect(auditor.sessions.story({ id: "nobody" })).rejects.toEqual(missing);
  expect(await cli(world, "sessions", "story", "nobody")).toContain("not_found");
  expect(world.problems).toEqual([]);
});

test("a preview says what the gate would answer and the dry run, and stages nothing; a refused call is not looked at [S2-21]", async () => {
  const looked: unknown[] = [];
  const checkpoints: unknown[] = [];
  const sell = defineTool({
    name: "shop.sell",
    description: "Sells.",
    input: {
      type: "object",
      properties: { count: { type: "integer" } },
      required: ["count"],
    },
    safety: { effect: "external", reversible: true, checkpoint: true },
    dryRun({ input, idempotencyKey }) {
      looked.push([input, idempotencyKey]);
      return { summary: `would sell ${input["count"]}` };
    },
    execute: () => Promise.reject(new Error("never")),
    undo: () => ({ tool: "shop.sell", input: { count: 0 } }),
  });
  const rules = [
    {
      id: "few",
      effect: "allow",
      tool: "shop.sell",
      input: [{ at: "$.count", max: 3 }],
      reason: "t",
    },
    {
      id: "many",
      effect: "deny",
      tool: "shop.sell",
      input: [{ at: "$.count", min: 9 }],
      reason: "t",
    },
  ] as const;
  const world = await openHttp({
    port: {
      tools: [sell],
      policy: { version: "1", rules: [...rules] },
      checkpoint(asked) {
        checkpoints.push(asked);
        return { action: "approve" } as never;
      },
    },
  });
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({ id: "s" });
  const preview = (count: number | string, tool = "shop.sell") =>
    agent.sessions.preview({ id, callId: `c${count}`, tool, input: { count } });
  expect(await preview(2)).toEqual({
    verdict: "ask",
    text: "",
    findings: expect.any(Array),
    dryRun: { summary: "would sell 2", preview: "", impact: {} },
    safetyClass: "reversible",
  });
  expect(looked).toEqual([[{ count: 2 }, ""]]);
  expect(await preview(9)).toMatchObject({ verdict: "deny", dryRun: null, safetyClass: "" });
  expect(await preview("two")).toMatchObject({ verdict: "failed", text: expect.any(String) });
  expect(await preview(1, "shop.none")).toMatchObject({ verdict: "failed" });
  expect(looked, "only what is not refused is looked at").toHaveLength(1);
  expect(checkpoints).toEqual([]);
  expect((await agent.decisions.list({ sessionId: id })).items).toEqual([]);
  expect((await agent.operations.list({ sessionId: id })).items).toEqual([]);
  const stranger = await world.client("acme", "agent", "agent:two");
  const call = { id, callId: "x", tool: "shop.sell", input: { count: 1 } };
  await expect(stranger.sessions.preview(call)).rejects.toMatchObject({ code: "not_found" });
  const flags = ["--call-id", "y", "--tool", "shop.sell", "--input", '{"count":3}'];
  const here = ["--json", "--url", world.server.url, "--token", await world.token("acme", "agent")];
  const { out } = await runHere([...here, "sessions", "preview", id, ...flags]);
  expect(JSON.parse(out)).toMatchObject({ dryRun: { summary: "would sell 3" } });
  expect(world.problems).toEqual([]);
});

test("counter-checks are listed page by page for those who compare them with what came of the calls [I-43]", async () => {
  const pay = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: { type: "object" },
    safety: { effect: "external", reverseThinking: true },
    execute: () => "paid",
  });
  const world = await openHttp({ port: { tools: [pay] } });
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({ id: "s" });
  for (const step of ["one", "two", "three"]) {
    const check = {
      step,
      hiddenAssumptions: ["The invoice is right."],
      failureScenarios: ["It was paid before."],
      verdict: "A_holds",
      reason: `looked at it: ${step}`,
    };
    const input = { _reverse_thinking: check };
    await agent.sessions.call({ id, callId: step, tool: "bank.pay", input });
  }
  const auditor = await world.client("acme", "auditor");
  const first = await auditor.counterfactuals.list({ limit: 2 });
  const steps = (items: readonly { readonly step: string }[]) => items.map(({ step }) => step);
  expect(steps(first.items)).toEqual(["one", "two"]);
  expect(first.items[0]).toMatchObject({ sessionId: id, tool: "bank.pay", verdict: "A_holds" });
  const second = await auditor.counterfactuals.list({ limit: 2, cursor: first.next ?? "" });
  expect([steps(second.items), second.next]).toEqual([["three"], null]);
  expect((await cli(world, "counterfactuals", "list")).items).toHaveLength(3);
  await expect(agent.counterfactuals.list({})).rejects.toMatchObject({ code: "not_allowed" });
  const elsewhere = await world.client("bolt", "auditor");
  expect((await elsewhere.counterfactuals.list({})).items).toEqual([]);
});

test("a page of a story looks through ten thousand tasks at most, however many there are [M11]", async () => {
  let pages = 0;
  const store = memoryTaskStore();
  const world = await openHttp({
    port: {
      tasks: {
        ...store,
        async page({ after }) {
          pages += 1;
          return { tasks: [], places: [], next: after < 1_000 ? after + 1 : undefined };
        },
      },
    },
  });
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({ id: "s" });
  await agent.sessions.call({ id, callId: "look", tool: "world.look", input: { key: "k" } });
  expect((await agent.sessions.story({ id })).items.length).toBeGreaterThan(0);
  expect(pages).toBe(20);
});
