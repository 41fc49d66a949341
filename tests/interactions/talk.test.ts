// Reviewers hand questions over and ask the agent back; the question stays one and the same.

import { expect, test } from "vitest";
import { AGENT, decisionIdOf, PERSON } from "../support/port-world.ts";
import { codeOf, counted, no, OTHER, onlyOpen, onStores, set, yes } from "./inbox-world.ts";

const EVE = "person:eve";

onStores("talk about a question", (open) => {
  test("ask back and reply: the turn goes to the agent and back, and both sides are kept", async () => {
    const world = await open();
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    const before = await world.gate.interactions.get(id);
    expect(await session.askedBack()).toEqual([]);
    await world.gate.interactions.askBack(id, { by: PERSON, text: "Why 1?" });
    // The agent, restarted, finds what it was asked.
    const later = await world.restart();
    const again = later.sessions.open({ id: "s-1", agent: AGENT });
    expect(await again.askedBack()).toMatchObject([
      { id, waitsFor: "agent", remarks: [{ by: PERSON, text: "Why 1?" }] },
    ]);
    const other = later.sessions.open({ id: "s-2", agent: AGENT });
    expect(await other.askedBack()).toEqual([]);
    expect(await codeOf(other.reply(id, "not mine"))).toBe("not_found");
    await again.reply(id, "The customer said so.");
    expect(await again.askedBack()).toEqual([]);
    const after = await later.interactions.get(id);
    expect(after).toMatchObject({
      status: "open",
      hash: before.hash,
      deadline: before.deadline,
      waitsFor: "people",
      remarks: [
        { by: PERSON, text: "Why 1?" },
        { by: AGENT, text: "The customer said so." },
      ],
    });
    // What was seen before the talk is still what would run: the yes counts.
    await later.interactions.approve(id, { hash: before.hash, by: PERSON });
    expect(world.effects).toHaveLength(1);
    expect(await codeOf(again.reply(id, "too late"))).toBe("already_answered");
    const entries = await counted(later);
    expect(entries).toMatchObject({ "interaction.asked_back": 1, "interaction.replied": 1 });
  });

  test("a question that waits for the agent can still be decided", async () => {
    const { gate, effects } = await open();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    await gate.interactions.askBack(id, { by: PERSON, text: "Why?" });
    await no(gate, id, OTHER);
    expect(await session.askedBack()).toEqual([]);
    expect(effects).toEqual([]);
  });

  test("handed over: only whoever it was handed to decides, and only they or others with a say hand it on", async () => {
    const people = [{ id: PERSON }, { id: OTHER }, { id: EVE, groups: ["group:bank"] }];
    const world = await open({ people });
    const { gate, effects } = world;
    const id = decisionIdOf(await gate.sessions.open({ agent: AGENT }).call(set("a", 1)));
    const handed = await gate.interactions.handOver(id, { by: PERSON, to: OTHER, reason: "yours" });
    expect(handed.assignedTo).toBe(OTHER);
    expect(await gate.interactions.list({ assignedTo: OTHER })).toMatchObject([{ id }]);
    expect(await gate.interactions.list({ assignedTo: PERSON })).toEqual([]);
    expect(await codeOf(yes(gate, id, PERSON))).toBe("not_allowed");
    expect(await codeOf(no(gate, id, EVE))).toBe("not_allowed");
    const group = { by: OTHER, to: "group:bank" };
    await gate.interactions.handOver(id, group);
    const later = await world.restart();
    expect(await codeOf(yes(later, id, OTHER))).toBe("not_allowed");
    await yes(later, id, EVE);
    expect(effects).toHaveLength(1);
    expect(await codeOf(later.interactions.handOver(id, group))).toBe("already_answered");
    expect((await counted(later))["interaction.handed_over"]).toBe(2);
  });

  test("canceled: a no with a reason, once, and the agent is told", async () => {
    const { gate, effects } = await open();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const asked = { ...set("a", 1), key: "k" };
    const id = decisionIdOf(await session.call(asked));
    await gate.interactions.cancel(id, { by: PERSON, reason: "the order was withdrawn" });
    expect(await codeOf(yes(gate, id))).toBe("already_answered");
    const told = await session.call(asked);
    expect(told.answer).toBe("denied");
    expect(told.text).toContain("the order was withdrawn");
    expect(effects).toEqual([]);
  });

  test("each kind of question takes its own kind of answer", async () => {
    const { gate } = await open();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    const { hash } = await onlyOpen(gate);
    const answer = { hash, by: PERSON };
    const { interactionId } = await session.ask({ callId: "q", text: "Who?" });
    const asked = { hash: (await gate.interactions.get(interactionId)).hash, by: PERSON };
    const wrong = [
      () => gate.interactions.answer(id, { ...answer, answer: "yes" }),
      () => gate.interactions.settle(id, { ...answer, happened: true }),
      () => gate.interactions.settle(interactionId, { ...asked, happened: true }),
      () => gate.interactions.reject(interactionId, asked),
      () => gate.interactions.approve(interactionId, asked),
    ];
    for (const attempt of wrong) expect(await codeOf(attempt())).toBe("illegal_transition");
    expect(await gate.interactions.list()).toMatchObject([{ version: 1 }, { version: 1 }]);
  });
});
