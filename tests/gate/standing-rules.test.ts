import { expect, test } from "vitest";
import { AGENT, approve, decisionIdOf, openGate, PERSON, request } from "../support/port-world.ts";

const DAY = 24 * 3_600_000;
const set = (key: string, value: number, callId = "c-1") =>
  request("world.set", { key, value }, callId);
const small = {
  tool: "world.set",
  pattern: { key: { oneOf: ["a", "b"] }, value: { atLeast: 0, atMost: 10 } },
  forMs: DAY,
  reason: "small changes of a and b are harmless",
  by: PERSON,
} as const;

test("a standing rule lets through exactly the tool and the inputs it names, and the trail says which rule [R4]", async () => {
  const { gate, effects } = openGate();
  const session = gate.sessions.open({ agent: AGENT });
  expect((await session.call(set("a", 5))).answer).toBe("pending");
  const rule = await gate.standingRules.make(small);
  expect((await session.call(set("a", 5))).answer).toBe("done");
  // By its alias it is the same tool.
  expect((await session.call(request("world.put", { key: "b", value: 10 }))).answer).toBe("done");
  for (const other of [
    set("c", 5),
    set("a", 11),
    request("world.blind", { key: "a", value: 5 }),
    request("world.set", { key: "a", value: "5" }),
  ]) {
    expect((await session.call(other)).answer).toBe("pending");
  }
  expect(effects).toHaveLength(2);
  const entries = await gate.audit.read({ after: 0, limit: 100 });
  const started = entries.filter(({ type }) => type === "operation.started");
  expect(started.map(({ data }) => JSON.parse(data ?? "{}"))).toMatchObject([
    { allowed_by: `rule:${rule.id}` },
    { allowed_by: `rule:${rule.id}` },
  ]);
});

test("a rule ends by its expiry, by being revoked and with the definition of its tool", async () => {
  const world = openGate();
  const { gate, effects, clock } = world;
  const session = gate.sessions.open({ agent: AGENT });
  await gate.standingRules.make(small);
  expect((await session.call(set("a", 1))).answer).toBe("done");
  const changed = { ...world.tools.set, description: () => "Sets a value. Really." };
  const later = world.again({ tools: [changed] }).sessions.open({ agent: AGENT });
  expect((await later.call(set("a", 2))).answer).toBe("pending");
  clock.advance(DAY + 1);
  expect((await session.call(set("a", 3))).answer).toBe("pending");
  const { id } = await gate.standingRules.make(small);
  expect((await session.call(set("a", 4))).answer).toBe("done");
  await gate.standingRules.revoke(id, { by: PERSON, reason: "not any more" });
  expect((await session.call(set("a", 5))).answer).toBe("pending");
  expect(effects).toHaveLength(2);
});

test("a rule that is revoked between the look and the intent lets nothing through", async () => {
  const { gate, effects, tap } = openGate();
  const { id } = await gate.standingRules.make(small);
  tap.before = async ({ steps }) => {
    if (!steps.some((step) => step.op === "insert" && step.table.name === "operations")) return;
    tap.before = () => {};
    await gate.standingRules.revoke(id, { by: PERSON, reason: "just now" });
  };
  const answer = await gate.sessions.open({ agent: AGENT }).call(set("a", 1));
  expect(answer).toMatchObject({ answer: "failed" });
  expect(answer.text).toContain("standing rule");
  expect(effects).toEqual([]);
});

test("nobody's rule lets through what they ask for themselves, and only people make rules [T6]", async () => {
  const people = [{ id: PERSON, agents: ["bot:ada"] }, { id: "person:bob" }];
  const { gate, effects } = openGate({ people });
  await expect(gate.standingRules.make({ ...small, by: AGENT })).rejects.toMatchObject({
    code: "not_allowed",
  });
  await gate.standingRules.make(small);
  const asks = async (over: object) =>
    (await gate.sessions.open({ agent: AGENT, ...over }).call(set("a", 1))).answer;
  expect(await asks({ owner: PERSON })).toBe("pending");
  expect(await asks({ delegatedBy: [PERSON] })).toBe("pending");
  expect(await asks({ agent: "bot:ada" })).toBe("pending");
  expect(effects).toEqual([]);
  expect(await asks({})).toBe("done");
});

test("one person alone loosens nothing: a rule lets calls through once somebody else has confirmed it [T41]", async () => {
  const people = [
    { id: PERSON, agents: ["bot:ada"] },
    { id: "person:bob" },
    // The same person by another name, and known to be.
    { id: "person:ada-admin", agents: [PERSON] },
  ];
  const { gate, effects } = openGate({ people });
  const session = gate.sessions.open({ agent: AGENT });
  const { id } = await gate.standingRules.propose(small);
  expect((await session.call(set("a", 5))).answer).toBe("pending");
  for (const by of [PERSON, "person:ada-admin", "bot:ada", "person:stranger", AGENT]) {
    const refused = gate.standingRules.confirm(id, { by });
    await expect(refused, by).rejects.toMatchObject({ code: "not_allowed" });
  }
  expect(effects).toEqual([]);
  await gate.standingRules.confirm(id, { by: "person:bob" });
  expect((await session.call(set("a", 5))).answer).toBe("done");
  const own = gate.sessions.open({ agent: AGENT, owner: "person:bob" });
  expect((await own.call(set("a", 5))).answer).toBe("pending");
  expect(await gate.standingRules.list()).toMatchObject([{ id, uses: 1 }]);
  expect(effects).toHaveLength(1);
});

test("before it is made, a rule is replayed over what people decided", async () => {
  const { gate } = openGate();
  const session = gate.sessions.open({ agent: AGENT });
  for (const [index, value] of [1, 2, 3].entries()) {
    const id = decisionIdOf(await session.call(set("a", value, `c-${index}`)));
    const hash = (await gate.interactions.shown(id))?.hash ?? "";
    if (value === 2) await gate.interactions.reject(id, { hash, by: PERSON, reason: "not two" });
    else await approve(gate, id);
  }
  const replay = await gate.standingRules.replay(small);
  expect(replay).toMatchObject({ looked: 3, rejected: [{ by: PERSON, reason: "not two" }] });
  expect(replay.agreed).toHaveLength(2);
  expect(await gate.standingRules.list()).toEqual([]);
});
