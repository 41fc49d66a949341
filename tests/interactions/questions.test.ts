// Questions of the agent itself, from code or through a tool: the same inbox, and one question per id.

import { expect, test } from "vitest";
import { askUserTool } from "../../src/gate/inbox.ts";
import { AGENT, createWorld, openGate, PERSON, request, rules } from "../support/port-world.ts";
import {
  codeOf,
  counted,
  lossy,
  OTHER,
  onlyOpen,
  onStores,
  seen,
  set,
  yes,
} from "./inbox-world.ts";

const SESSION = { id: "s-1", agent: AGENT };
const viaTool = (question: string, callId = "q-1", more = {}) => ({
  ...request("ask_user", { question, ...more }, callId),
});

onStores("questions of an agent", (open) => {
  test("session.ask and the ask_user tool land in the same inbox, and are answered alike", async () => {
    const world = await open();
    world.gate.tools.register(askUserTool());
    const { gate } = world;
    const session = gate.sessions.open(SESSION);
    const asked = await session.ask({ callId: "q-0", text: "Which one?", choices: ["a", "b"] });
    expect(asked.answer).toBe("pending");
    const called = await session.call(viaTool("How many?"));
    expect(called).toMatchObject({ answer: "pending", decisionId: "" });
    const [first, second] = await gate.interactions.list();
    expect(first).toMatchObject({ type: "ask_user", callId: "q-0", displayText: "Which one?" });
    expect(second).toMatchObject({ type: "ask_user", callId: "q-1", displayText: "How many?" });
    // A question is no action: nothing was executed for it, and nothing is staged.
    expect(await gate.operations.listBySession("s-1")).toEqual([]);
    expect(await gate.decisions.listBySession("s-1")).toEqual([]);

    const later = await world.restart({ tools: gate.tools });
    const wrong = { ...(await seen(later, first!.id)), answer: "c" };
    expect(await codeOf(later.interactions.answer(first!.id, wrong))).toBe("invalid_input");
    await later.interactions.answer(first!.id, { ...wrong, answer: "b" });
    await later.interactions.answer(second!.id, { ...(await seen(later, second!.id)), answer: 7 });
    const again = later.sessions.open(SESSION);
    expect(await again.ask({ callId: "q-0", text: "Which one?", choices: ["a", "b"] })).toEqual({
      answer: "answered",
      interactionId: first!.id,
      value: "b",
      by: PERSON,
    });
    expect(await again.call(viaTool("How many?"))).toMatchObject({
      answer: "done",
      text: "7",
      data: 7,
    });
    expect(await again.resultOf("q-0")).toMatchObject({ answer: "done", text: "b" });
    expect(await later.operations.listBySession("s-1")).toEqual([]);
  });

  test("the same id is the same question, from code and tool, and from two processes at once", async () => {
    const world = await open();
    world.gate.tools.register(askUserTool());
    const other = await world.restart({ tools: world.gate.tools });
    const one = world.gate.sessions.open(SESSION);
    const two = other.sessions.open(SESSION);
    await Promise.all([
      one.ask({ callId: "q-1", text: "How many?" }),
      two.ask({ callId: "q-1", text: "How many?" }),
      one.call(viaTool("How many?")),
      two.call(viaTool("How many?")),
      one.call({ ...viaTool("How many?", "another call"), key: "q-1" }),
    ]);
    const { id } = await onlyOpen(world.gate);
    expect((await counted(world.gate))["interaction.opened"]).toBe(1);
    // In another session it is another one.
    await world.gate.sessions.open({ id: "s-2", agent: AGENT }).ask({ callId: "q-1", text: "x" });
    expect(await world.gate.interactions.list()).toHaveLength(2);
    await world.gate.interactions.answer(id, { ...(await seen(other, id)), answer: "two" });
    expect(await two.ask({ callId: "q-1", text: "How many?" })).toMatchObject({ value: "two" });
    // Another text or other choices under the same id is an error.
    expect(await codeOf(one.ask({ callId: "q-1", text: "Who?" }))).toBe("already_exists");
    const choices = { callId: "q-1", text: "How many?", choices: ["1"] };
    expect(await codeOf(one.ask(choices))).toBe("already_exists");
  });

  test("answered once: the second is told who was first, and the first answer stays", async () => {
    const { gate, restart } = await open();
    const other = await restart();
    const session = gate.sessions.open(SESSION);
    const { interactionId: id } = await session.ask({ callId: "q", text: "How many?" });
    const { hash } = await gate.interactions.get(id);
    const both = await Promise.allSettled([
      gate.interactions.answer(id, { hash, by: PERSON, answer: "one" }),
      other.interactions.answer(id, { hash, by: OTHER, answer: "two" }),
    ]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const [winner, value] = both[0]?.status === "fulfilled" ? [PERSON, "one"] : [OTHER, "two"];
    const lost = both.find(({ status }) => status === "rejected");
    expect(lost).toMatchObject({ reason: { code: "already_answered", details: { by: winner } } });
    expect(await session.ask({ callId: "q", text: "How many?" })).toMatchObject({ value });
    const wrong = { hash: "0".repeat(64), by: PERSON, answer: "x" };
    const next = await session.ask({ callId: "q2", text: "And now?" });
    expect(await codeOf(gate.interactions.answer(next.interactionId, wrong))).toBe("approval_void");
  });

  test("called off or too late is no answer, and says that it is none", async () => {
    const { gate, clock } = await open();
    const session = gate.sessions.open(SESSION);
    const off = await session.ask({ callId: "off", text: "Who?" });
    await gate.interactions.cancel(off.interactionId, { by: PERSON, reason: "not needed" });
    const late = { callId: "late", text: "Who?", deadlineMs: 1_000 };
    await session.ask(late);
    clock.advance(1_001);
    await gate.interactions.sweep();
    for (const [question, outcome] of [
      [{ callId: "off", text: "Who?" }, "canceled"],
      [late, "expired"],
    ] as const) {
      const answer = await session.ask(question);
      expect(answer).toMatchObject({ answer: "unanswered", outcome });
      expect(answer.answer === "unanswered" && answer.text).toContain("Do not take silence");
      expect(await session.resultOf(question.callId)).toMatchObject({ answer: "failed" });
    }
  });

  test("what cannot be a question is refused before anything is stored", async () => {
    const { gate } = await open();
    gate.tools.register(askUserTool());
    const session = gate.sessions.open(SESSION);
    const good = { callId: "q", text: "Who?" };
    const bad = [
      { ...good, text: "" },
      { ...good, text: "  \n" },
      { ...good, callId: "" },
      { ...good, callId: "a\u0000b" },
      { ...good, deadlineMs: 0 },
      { ...good, deadlineMs: -1 },
      { ...good, deadlineMs: Number.NaN },
      { ...good, deadlineMs: Number.POSITIVE_INFINITY },
      { ...good, escalation: { afterMs: 0, to: "x" } },
      { ...good, escalation: { afterMs: 1, to: "" } },
    ];
    for (const question of bad) {
      expect(await codeOf(session.ask(question)), JSON.stringify(question)).toBe("invalid_input");
    }
    for (const input of [{}, { question: "" }, { question: "a", approve: true }, "text"]) {
      expect(await session.call(request("ask_user", input))).toMatchObject({ answer: "failed" });
    }
    expect(await gate.interactions.list()).toEqual([]);
  });

  test("an answer approves nothing, whatever it says", async () => {
    const { gate, effects } = await open();
    const session = gate.sessions.open(SESSION);
    const call = { ...request("world.blind", { a: 1 }), key: "k" };
    await session.call(call);
    const { interactionId: id } = await session.ask({ callId: "q", text: "May I do k?" });
    const yes = { ...(await seen(gate, id)), answer: { approved: true, hash: "any" } };
    await gate.interactions.answer(id, yes);
    expect((await session.call(call)).answer).toBe("pending");
    expect(effects).toEqual([]);
  });
});

test("a person meets exactly three types of questions, which are open, resolved or canceled [S1-03 S1-04]", async () => {
  const far = lossy();
  const policy = rules({ id: "f", effect: "allow", tool: "far.send", reason: "a test" });
  const { gate } = openGate({ tools: [far.tool, ...Object.values(createWorld().tools)], policy });
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  await session.ask({ callId: "q", text: "Which one?" });
  await session.call(set("a", 1, "c"));
  far.losses.left = 1;
  await session.call({ ...request("far.send", { what: "a" }, "l"), key: "l" });
  const open = await gate.interactions.list({ status: "open" });
  expect(new Set(open.map(({ type }) => type))).toEqual(
    new Set(["ask_user", "confirm", "connection_lost"]),
  );
  const statuses = new Set(open.map(({ status }) => status));
  for (const one of open) {
    if (one.type === "confirm") await yes(gate, one.id);
    else if (one.type === "ask_user") await session.withdraw(one.id, "not needed");
  }
  for (const { id } of open) statuses.add((await gate.interactions.get(id)).status);
  expect(statuses).toEqual(new Set(["open", "canceled", "resolved"]));
});
