import { expect, test } from "vitest";
import { AGENT, openGate, request } from "../support/port-world.ts";

const DAY = 24 * 3_600_000;
const rule = {
  tool: "world.set",
  pattern: { key: { oneOf: ["a"] }, value: { atLeast: 0, atMost: 10 } },
  forMs: DAY,
  reason: "small changes of a are harmless",
} as const;
const setA = request("world.set", { key: "a", value: 1 });
/** One person, as different identity providers and keyboards write the name. */
const SPELLINGS = ["person:ada", "Person:Ada", "person:ada\u200b", "person: ada", "ｐerson:ada"];

test("standing rules: a rule never serves its author, however the name is spelled [M13] [F3]", async () => {
  for (const by of SPELLINGS) {
    const { gate, effects } = openGate();
    await gate.standingRules.make({ ...rule, by });
    for (const owner of SPELLINGS) {
      const answer = await gate.sessions.open({ agent: AGENT, owner }).call(setA);
      expect(answer.answer, `${by} for ${owner}`).toBe("pending");
    }
    expect(effects).toEqual([]);
    const other = gate.sessions.open({ agent: AGENT, owner: "person:bob" });
    expect((await other.call(setA)).answer).toBe("done");
  }
});

test("standing rules: a rule never serves whoever confirmed it, however the name is spelled [M13]", async () => {
  const { gate, effects } = openGate();
  const { id } = await gate.standingRules.propose({ ...rule, by: "person:bob" });
  await gate.standingRules.confirm(id, { by: "Person:Ada" });
  for (const owner of SPELLINGS) {
    const answer = await gate.sessions.open({ agent: AGENT, owner }).call(setA);
    expect(answer.answer, owner).toBe("pending");
  }
  expect(effects).toEqual([]);
});

test("standing rules: a rule never serves its author's own agents, however those are spelled [M13] [F3]", async () => {
  const people = [{ id: "person:ada", agents: ["bot:Ada"] }, { id: "person:bob" }];
  const { gate, effects } = openGate({ people });
  await gate.standingRules.make({ ...rule, by: "person:ada" });
  for (const agent of ["bot:Ada", "bot:ada", "BOT:ADA", "bot:a\u200bda"]) {
    expect((await gate.sessions.open({ agent }).call(setA)).answer, agent).toBe("pending");
  }
  expect(effects).toEqual([]);
});

test("votes: one person under two names counts once towards a quorum [M13]", async () => {
  const people = [
    { id: "person:ada", agents: ["person:ada-admin"] },
    { id: "person:ada-admin" },
    { id: "person:bob" },
  ];
  const review = [{ requires: [{ name: "two people", count: 2 }] }];
  const { gate, effects } = openGate({ people, review });
  const asked = await gate.sessions.open({ agent: AGENT }).call(setA);
  const id = asked.answer === "pending" ? asked.interactionId : "";
  const { hash } = await gate.interactions.get(id);
  await gate.interactions.approve(id, { hash, by: "person:ada" });
  await expect(
    gate.interactions.approve(id, { hash, by: "person:ada-admin" }),
  ).rejects.toMatchObject({ code: "not_allowed" });
  expect(effects).toEqual([]);
  await gate.interactions.approve(id, { hash, by: "person:bob" });
  expect(effects).toHaveLength(1);
});
