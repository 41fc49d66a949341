// Facts that callers give their sessions and calls: guards see them, the gate itself reads none of them.

import { expect, test } from "vitest";
import type { Gate } from "../../src/gate/create-gate.ts";
import { allowAlways, tenantDenyGuard, waitsForUpstreamGuard } from "../../src/gate/review.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import { openHttp } from "../http/http-world.ts";
import { AGENT, approve, decisionIdOf, openGate, request } from "../support/port-world.ts";

const SET = { key: "a", value: 1 };

/** The review stopped at the guard: no person is asked, and the upkeep asks the guard again. */
async function waitsAtGuard(gate: Gate, answer: CallAnswer): Promise<string> {
  const id = decisionIdOf(answer);
  expect((await gate.decisions.get(id)).state).toBe("pending_tech");
  expect((await gate.interactions.list()).some(({ decisionId }) => decisionId === id)).toBe(false);
  return id;
}

test("a tenant on the block list is stopped by its metadata, of the session or of the call [S0-26 S0-108]", async () => {
  const { gate, effects } = openGate({ guard: tenantDenyGuard({ evil: true }) });
  const bad = gate.sessions.open({ agent: AGENT, metadata: { tenant: "evil" } });
  await waitsAtGuard(gate, await bad.call(request("world.set", SET)));
  const good = gate.sessions.open({ agent: AGENT, metadata: { tenant: "good" } });
  const id = decisionIdOf(await good.call(request("world.set", SET)));
  expect(await gate.decisions.get(id)).toMatchObject({
    state: "pending_ml",
    metadata: { tenant: "good" },
  });
  const sent = { ...request("world.set", SET, "c-2"), metadata: { tenant: "evil" } };
  await waitsAtGuard(gate, await good.call(sent));
  expect(effects).toEqual([]);
});

test("a decision is not put before people until the one it names is executed [S0-110 S0-111]", async () => {
  const world = openGate();
  const read = (id: string) => world.gate.decisions.get(id).catch(() => undefined);
  const gate = world.again({ guard: waitsForUpstreamGuard({ read }), leaseMs: 1_000 });
  const session = gate.sessions.open({ agent: AGENT });
  const first = decisionIdOf(await session.call(request("world.set", SET, "1")));
  const later = request("world.set", { key: "b", value: 2 }, "2");
  const second = await session.call({ ...later, metadata: { upstream: first } });
  const waiting = await waitsAtGuard(gate, second);
  world.clock.advance(5_000);
  await gate.recover();
  await waitsAtGuard(gate, second);
  await approve(gate, first);
  world.clock.advance(5_000);
  await gate.recover();
  expect(await approve(gate, waiting)).toMatchObject([{ answer: "done" }]);
  expect(world.effects).toHaveLength(2);
});

test.each(["chain", "claim", "editors", "facts", "owner", "sallyport.counterfactual.deliverable"])(
  "metadata cannot pretend to be the gate's own: %s is refused [S0-24]",
  async (name) => {
    const { gate, effects } = openGate({ guard: allowAlways });
    const session = gate.sessions.open({ agent: AGENT });
    const metadata = { [name]: ["person:ada"] };
    const answer = await session.call({ ...request("world.set", SET), metadata });
    expect(answer).toMatchObject({ answer: "failed", text: expect.stringContaining(name) });
    expect(effects).toEqual([]);
  },
);

test("an edited call keeps the facts it was asked with [S0-24]", async () => {
  const { gate } = openGate();
  const session = gate.sessions.open({ agent: AGENT, metadata: { ticket: "T-1" } });
  const id = decisionIdOf(await session.call(request("world.set", SET)));
  const { hash } = await gate.interactions.get(id);
  const edit = { hash, by: "person:ada", inputs: { 0: { key: "a", value: 2 } } };
  const edited = await gate.interactions.edit(id, edit);
  if (!edited.edited) throw new Error(edited.text);
  const { metadata } = await gate.decisions.get(edited.interaction.decisionId);
  expect(metadata["ticket"]).toBe("T-1");
});

test("over HTTP a session keeps its metadata, and a call adds its own [S0-24]", async () => {
  const world = await openHttp();
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({ metadata: { tenant: "t-1", priority: 3 } });
  const call = { id, callId: "1", tool: "world.set", input: SET, metadata: { priority: 9 } };
  const answer = await agent.sessions.call(call);
  if (answer.answer !== "pending") throw new Error("not asked");
  const { metadata } = await world.gates.acme.decisions.get(answer.decisionId);
  expect(metadata).toMatchObject({ tenant: "t-1", priority: 9 });
});
