// A request for every route, made of the ids of one subject's records.

import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import path from "node:path";
import { PATHS, type RouteName } from "../../src/http/paths.ts";
import type { HttpWorld, Tenant } from "./http-world.ts";

/** What one agent of one tenant has: a session, a call that waits, one that ran, a question, a task, a run, a rule, a grant. */
export interface Records {
  readonly sessionId: string;
  readonly decisionId: string;
  readonly interactionId: string;
  readonly questionId: string;
  readonly operationId: string;
  readonly taskId: string;
  readonly runId: string;
  readonly delegationId: string;
  /** A proposal of a subject without a token. */
  readonly ruleId: string;
  readonly grantId: string;
  readonly hash: string;
}

let count = 0;

export async function makeRecords(
  world: HttpWorld,
  tenant: Tenant,
  agent: string,
): Promise<Records> {
  count += 1;
  const id = `${agent}:matrix-${count}`;
  const gate = world.gates[tenant];
  await world.store.tenant(tenant).sessions.open({ id, agent, owner: "", workingDirectory: "" });
  const session = gate.sessions.open({ id, agent });
  const input = { key: `canary-${tenant}`, value: `${count}` };
  const asked = await session.call({ callId: "ask", tool: "world.set", input });
  const done = await session.call({ callId: "do", tool: "world.look", input: { key: "k" } });
  const question = await session.ask({ callId: "question", text: `canary-${tenant}?` });
  if (asked.answer !== "pending" || done.answer !== "done") throw new Error("no records");
  const task = await world.tasks[tenant].add({ subject: `canary-${tenant} ${count}` });
  const { hash } = await gate.interactions.get(asked.interactionId);
  const run = await gate.runs.start({
    feature: `canary-${tenant} ${count}`,
    lead: agent,
    promise: { id: "p", statement: "it works", evidence: [] },
    documents: "",
    evidenceFolder: "",
    budget: 3,
  });
  const place = { owner: "", workingDirectory: "" };
  await world.store.tenant(tenant).sessions.open({ id: run.id, agent, ...place });
  const delegated = await session.delegate(DELEGATION);
  if (delegated.answer !== "delegated") throw new Error("not delegated");
  const rule = await gate.standingRules.propose({ ...RULE, by: "person:author" });
  const grant = await gate.grants.give({
    ...GRANT,
    sessionId: id,
    reason: `canary-${tenant}`,
    scope: { kind: "finding" },
    grantor: "user",
    by: "person:author",
  });
  return {
    sessionId: id,
    decisionId: asked.decisionId,
    interactionId: asked.interactionId,
    questionId: question.interactionId,
    operationId: done.operationId,
    taskId: task.id,
    runId: run.id,
    delegationId: delegated.delegation.id,
    ruleId: rule.id,
    grantId: grant.id,
    hash,
  };
}

const DELEGATION = {
  agent: "agent:below",
  role: "research",
  task: "Look at k.",
  capsule: "The key is k.",
  promise: { id: "looked", statement: "k was looked at", evidence: [] },
  tools: ["world.look"],
  calls: 5,
} as const;
const RULE = {
  tool: "world.set",
  pattern: { key: { equals: "a" }, value: { atMost: 10 } },
  reason: "small changes",
  forMs: 60_000,
} as const;
const GRANT = { finding: { policy: "scope", message: "not in the plan" } } as const;

/** The input of a route about these records; what it needs beside them is right. */
export function sampleInput(name: RouteName, of: Records): Record<string, unknown> {
  const id = idFor(name, of);
  const given = { ...(PATHS[name].includes(":id") ? { id } : {}) };
  const seen = { ...given, hash: of.hash };
  const call = { callId: "c", tool: "world.look", input: { key: "k" } };
  const more: Partial<Record<RouteName, object>> = {
    "sessions.call": call,
    "sessions.stream": call,
    "sessions.cancel": { callId: "c" },
    "sessions.permit": call,
    "sessions.preview": call,
    "sessions.report": { key: "k", outcome: "failed", reason: "no" },
    "sessions.callAll": { calls: [call] },
    "sessions.stage": { calls: [call] },
    "sessions.ask": { callId: "q", text: "May I?" },
    "sessions.resultOf": { key: "question" },
    "sessions.reach": { point: "user_prompt", input: "Hello" },
    "sessions.reply": { interactionId: of.interactionId, text: "because" },
    "sessions.withdrawAll": { reason: "not any more" },
    "decisions.stage": {
      sessionId: of.sessionId,
      callId: "p",
      source: "erp",
      payload: "x",
      encoding: "text",
    },
    "decisions.list": { sessionId: of.sessionId },
    "decisions.stuck": { state: "pending_ml", forAtLeastMs: 0 },
    "interactions.list": { sessionId: of.sessionId },
    "interactions.approveBatch": { items: [{ id: of.interactionId, hash: of.hash }] },
    "interactions.answer": { ...seen, answer: "yes" },
    "interactions.approve": seen,
    "interactions.reject": seen,
    "interactions.edit": { ...seen, inputs: { "0": { key: "a", value: 1 } } },
    "interactions.settle": { ...seen, happened: false },
    "interactions.handOver": { to: "person:eve" },
    "interactions.askBack": { text: "Why?" },
    "interactions.cancel": { reason: "no longer needed" },
    "operations.list": { sessionId: of.sessionId },
    "permits.renew": { fence: 1 },
    "permits.report": { fence: 1, outcome: "failed", reason: "cannot" },
    "permits.giveBack": { fence: 1 },
    "tasks.stuck": { claimedForMs: 0 },
    "tasks.add": { subject: "more" },
    "tasks.addAll": { tasks: [{ subject: "more" }] },
    "tasks.claimBatch": { limit: 2 },
    "tasks.import": { format: "json", text: "[]" },
    "tasks.export": { format: "json" },
    "tasks.link": { sessionId: of.sessionId },
    "tasks.block": { blockedBy: [] },
    "tasks.complete": { result: "done" },
    "tasks.fail": { reason: "cannot" },
    "delegations.list": { rootSession: of.sessionId },
    "delegations.delegate": { ...DELEGATION, sessionId: of.sessionId },
    "delegations.call": call,
    "delegations.ask": { callId: "q", text: "May I?" },
    "delegations.resultOf": { key: "q" },
    "delegations.report": { output: "looked" },
    "delegations.fail": { reason: "cannot" },
    "delegations.revoke": { reason: "stop" },
    "runs.start": {
      feature: "more",
      promise: { id: "p", statement: "it works", evidence: [] },
      budget: 1,
    },
    "runs.proposePlan": { files: ["/srv/a.txt"] },
    "runs.enter": { phase: "spec" },
    "runs.nameArtefact": { phase: "spec", path: path.join(tmpdir(), "spec.md") },
    "runs.stop": { reason: "enough" },
    "conversations.send": { message: "Hello" },
    "conversations.reply": { interactionId: of.questionId, version: 1 },
    "conversations.confirm": { interactionId: of.interactionId, version: 1 },
    "standingRules.replay": { tool: RULE.tool, pattern: RULE.pattern },
    "standingRules.propose": RULE,
    "standingRules.revoke": { reason: "not any more" },
    "grants.give": { ...GRANT, sessionId: of.sessionId, reason: "agreed" },
    "grants.revoke": { reason: "not any more" },
    "tools.get": { name: "world.look" },
    "switch.stop": { reason: "drill" },
    "switch.resume": { reason: "over" },
    "breakers.close": { tool: "world.set", reason: "it works again" },
    "reviewers.restore": { reason: "we talked" },
    "people.invite": { subject: `person:new-${randomUUID()}`, roles: ["reviewer"] },
    "people.signOut": { subject: "person:nobody-yet" },
    "tokens.make": { subject: "agent:new", roles: ["agent"] },
  };
  return { ...given, ...more[name] };
}

function idFor(name: RouteName, of: Records): string {
  const noun = name.split(".")[0];
  if (noun === "sessions") return of.sessionId;
  if (noun === "decisions") return of.decisionId;
  if (name === "interactions.answer") return of.questionId;
  if (noun === "interactions") return of.interactionId;
  if (name === "permits.take") return of.decisionId;
  if (noun === "operations" || noun === "permits") return of.operationId;
  if (noun === "tasks") return of.taskId;
  if (noun === "runs") return of.runId;
  if (noun === "delegations") return of.delegationId;
  if (noun === "standingRules") return of.ruleId;
  if (noun === "grants") return of.grantId;
  return "unknown";
}
