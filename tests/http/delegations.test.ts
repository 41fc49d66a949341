// Delegation and runs over HTTP: a sub-agent takes part with a token of its own, in any language, and people approve plans.

import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { text as textOf } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { type Client, createClient } from "../../src/client/index.ts";
import { moveRun } from "../../src/delegation/runs.ts";
import type { RunId } from "../../src/model/delegation.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { type HttpWorld, openHttp } from "./http-world.ts";

const refusal = (code: string) => expect.objectContaining({ code });

const TASK = {
  agent: "agent:below",
  role: "research" as const,
  task: "Look at k.",
  capsule: "The key is k.",
  promise: { id: "looked", statement: "k was looked at", evidence: [] },
  tools: ["world.look"],
  calls: 5,
};
const LOOK = { tool: "world.look", input: { key: "k" } };
const SET = { tool: "world.set", input: { key: "k", value: 1 } };

async function openDelegating(options: Parameters<typeof openHttp>[0] = {}) {
  const world = await openHttp(options);
  const lead = await world.client("acme", "agent", "agent:one");
  const operator = await world.client("acme", "operator");
  const { id: sessionId } = await lead.sessions.open({ id: "root" });
  return { ...world, lead, operator, sessionId };
}

async function delegated(world: HttpWorld, lead: Client, sessionId: string, more: object = {}) {
  const answer = await lead.delegations.delegate({ ...TASK, sessionId, ...more });
  if (answer.answer !== "delegated") throw new Error(JSON.stringify(answer));
  const { delegation, token } = answer;
  const sub = createClient({ url: world.server.url, token });
  return { id: delegation.id, token, sub, delegation };
}

test("a dry run shows what would be delegated and starts nothing; a refusal says why [S3-01]", async () => {
  const { lead, sessionId } = await openDelegating();
  const dry = await lead.delegations.delegate({ ...TASK, sessionId, dryRun: true });
  expect(dry).toMatchObject({ answer: "dry_run", allowed: true, capsule: { task: TASK.task } });
  const wrong = await lead.delegations.delegate({ ...TASK, sessionId, agent: "agent:one" });
  expect(wrong).toMatchObject({ answer: "denied", text: expect.stringContaining("above itself") });
  expect((await lead.delegations.list({ rootSession: sessionId })).items).toEqual([]);
});

test("the token of a sub-agent is shown once: the answer that is repeated for a key has none", async () => {
  const { lead, sessionId, store } = await openDelegating();
  const ask = () =>
    lead.delegations.delegate({ ...TASK, sessionId }, { idempotencyKey: "delegate-once" });
  const [first, again] = [await ask(), await ask()];
  if (first.answer !== "delegated" || again.answer !== "delegated")
    return expect.fail(first.answer);
  expect(again.delegation.id).toBe(first.delegation.id);
  expect([first.token === "", again.token]).toEqual([false, ""]);
  expect(await store.tenant("acme").delegations.list({ rootSession: sessionId })).toHaveLength(1);
});

test("a sub-agent calls within its scope, asks, reports, and its token is worth nothing else [S3-41 I8]", async () => {
  const world = await openDelegating();
  const { lead, sessionId } = world;
  const { id, sub } = await delegated(world, lead, sessionId);
  expect(await sub.delegations.attach({ id })).toMatchObject({
    task: TASK.task,
    text: expect.stringContaining(TASK.capsule),
  });
  const done = await sub.delegations.call({ id, callId: "1", ...LOOK });
  expect(done.answer).toBe("done");
  const denied = await sub.delegations.call({ id, callId: "2", ...SET });
  expect(denied).toMatchObject({ answer: "denied" });
  const asked = await sub.delegations.ask({ id, callId: "q", text: "Which shelf?" });
  expect(asked.answer).toBe("pending");
  expect((await sub.delegations.resultOf({ id, key: "q" })).result?.answer).toBe("pending");
  const other = await delegated(world, lead, sessionId, { agent: "agent:beside" });
  const elsewhere = [
    () => sub.sessions.open({}),
    () => sub.sessions.call({ id: sessionId, callId: "x", ...LOOK }),
    () => sub.tasks.list({}),
    () => sub.decisions.list({ sessionId: id }),
    () => sub.delegations.attach({ id: other.id }),
    () => sub.delegations.report({ id: other.id, output: "mine" }),
    () => sub.delegations.revoke({ id: other.id, reason: "mine" }),
    () => lead.delegations.call({ id, callId: "y", ...LOOK }),
  ];
  for (const attempt of elsewhere) {
    await expect(attempt(), String(attempt)).rejects.toMatchObject({
      code: expect.stringMatching(/^not_(?:allowed|found)$/),
    });
  }
  const report = await sub.delegations.report({ id, output: "k was looked at" });
  const { scope, traceId } = await lead.delegations.get({ id });
  const named = { planId: scope.planId, traceId, promiseId: expect.stringMatching(/./) };
  expect(report).toMatchObject({ ...named, state: "reported", promiseMet: true });
  await expect(sub.delegations.call({ id, callId: "3", ...LOOK })).rejects.toEqual(
    refusal("illegal_transition"),
  );
  expect((await lead.delegations.get({ id })).output).toBe("k was looked at");
  expect(world.worlds.acme.effects).toEqual([]);
});

test("a sub-agent delegates further within its own scope, and what it lacks it cannot pass on", async () => {
  const world = await openDelegating();
  const { id, sub } = await delegated(world, world.lead, world.sessionId, { depth: 1 });
  const below = { agent: "agent:deep", capsule: "k", calls: 1 };
  const inner = await delegated(world, sub, id, below);
  expect(inner.delegation.agents).toEqual(["agent:deep", "agent:below", "agent:one"]);
  expect((await inner.sub.delegations.call({ id: inner.id, callId: "1", ...LOOK })).answer).toBe(
    "done",
  );
  const more = { ...TASK, ...below, agent: "agent:other", sessionId: id, tools: ["world.set"] };
  expect((await sub.delegations.delegate(more)).answer).toBe("denied");
});

test("revoking stops the sub-agent and everything below it; only its root's agent or an operator may [S3-30]", async () => {
  const world = await openDelegating();
  const { lead, operator, sessionId } = world;
  const { id, sub } = await delegated(world, lead, sessionId, { depth: 1 });
  const inner = await delegated(world, sub, id, { agent: "agent:deep", capsule: "k", calls: 1 });
  const stranger = await world.client("acme", "agent", "agent:two");
  await expect(stranger.delegations.revoke({ id, reason: "no" })).rejects.toEqual(
    refusal("not_found"),
  );
  await expect(stranger.delegations.get({ id })).rejects.toEqual(refusal("not_found"));
  expect((await operator.delegations.revoke({ id, reason: "enough" })).state).toBe("revoked");
  for (const one of [sub.delegations.call({ id, callId: "1", ...LOOK })]) {
    await expect(one).rejects.toEqual(refusal("illegal_transition"));
  }
  const late = await inner.sub.delegations
    .call({ id: inner.id, callId: "1", ...LOOK })
    .catch((error) => error);
  expect(JSON.stringify([late, String(late.code)])).toMatch(/denied|illegal_transition/);
  expect(world.worlds.acme.reads).toEqual([]);
});

test("a sub-agent that gives up ends its delegation with the reason", async () => {
  const world = await openDelegating();
  const { id, sub } = await delegated(world, world.lead, world.sessionId);
  expect(await sub.delegations.fail({ id, reason: "no k" })).toMatchObject({
    state: "failed",
    reason: "no k",
  });
});

test("the work of a sub-agent is planned, chosen from and rolled back from outside, also after it was revoked", async () => {
  const shelf = new Map<string, number>();
  const input = {
    type: "object",
    properties: { count: { type: ["integer", "null"] } },
    required: ["count"],
    additionalProperties: false,
  };
  const put = defineTool({
    name: "shelf.put",
    description: "Writes a count on the shelf.",
    input,
    safety: { effect: "external", reversible: true },
    resources: () => [{ kind: "other", id: "sql:shop/shelf", access: "write" }],
    execute({ input: { count } }) {
      const before = shelf.get("a") ?? null;
      if (typeof count === "number") shelf.set("a", count);
      else shelf.delete("a");
      return { text: "put", isError: false, data: { count: before } };
    },
    undo: ({ output }) => ({ tool: "shelf.put", input: output as { count: number | null } }),
  });
  const rules = [
    { id: "put", effect: "allow", tool: "shelf.put", reason: "harmless here" },
  ] as const;
  const port = { tools: [put], policy: { version: "1", rules: [...rules] } };
  const world = await openHttp({ port });
  const lead = await world.client("acme", "agent", "agent:one");
  const operator = await world.client("acme", "operator");
  const { id: sessionId } = await lead.runs.start({ ...RUN, promise: TASK.promise });
  for (const phase of ["spec", "plan"] as const) await lead.runs.enter({ id: sessionId, phase });
  const files = ["sql:shop/shelf"];
  const asked = await lead.runs.proposePlan({ id: sessionId, files });
  const reviewer = await world.client("acme", "reviewer");
  const { hash } = await reviewer.interactions.get({ id: asked.interactionId });
  await reviewer.interactions.answer({ id: asked.interactionId, hash, answer: "approve" });
  await lead.runs.enter({ id: sessionId, phase: "execute" });
  const code = { role: "code", tools: ["shelf.put"], planFiles: files, promise: "looked" };
  const { id, sub } = await delegated(world, lead, sessionId, code);
  const putCount = async (callId: string, count: number) => {
    const done = await sub.delegations.call({ id, callId, tool: "shelf.put", input: { count } });
    if (done.answer !== "done") throw new Error(JSON.stringify(done));
    return done.operationId;
  };
  const first = await putCount("1", 4);
  const second = await putCount("2", 6);
  expect(shelf.get("a")).toBe(6);
  await operator.delegations.revoke({ id, reason: "wrong" });
  const stranger = await world.client("acme", "agent", "agent:two");
  await expect(stranger.delegations.rollback({ id })).rejects.toEqual(refusal("not_found"));
  const plan = await operator.delegations.rollbackPlan({ id });
  expect(plan.items).toMatchObject([
    { operationId: second, state: "ready", undoInput: { count: 4 } },
    { operationId: first, state: "ready", undoInput: { count: null } },
  ]);
  await expect(operator.delegations.rollback({ id, only: ["none"] })).rejects.toEqual(
    refusal("not_found"),
  );
  expect((await operator.operations.undo({ id: second })).undone).toHaveLength(1);
  expect(shelf.get("a")).toBe(4);
  const { items } = await operator.delegations.rollback({ id, only: [first] });
  expect(items).toMatchObject([{ delegationId: id, report: { undone: [{ tool: "shelf.put" }] } }]);
  expect(shelf.has("a")).toBe(false);
});

const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (!hasPython) console.warn("python3 is missing: the sub-agent in another language is not tested");

// skip: some machines have no python3, and no other language is sure to be there.
test.skipIf(!hasPython)("a sub-agent written in Python works over HTTP alone [I8]", async () => {
  const world = await openDelegating();
  const { lead, sessionId, server } = world;
  const { id, token } = await delegated(world, lead, sessionId);
  const child = spawn("python3", [path.join(import.meta.dirname, "subagent.py")], {
    env: { PATH: process.env["PATH"] ?? "" },
  });
  const elsewhere = [
    ["open", "POST", "/v1/sessions"],
    ["decisions", "GET", "/v1/decisions"],
    ["parent", "GET", `/v1/sessions/${encodeURIComponent(sessionId)}`],
  ];
  child.stdin.end(JSON.stringify({ url: server.url, id, token, calls: [LOOK, SET], elsewhere }));
  const [out, err] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  expect(err).toBe("");
  const said = JSON.parse(out);
  expect(said).toMatchObject({
    capsule: { task: TASK.task, context: TASK.capsule },
    0: { answer: "done" },
    1: { answer: "denied" },
    asked: { answer: "pending" },
    open: { code: "not_allowed" },
    decisions: { code: "not_allowed" },
    parent: { code: "not_allowed" },
    report: { state: "reported", promiseMet: true },
    after: { code: "illegal_transition" },
  });
  expect(world.worlds.acme.effects).toEqual([]);
  expect(await lead.delegations.get({ id })).toMatchObject({ state: "reported", promiseMet: true });
});

const RUN = {
  feature: "Shelves",
  promise: { id: "p", statement: "it works", evidence: [{ name: "tests" }] },
  budget: 3,
};

test("a person approves the plan of a run in the inbox, bound to its files, and only then it executes", async () => {
  const world = await openHttp();
  const lead = await world.client("acme", "agent", "agent:one");
  const reviewer = await world.client("acme", "reviewer");
  const operator = await world.client("acme", "operator");
  const { id } = await lead.runs.start(RUN);
  for (const phase of ["spec", "plan"] as const) {
    expect(await lead.runs.enter({ id, phase })).toMatchObject({ entered: true, run: { phase } });
  }
  await expect(lead.runs.enter({ id, phase: "execute" })).rejects.toEqual(
    refusal("illegal_transition"),
  );
  const files = ["/srv/shop/a.ts", "/srv/shop/b.ts"];
  const asked = await lead.runs.proposePlan({ id, files });
  if (asked.answer !== "pending") throw new Error("not asked");
  const question = await reviewer.interactions.get({ id: asked.interactionId });
  for (const file of files) expect(question.displayText).toContain(file);
  const yes = { id: question.id, answer: "approve" };
  await expect(reviewer.interactions.answer({ ...yes, hash: "0".repeat(64) })).rejects.toEqual(
    refusal("approval_void"),
  );
  expect((await lead.runs.get({ id })).planFiles).toEqual([]);
  await reviewer.interactions.answer({ ...yes, hash: question.hash });
  expect((await lead.runs.get({ id })).planFiles).toEqual(files);
  expect(await lead.runs.proposePlan({ id, files })).toMatchObject({
    answer: "answered",
    value: "approve",
  });
  expect((await lead.runs.enter({ id, phase: "execute" })).entered).toBe(true);
  const [entry] = await approvals(world, id);
  expect(entry?.actor).toBe("person:reviewer");
  expect(await operator.runs.stop({ id, reason: "enough" })).toMatchObject({
    status: "stopped",
    reason: "enough",
  });
  await expect(lead.runs.enter({ id, phase: "verify" })).rejects.toEqual(
    refusal("illegal_transition"),
  );
});

async function approvals(world: HttpWorld, id: string) {
  const entries = await world.store.tenant("acme").audit.read({ after: 0, limit: 500 });
  return entries.filter(({ type, subject }) => type === "run.plan_approved" && subject === id);
}

test("a rejected plan, a question that only looks like one and the lead's owner approve nothing", async () => {
  const world = await openHttp();
  const token = await world.server.makeToken({
    tenant: "acme",
    subject: "agent:owned",
    roles: ["agent"],
    owner: "person:reviewer",
  });
  const owned = createClient({ url: world.server.url, token });
  const reviewer = await world.client("acme", "reviewer");
  const other = await world.client("acme", "reviewer", "person:eve");
  const { id } = await owned.runs.start(RUN);
  for (const phase of ["spec", "plan"] as const) await owned.runs.enter({ id, phase });
  const asked = await owned.runs.proposePlan({ id, files: ["/srv/a"] });
  if (asked.answer !== "pending") throw new Error("not asked");
  const { hash } = await reviewer.interactions.get({ id: asked.interactionId });
  const answer = { id: asked.interactionId, hash };
  // The lead acts for this person.
  await expect(reviewer.interactions.answer({ ...answer, answer: "approve" })).rejects.toEqual(
    refusal("not_allowed"),
  );
  await other.interactions.answer({ ...answer, answer: "reject" });
  expect(await owned.runs.proposePlan({ id, files: ["/srv/a"] })).toMatchObject({
    value: "reject",
  });
  const forged = await owned.sessions.ask({
    id,
    callId: "plan-x",
    text: "Lunch?\n/srv/b\nHash of the list: x",
    choices: ["approve"],
  });
  if (forged.answer !== "pending") throw new Error("not asked");
  const lunch = await other.interactions.get({ id: forged.interactionId });
  await other.interactions.answer({ id: lunch.id, hash: lunch.hash, answer: "approve" });
  expect((await owned.runs.get({ id })).planFiles).toEqual([]);
  const stranger = await world.client("acme", "agent", "agent:two");
  await expect(stranger.runs.proposePlan({ id, files: ["/srv/a"] })).rejects.toEqual(
    refusal("not_found"),
  );
  await expect(stranger.runs.stop({ id, reason: "no" })).rejects.toEqual(refusal("not_found"));
});

test("a run names its artefacts, ships with observed evidence alone and is finished over HTTP; evidence says whether it was observed", async () => {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-run-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const world = await openHttp({ port: { sessionFolders: [folder] } });
  const lead = await world.client("acme", "agent", "agent:one");
  const reviewer = await world.client("acme", "reviewer");
  const { id } = await lead.runs.start(RUN);
  const spec = { id, phase: "spec" as const, path: path.join(folder, "spec.md") };
  expect((await lead.runs.nameArtefact(spec)).artefacts).toEqual({ spec: spec.path });
  await expect(lead.runs.nameArtefact({ ...spec, path: "/etc/passwd" })).rejects.toEqual(
    refusal("not_allowed"),
  );
  await expect(lead.runs.finish({ id })).rejects.toEqual(refusal("illegal_transition"));
  for (const phase of ["spec", "plan"] as const) await lead.runs.enter({ id, phase });
  const asked = await lead.runs.proposePlan({ id, files: [path.join(folder, "a.ts")] });
  if (asked.answer !== "pending") throw new Error("not asked");
  const { hash } = await reviewer.interactions.get({ id: asked.interactionId });
  await reviewer.interactions.answer({ id: asked.interactionId, hash, answer: "approve" });
  for (const phase of ["execute", "verify"] as const) await lead.runs.enter({ id, phase });
  // As the verify tool records what its command has shown.
  const { runs } = world.store.tenant("acme");
  const at = "2026-11-15T06:00:00.000Z";
  const shown = { command: "npm test", exitCode: 0, keyOutput: "9 passed", conclusion: "fine" };
  const proof = {
    key: "k",
    promiseId: "p",
    need: "tests",
    ...shown,
    green: true,
    observed: true,
    at,
  };
  const recorded = { kind: "evidence_recorded", evidence: { ...proof, sessionId: id } } as const;
  await moveRun(runs, id as RunId, () => recorded, { actor: "agent:one" });
  expect((await lead.runs.get({ id })).evidence).toMatchObject([{ need: "tests", observed: true }]);
  await lead.runs.enter({ id, phase: "ship" });
  expect(await lead.runs.finish({ id })).toMatchObject({ status: "done" });
  const stranger = await world.client("acme", "agent", "agent:two");
  await expect(stranger.runs.finish({ id })).rejects.toEqual(refusal("not_found"));
});
