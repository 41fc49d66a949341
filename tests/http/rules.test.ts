// Rules, grants and runs over HTTP: who may loosen what, and that it takes two people.

import { expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import type { GatePolicy } from "../../src/policy/decide.ts";
import { clientOf, newSession, openHttp } from "./http-world.ts";

const SMALL = {
  tool: "world.set",
  pattern: { key: { equals: "a" }, value: { atLeast: 0, atMost: 10 } },
  reason: "small changes of a are harmless",
  forMs: 60_000,
} as const;

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );

test("a rule is replayed, proposed by an operator, confirmed by another admin, counted and revoked [T41]", async () => {
  const world = await openHttp();
  const [agent, reviewer, operator, admin] = await Promise.all([
    world.client("acme", "agent"),
    world.client("acme", "reviewer"),
    world.client("acme", "operator"),
    world.client("acme", "admin"),
  ]);
  const { id: session } = await agent.sessions.open();
  const call = (callId: string, value: number) =>
    agent.sessions.call({
      id: session,
      callId,
      tool: "world.set",
      input: { key: "a", value },
    });
  for (const [callId, value] of [
    ["c-1", 1],
    ["c-2", 2],
  ] as const) {
    const asked = await call(callId, value);
    const id = asked.answer === "pending" ? asked.interactionId : "";
    const { hash } = await reviewer.interactions.get({ id });
    if (value === 1) await reviewer.interactions.approve({ id, hash });
    else await reviewer.interactions.reject({ id, hash, reason: "not two" });
  }
  const { tool, pattern } = SMALL;
  const replay = await operator.standingRules.replay({ tool, pattern });
  expect(replay).toMatchObject({ looked: 2, rejected: [{ reason: "not two" }] });
  expect(replay.agreed).toHaveLength(1);
  const { id, state } = await operator.standingRules.propose(SMALL);
  expect(state).toBe("proposed");
  expect((await call("c-3", 3)).answer).toBe("pending");
  const both = await newSession(world.server, {
    tenant: "acme",
    subject: "person:operator",
    roles: ["operator", "admin"],
  });
  const alone = clientOf(world.server.url, both);
  expect(await code(alone.standingRules.confirm({ id }))).toBe("not_allowed");
  expect((await call("c-4", 4)).answer).toBe("pending");
  await admin.standingRules.confirm({ id });
  expect((await call("c-5", 5)).answer).toBe("done");
  expect((await call("c-6", 11)).answer).toBe("pending");
  const { items } = await reviewer.standingRules.list({ state: "active" });
  expect(items).toMatchObject([
    { id, uses: 1, madeBy: "person:operator", confirmedBy: "person:admin", state: "active" },
  ]);
  await reviewer.standingRules.revoke({ id, reason: "seen enough" });
  expect((await call("c-7", 5)).answer).toBe("pending");
  expect((await operator.standingRules.list()).items).toMatchObject([
    { state: "revoked", endReason: "seen enough", endedBy: "person:reviewer" },
  ]);
});

test("an invalid rule is refused with the reason, and no rule covers an irreversible call [T41]", async () => {
  const world = await openHttp();
  const operator = await world.client("acme", "operator");
  const made = (over: object) => operator.standingRules.propose({ ...SMALL, ...over });
  await expect(made({ pattern: { key: { whatever: 1 } } })).rejects.toThrow(/asks for something/);
  await expect(made({ pattern: { key: [] } })).rejects.toMatchObject({ code: "invalid_input" });
  await expect(made({ tool: "nobody.knows" })).rejects.toMatchObject({ code: "not_found" });
  await expect(made({ tool: "world.blind" })).rejects.toThrow(/cannot be undone/);
  await expect(made({ forMs: 91 * 24 * 3_600_000 })).rejects.toMatchObject({
    code: "invalid_input",
  });
  expect((await operator.standingRules.list()).items).toEqual([]);
});

test("a reviewer overrides a finding in one session for a limited time; the session's owner cannot, and no one can everywhere [I-59]", async () => {
  const finding = { policy: "freeze", message: "no changes on Fridays" };
  const freeze: GatePolicy = {
    name: "freeze",
    points: ["pre-tool"],
    check: () => [{ severity: "soft-deny", ...finding }],
  };
  const world = await openHttp({ port: { gatePolicies: [freeze] } });
  const { server } = world;
  const owned = await server.makeToken({
    tenant: "acme",
    subject: "agent:owned",
    roles: ["agent"],
    owner: "person:owner",
  });
  const agent = createClient({ url: server.url, token: owned });
  const [reviewer, owner] = await Promise.all([
    world.client("acme", "reviewer"),
    world.client("acme", "reviewer", "person:owner"),
  ]);
  const { id: sessionId } = await agent.sessions.open();
  const look = async (callId: string) =>
    (
      await agent.sessions.call({
        id: sessionId,
        callId,
        tool: "world.look",
        input: { key: "a" },
      })
    ).answer;
  expect(await look("c-1")).toBe("denied");
  const reason = "the release manager agreed";
  expect(await code(owner.grants.give({ sessionId, finding, reason }))).toBe("not_allowed");
  expect(await code(reviewer.grants.give({ sessionId: "", finding, reason }))).toBe(
    "invalid_input",
  );
  const long = { sessionId, finding, reason, lastsMs: 25 * 3_600_000 };
  expect(await code(reviewer.grants.give(long))).toBe("invalid_input");
  const { id, expiresAt } = await reviewer.grants.give({ sessionId, finding, reason });
  expect(Date.parse(expiresAt ?? "") - Date.now()).toBeLessThanOrEqual(30 * 60_000);
  expect(await look("c-2")).toBe("done");
  const { id: another } = await agent.sessions.open();
  const elsewhere = await agent.sessions.call({
    id: another,
    callId: "c",
    tool: "world.look",
    input: { key: "a" },
  });
  expect(elsewhere.answer).toBe("denied");
  await reviewer.grants.revoke({ id, reason: "over" });
  expect(await look("c-3")).toBe("denied");
  const { items } = await reviewer.grants.list();
  expect(items).toMatchObject([{ id, state: "revoked", by: "person:reviewer", reason }]);
  expect((await reviewer.grants.list({ sessionId: another })).items).toEqual([]);
});

test("runs are listed with their phase and shown with their promises, without secrets of others", async () => {
  const world = await openHttp();
  const auditor = await world.client("acme", "auditor");
  const promise = { id: "p-1", statement: "all tests pass", evidence: [{ name: "tests" }] };
  const { id } = await world.gates.acme.runs.start({
    feature: "labels",
    lead: "agent:lead",
    promise,
    documents: "",
    evidenceFolder: "",
    budget: 5,
  });
  const { items } = await auditor.runs.list({ status: "open" });
  expect(items).toMatchObject([{ id, feature: "labels", phase: "discuss", rounds: 0, budget: 5 }]);
  expect(await auditor.runs.get({ id })).toMatchObject({ promises: [promise], evidence: [] });
  expect((await auditor.runs.list({ status: "done" })).items).toEqual([]);
  expect(await code(auditor.runs.get({ id: "run-none" }))).toBe("not_found");
});
