import { expect, test } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import { AGENT, decisionIdOf, openGate, PERSON, request } from "../support/port-world.ts";

const BOB = "person:bob";
const ONE = [{ name: "review", count: 1 }];
const set = (value: number) => request("world.set", { key: "a", value });

async function edited(over: Partial<GateOptions> = {}) {
  const world = openGate(over);
  const { gate } = world;
  const first = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set(5)));
  const { hash } = await gate.interactions.get(first);
  const inputs = { 0: { key: "a", value: 99 } };
  return { ...world, answer: await gate.interactions.edit(first, { hash, by: PERSON, inputs }) };
}

async function say(gate: ReturnType<typeof openGate>["gate"], id: string, by: string) {
  return gate.interactions.approve(id, { hash: (await gate.interactions.get(id)).hash, by });
}

test("edit: whoever changed a call cannot also approve it, under no spelling, and somebody else can [L4]", async () => {
  const { gate, answer, effects } = await edited();
  if (!answer.edited) throw new Error(answer.text);
  const { id } = answer.interaction;
  expect(answer.preview.askers).toContain(PERSON);
  for (const by of [PERSON, "Person:Ada"]) {
    await expect(say(gate, id, by)).rejects.toMatchObject({ code: "not_allowed" });
  }
  expect(effects).toEqual([]);
  expect((await say(gate, id, BOB)).answers).toMatchObject([{ answer: "done" }]);
  expect(effects).toEqual(['world.set {"key":"a","value":99}']);
});

test("edit: what goes back to review, or is changed again, stays closed to everybody who changed it [L4]", async () => {
  const { gate, answer, values } = await edited();
  if (!answer.edited) throw new Error(answer.text);
  values.set("a", 1);
  const { answers } = await say(gate, answer.interaction.id, BOB);
  const again = answers[0]?.answer === "pending" ? answers[0].decisionId : "";
  await expect(say(gate, again, PERSON)).rejects.toMatchObject({ code: "not_allowed" });
  const { hash } = await gate.interactions.get(again);
  const inputs = { 0: { key: "a", value: 7 } };
  const more = await gate.interactions.edit(again, { hash, by: BOB, inputs });
  if (!more.edited) throw new Error(more.text);
  for (const by of [PERSON, BOB]) {
    await expect(say(gate, more.interaction.id, by)).rejects.toMatchObject({ code: "not_allowed" });
  }
  expect((await say(gate, more.interaction.id, "person:cleo")).missing).toEqual([]);
});

test("edit: a review rule can let editors approve, and an edit that nobody could approve is refused [L4]", async () => {
  const review = [{ requires: ONE, editorMayApprove: true }];
  const { gate, answer, effects } = await edited({ review });
  if (!answer.edited) throw new Error(answer.text);
  await say(gate, answer.interaction.id, PERSON);
  expect(effects).toHaveLength(1);
  const alone = await edited({ people: [{ id: PERSON }] });
  expect(alone.answer).toMatchObject({ edited: false });
  expect((await alone.gate.interactions.list()).length).toBe(1);
});

async function asked(tools: readonly string[], over: Partial<GateOptions> = {}) {
  const world = openGate(over);
  const session = world.gate.sessions.open({ agent: AGENT });
  const items = [];
  for (const [n, tool] of tools.entries()) {
    const call = request(tool, { key: `k${n}`, value: 1 }, `c-${n}`);
    const id = decisionIdOf(await session.call(call));
    items.push({ id, hash: (await world.gate.interactions.get(id)).hash });
  }
  return { ...world, items };
}

test("batch: calls that cannot be undone, or of different tools, are not approved in one request [L5]", async () => {
  for (const tools of [
    ["world.blind", "world.blind"],
    ["world.blind"],
    ["world.set", "world.blind"],
  ]) {
    const { gate, items, effects } = await asked(tools);
    const all = gate.interactions.approveAll(items, { by: PERSON });
    await expect(all, tools.join()).rejects.toMatchObject({ code: "not_allowed" });
    expect(effects).toEqual([]);
    expect((await gate.interactions.list()).length).toBe(tools.length);
  }
  const same = await asked(["world.set", "world.set"]);
  await same.gate.interactions.approveAll(same.items, { by: PERSON });
  expect(same.effects).toHaveLength(2);
});

test("batch: a no is given to anything, one by one, and a review rule can allow more [L5]", async () => {
  const { gate, items, effects } = await asked(["world.set", "world.blind"]);
  const veto = items.slice(1).map(({ id }) => id);
  const done = await gate.interactions.approveAll(items, { by: PERSON, veto });
  expect(done.map(({ outcome }) => outcome)).toEqual(["approved", "rejected"]);
  expect(effects).toHaveLength(1);
  const loose = await asked(["world.set", "world.blind"], {
    review: [{ requires: ONE, mayBatch: true }],
  });
  await loose.gate.interactions.approveAll(loose.items, { by: PERSON });
  expect(loose.effects).toHaveLength(2);
});
