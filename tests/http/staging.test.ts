// Staging for other executors: a payload that only its platform can read, both reviews, a person, and the platform's own executor.

import { expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { payloadTool } from "../../src/tools/builtin/payload.ts";
import { createWorld } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";
import { openHttp } from "./http-world.ts";

const refusal = (code: string) => expect.objectContaining({ code });
const STAGED = { source: "erp.post", payload: "AAEC/w==", encoding: "base64" as const };

async function openStaging(port: object = {}) {
  const tools = [payloadTool(), ...Object.values(createWorld().tools)];
  const world = await openHttp({ port: { tools, ...port } });
  const agent = await world.client("acme", "agent");
  const reviewer = await world.client("acme", "reviewer");
  const secret = { tenant: "acme", subject: "exec:erp", roles: ["executor"] as const };
  const executor = createClient({
    url: world.server.url,
    token: await world.server.makeToken(secret),
  });
  const { id: sessionId } = await agent.sessions.open({});
  const stage = async (callId: string, more: object = {}) => {
    const answer = await agent.decisions.stage({ sessionId, callId, ...STAGED, ...more });
    if (answer.answer !== "pending") throw new Error(JSON.stringify(answer));
    return answer.decisionId;
  };
  const approve = async (id: string) => {
    const { hash } = await reviewer.interactions.get({ id });
    return reviewer.interactions.approve({ id, hash });
  };
  return { ...world, agent, reviewer, executor, sessionId, stage, approve };
}

test("a staged payload is reviewed twice, approved, executed by its own executor and closed with proof [S0-61]", async () => {
  const { agent, executor, stage, approve } = await openStaging();
  const id = await stage("p1", { metadata: { invoice: 7 } });
  expect(await agent.decisions.get({ id })).toMatchObject({
    state: "pending_ml",
    techVerdict: { approved: true, validator: "schema" },
  });
  expect((await executor.permits.waiting({})).items).toEqual([]);
  await expect(executor.permits.take({ id })).rejects.toEqual(refusal("illegal_transition"));
  expect((await approve(id)).outcome).not.toBe("executed");
  expect((await agent.decisions.get({ id })).state).toBe("approved");
  expect((await executor.permits.waiting({})).items).toMatchObject([{ id }]);
  const permit = await executor.permits.take({ id });
  expect(permit.calls?.[0]?.input).toEqual({ ...STAGED, metadata: { invoice: 7 } });
  const { fence } = permit;
  await executor.permits.renew({ id: permit.id, fence });
  const proof = { booking: "b-1" };
  const closed = await executor.permits.report({
    id: permit.id,
    fence,
    outcome: "executed",
    proof,
  });
  expect(closed).toMatchObject({ state: "executed", executionProof: proof });
  expect((await executor.permits.waiting({})).items).toEqual([]);
});

test("an executor reports a failure, and its token is good for permits alone", async () => {
  const { agent, executor, stage, approve, sessionId } = await openStaging();
  const id = await stage("p1");
  await approve(id);
  const { id: permit, fence } = await executor.permits.take({ id });
  const failed = { id: permit, fence, outcome: "failed" as const, reason: "The ledger is closed." };
  expect(await executor.permits.report(failed)).toMatchObject({
    state: "failed",
    executionError: "The ledger is closed.",
  });
  const others = [
    () => executor.decisions.list({}),
    () => executor.decisions.stage({ sessionId, callId: "x", ...STAGED }),
    () => executor.interactions.list({}),
    () => executor.sessions.open({}),
    () => executor.tasks.list({}),
    () => agent.permits.waiting({}),
  ];
  for (const attempt of others) {
    await expect(attempt(), String(attempt)).rejects.toEqual(refusal("not_allowed"));
  }
});

test("a payload that a review refuses reaches no person and no executor", async () => {
  const no = { ...sampleVerdictValidator("schema"), review: () => ({ ...NO }) };
  const business = sampleVerdictValidator("limits");
  const { agent, sessionId, executor, reviewer } = await openStaging({
    validators: { tech: no, business },
  });
  const answer = await agent.decisions.stage({ sessionId, callId: "p", ...STAGED });
  expect(answer).toMatchObject({ answer: "denied", text: expect.stringContaining("too large") });
  expect((await reviewer.interactions.list({})).items).toEqual([]);
  expect((await executor.permits.waiting({})).items).toEqual([]);
});

const NO = {
  approved: false,
  score: 0,
  reason: "too large",
  severity: "block" as const,
  validator: "schema",
  policyVersion: "1",
};

test("a session's pending questions and calls are called off at once; what was approved stays [S0-24]", async () => {
  const { agent, client, reviewer, executor, stage, approve, sessionId } = await openStaging();
  const kept = await stage("kept");
  await approve(kept);
  const pending = [await stage("a", { payload: "QQ==" }), await stage("b", { payload: "Qg==" })];
  const question = await agent.sessions.ask({ id: sessionId, callId: "q", text: "Which?" });
  const stranger = await client("acme", "agent", "agent:two");
  const gone = { id: sessionId, reason: "The order was canceled." };
  await expect(stranger.sessions.withdrawAll(gone)).rejects.toEqual(refusal("not_found"));
  const { withdrawn } = await agent.sessions.withdrawAll(gone);
  expect([...withdrawn].toSorted()).toEqual([...pending, question.interactionId].toSorted());
  expect((await reviewer.interactions.list({})).items).toEqual([]);
  for (const id of pending) {
    expect((await agent.decisions.get({ id })).state).toBe("rejected_ml");
    await expect(executor.permits.take({ id })).rejects.toEqual(refusal("illegal_transition"));
  }
  expect((await agent.decisions.get({ id: kept })).state).toBe("approved");
  expect((await executor.permits.take({ id: kept })).decisionId).toBe(kept);
});

test("a decision that touches three tables is one record, approved, rejected and executed as a whole [S0-08]", async () => {
  const { agent, reviewer, executor, stage, approve, sessionId } = await openStaging();
  const touching = (invoice: number) => ({
    encoding: "text" as const,
    payload: JSON.stringify(["invoices", "lines", "ledger"].map((table) => ({ table, invoice }))),
  });
  const ids = [];
  for (const at of [1, 2, 3]) ids.push(await stage(`p${at}`, touching(at)));
  const [yes = "", no = "", broken = ""] = ids;
  const listed = async () => (await agent.decisions.list({ sessionId })).items;
  const states = async () => (await listed()).map(({ state }) => state);
  expect((await listed()).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(await states()).toEqual(Array(3).fill("pending_ml"));
  expect((await reviewer.interactions.list({})).items, "one question each").toHaveLength(3);

  await approve(yes);
  const { hash } = await reviewer.interactions.get({ id: no });
  await reviewer.interactions.reject({ id: no, hash, reason: "The ledger is closed." });
  await approve(broken);
  expect((await executor.permits.waiting({})).items.map(({ id }) => id)).toEqual([yes, broken]);
  await expect(executor.permits.take({ id: no })).rejects.toEqual(refusal("illegal_transition"));

  const close = async (id: string, outcome: object) => {
    const { id: permit, fence, calls } = await executor.permits.take({ id });
    expect(calls, "the whole payload under one permit").toHaveLength(1);
    await expect(executor.permits.take({ id }), "and no second one").rejects.toEqual(
      refusal("permit_taken"),
    );
    return executor.permits.report({ id: permit, fence, ...outcome } as never);
  };
  await close(yes, { outcome: "executed", proof: { rows: 3 } });
  await close(broken, { outcome: "failed", reason: "The third table is locked." });
  const now = new Map((await listed()).map((decision) => [decision.id, decision]));
  expect(now.size).toBe(3);
  expect(now.get(yes as never)).toMatchObject({ state: "executed", executionProof: { rows: 3 } });
  expect(now.get(no as never)).toMatchObject({ state: "rejected_ml" });
  expect(now.get(broken as never), "two of its tables may be written: it failed").toMatchObject({
    state: "failed",
    executionError: "The third table is locked.",
  });
});

test("a gate that stages no payloads says so", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent");
  const { id: sessionId } = await agent.sessions.open({});
  const staged = agent.decisions.stage({ sessionId, callId: "p", ...STAGED });
  await expect(staged).rejects.toEqual(refusal("not_found"));
});
