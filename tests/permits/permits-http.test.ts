// Permits over HTTP, through the typed client: the executor is the subject of its token.

import { expect, test } from "vitest";
import { openHttp } from "../http/http-world.ts";
import { codeOf } from "../interactions/inbox-world.ts";
import { deploy, deployTool } from "./permit-world.ts";

function decisionIdOf(answer: { readonly answer: string; readonly decisionId?: string }): string {
  if (answer.decisionId === undefined) throw new Error(`expected a question, got ${answer.answer}`);
  return answer.decisionId;
}

async function approvedOverHttp() {
  const http = await openHttp({ port: { tools: [deployTool()] } });
  const agent = await http.client("acme", "agent");
  const { id: session } = await agent.sessions.open({});
  const { callId, tool, input } = deploy();
  const asked = await agent.sessions.call({ id: session, callId, tool, input });
  const id = decisionIdOf(asked);
  const reviewer = await http.client("acme", "reviewer");
  const { hash } = await reviewer.interactions.get({ id });
  expect((await reviewer.interactions.approve({ id, hash })).outcome).toBe("held");
  return { http, agent, session, id, hash };
}

test("permits over HTTP: take, renew, report; the bytes are those that were approved", async () => {
  const { agent, http, id, hash } = await approvedOverHttp();
  const permit = await agent.permits.take({ id, hash });
  expect(permit).toMatchObject({ decisionId: id, fence: 1, hash, calls: [{ tool: "ops.deploy" }] });
  const { raw } = (await http.gates.acme.decisions.get(id)).diff;
  expect(Buffer.from(permit.base64, "base64")).toEqual(Buffer.from(raw));
  const { fence } = permit;
  expect((await agent.permits.renew({ id: permit.id, fence, leaseMs: 60_000 })).stopped).toBe(
    false,
  );
  const report = { id: permit.id, fence, outcome: "executed", proof: { run: 7 } } as const;
  const closed = await agent.permits.report(report);
  expect(closed).toMatchObject({ state: "executed", executionProof: { run: 7 } });
  expect((await agent.permits.report({ ...report, proof: { run: 8 } })).executionProof).toEqual({
    run: 7,
  });
  const { executor, status } = await agent.operations.get({ id: permit.id });
  expect([executor, status]).toEqual(["agent:one", "success"]);
});

test("permits over HTTP: another agent sees nothing, and an operator's program does not report for another", async () => {
  const { http, agent, id } = await approvedOverHttp();
  const stranger = await http.client("acme", "agent", "agent:two");
  expect(await codeOf(stranger.permits.take({ id }))).toBe("not_found");
  const { id: permit, fence } = await agent.permits.take({ id });
  const report = { id: permit, fence, outcome: "failed", reason: "no" } as const;
  expect(await codeOf(stranger.permits.report(report))).toBe("not_found");
  const operator = await http.client("acme", "operator");
  expect(await codeOf(operator.permits.take({ id }))).toBe("permit_taken");
  expect(await codeOf(operator.permits.report(report))).toBe("not_allowed");
  const reviewer = await http.client("acme", "reviewer");
  expect(await codeOf(reviewer.permits.take({ id }))).toBe("not_allowed");
  await agent.permits.giveBack({ id: permit, fence });
  expect((await operator.permits.take({ id })).fence).toBe(2);
});

test("permits over HTTP: the same call under a new call id finds the question that waits, and hears of an edit", async () => {
  const http = await openHttp({ port: { tools: [deployTool()] } });
  const agent = await http.client("acme", "agent");
  const { id: session } = await agent.sessions.open({});
  const call = { id: session, tool: "ops.deploy", input: { service: "shop", version: 1 } };
  const id = decisionIdOf(await agent.sessions.call({ ...call, callId: "c-1" }));
  expect(decisionIdOf(await agent.sessions.call({ ...call, callId: "c-2" }))).toBe(id);
  const reviewer = await http.client("acme", "reviewer");
  const { hash } = await reviewer.interactions.get({ id });
  const inputs = { "0": { service: "shop", version: 2 } };
  await reviewer.interactions.edit({ id, hash, inputs });
  const again = await agent.sessions.call({ ...call, callId: "c-3" });
  expect(again).toMatchObject({
    answer: "pending",
    edited: { fields: ["version"], original: { version: 1 }, input: { version: 2 } },
  });
});
