// Pauses of parts: an agent, tools by pattern, a session. Nothing of the part starts, the rest runs, approvals are kept.

import { expect, test } from "vitest";
import { isPaused } from "../../src/model/pause.ts";
import { AGENT, approve, decisionIdOf, openGate, request } from "../support/port-world.ts";

const BY = { actor: "person:ops" };
const OTHER = "agent:other";
const set = (key: string, callId = key) => request("world.set", { key, value: 1 }, callId);

async function isExecuted(gate: ReturnType<typeof openGate>["gate"], id: string): Promise<void> {
  await expect.poll(async () => (await gate.decisions.get(id)).state).toBe("executed");
}

test("pause: an approval for a paused agent is kept and runs once after Resume; other agents go on [W9]", async () => {
  const { gate, effects } = openGate();
  const mine = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a")));
  const others = decisionIdOf(await gate.sessions.open({ agent: OTHER }).call(set("b")));
  const scope = { kind: "agent", subject: AGENT } as const;
  expect(await gate.pauses.pause(scope, "prices are wrong", BY)).toMatchObject({
    ...scope,
    reason: "prices are wrong",
    actor: "person:ops",
  });
  const [kept] = await approve(gate, mine);
  expect(kept).toMatchObject({ answer: "pending", decisionId: mine });
  const [ran] = await approve(gate, others);
  expect(ran).toMatchObject({ answer: "done" });
  await gate.recover();
  expect((await gate.decisions.get(mine)).state).toBe("approved");
  expect(effects).toEqual(['world.set {"key":"b","value":1}']);
  await gate.pauses.resume(scope, "fixed", BY);
  await isExecuted(gate, mine);
  expect(effects).toHaveLength(2);
  expect(await gate.pauses.list()).toEqual([]);
});

test.each([
  ["tool", "world.*", "other.*"],
  ["session", "s-1", "s-2"],
] as const)(
  "pause: by %s, nothing it covers starts and the rest does [W9]",
  async (kind, covers, leaves) => {
    const { gate, effects } = openGate();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    await gate.pauses.pause({ kind, subject: leaves }, "not this", BY);
    const first = decisionIdOf(await session.call(set("a")));
    expect(await approve(gate, first)).toMatchObject([{ answer: "done" }]);
    await gate.pauses.pause({ kind, subject: covers }, "this", BY);
    const second = decisionIdOf(await session.call(set("b")));
    expect(await approve(gate, second)).toMatchObject([{ answer: "pending", decisionId: second }]);
    expect(effects).toHaveLength(1);
    await gate.pauses.resume({ kind, subject: covers }, "over", BY);
    await isExecuted(gate, second);
  },
);

test("pause: another process that has not heard of it starts nothing either [W9]", async () => {
  const world = openGate();
  const { gate, effects } = world;
  const other = world.again();
  const session = other.sessions.open({ agent: AGENT });
  // The other process has read the list of pauses, which was empty.
  const first = decisionIdOf(await session.call(set("a")));
  await approve(other, first);
  const second = decisionIdOf(await session.call(set("b")));
  await gate.pauses.pause({ kind: "agent", subject: AGENT }, "look first", BY);
  expect(await approve(other, second)).toMatchObject([{ answer: "pending", decisionId: second }]);
  expect(effects).toHaveLength(1);
});

test("pause: what a paused agent did can be rolled back [W9]", async () => {
  const { gate, values } = openGate();
  const session = gate.sessions.open({ agent: AGENT });
  const id = decisionIdOf(await session.call(set("a")));
  await approve(gate, id);
  expect(values.get("a")).toBe(1);
  await gate.pauses.pause({ kind: "agent", subject: AGENT }, "look first", BY);
  const { undone } = await session.rollback("person:ops");
  expect(undone).toHaveLength(1);
});

test("pause: each is one audit entry, a second one keeps the first reason, and an unknown one cannot be resumed [W9]", async () => {
  const { gate } = openGate();
  const scope = { kind: "tool", subject: "orders.*" } as const;
  await gate.pauses.pause(scope, "first", BY);
  expect(await gate.pauses.pause(scope, "second", BY)).toMatchObject({ reason: "first" });
  await gate.pauses.resume(scope, "over", BY);
  await expect(gate.pauses.resume(scope, "over", BY)).rejects.toMatchObject({ code: "not_found" });
  await expect(gate.pauses.pause({ kind: "tool", subject: "*" }, "all", BY)).rejects.toMatchObject({
    code: "invalid_input",
  });
  const entries = await gate.audit.entries({ after: 0, limit: 100 });
  const own = entries.filter(({ type }) => type.startsWith("pause."));
  expect(own.map(({ type, actor, data }) => [type, actor, data?.["reason"]])).toEqual([
    ["pause.started", "person:ops", "first"],
    ["pause.ended", "person:ops", "over"],
  ]);
});

test("pause: patterns match by their text alone [W9]", () => {
  const acting = (tool: string) => ({ agents: [], tool, sessionId: "" });
  const covers = (subject: string, tool: string) =>
    isPaused({ kind: "tool", subject }, acting(tool));
  expect(covers("orders.*", "orders.place")).toBe(true);
  expect(covers("orders.*", "orders")).toBe(false);
  expect(covers("*.place", "orders.place")).toBe(true);
  expect(covers("o*r*s.p*", "orders.place")).toBe(true);
  expect(covers("orders.p", "orders.place")).toBe(false);
  expect(covers("ab*ba", "aba")).toBe(false);
  expect(covers("o.ders.*", "orders.place")).toBe(false);
});
