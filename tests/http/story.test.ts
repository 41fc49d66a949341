// The way of a call over HTTP, from proposal to undo, by the typed client.

import { expect, test } from "vitest";
import { openHttp } from "./http-world.ts";

test("an agent proposes, a reviewer sees and approves exactly that, both verdicts are kept, an operator undoes it [I-02]", async () => {
  const { client, worlds, problems } = await openHttp();
  const [agent, reviewer, operator] = await Promise.all([
    client("acme", "agent"),
    client("acme", "reviewer"),
    client("acme", "operator"),
  ]);
  const session = await agent.sessions.open({});
  const read = await agent.sessions.call({
    id: session.id,
    callId: "c-1",
    tool: "world.look",
    input: { key: "a" },
  });
  expect(read).toMatchObject({ answer: "done", text: "none" });

  const asked = await agent.sessions.call({
    id: session.id,
    callId: "c-2",
    tool: "world.set",
    input: { key: "a", value: 1 },
  });
  if (asked.answer !== "pending") throw new Error(asked.text);
  expect(worlds.acme.effects).toEqual([]);

  const { items } = await reviewer.interactions.list();
  expect(items.map(({ id }) => id)).toEqual([asked.interactionId]);
  const [question] = items;
  const { preview } = await reviewer.interactions.shown({ id: asked.interactionId });
  expect(preview).toMatchObject({ decisionId: asked.decisionId, safetyClass: "reversible" });
  const yes = await reviewer.interactions.approve({
    id: asked.interactionId,
    hash: question!.hash,
  });
  expect(yes.answers).toMatchObject([{ answer: "done", text: "set" }]);
  expect(worlds.acme.effects).toHaveLength(1);

  const decision = await reviewer.decisions.get({ id: asked.decisionId });
  expect(decision).toMatchObject({ state: "executed", calls: [{ tool: "world.set" }] });
  expect(decision).toMatchObject({
    machineVerdict: { approved: true, validator: "limits" },
    bizVerdict: { approved: true, validator: expect.stringMatching(/^person:/) },
  });
  expect((await operator.operations.list({ sessionId: session.id })).items).toHaveLength(2);
  const report = await operator.sessions.rollback({ id: session.id });
  expect(report.undone).toHaveLength(1);
  expect(worlds.acme.values.get("a")).toBe(null);
  expect(await operator.audit.verify()).toMatchObject({ ok: true, problemCount: 0 });
  expect(problems).toEqual([]);
});
