// The way of a run through its nodes, with a model that follows a script and a gate that is bent into every answer.

import { MockLanguageModelV3 } from "ai/test";
import { describe, expect, test } from "vitest";
import {
  acceptedPlan,
  answerTo,
  CONVERSATION,
  callOf,
  DONE,
  flowWorld,
  MESSAGE,
  NEXT,
  PLAN,
  planOf,
  waitsFor,
} from "./flow-world.ts";
import { modelSaying, scriptedModel } from "./scripted-model.ts";

describe("chat", () => {
  test("chat is answered, and neither planned nor saved [S1-01 I-73]", async () => {
    const world = flowWorld();
    const model = modelSaying("Hello.");
    const outcome = await world.start(model).handle(MESSAGE);
    expect(outcome).toEqual({ outcome: "replied", text: "Hello." });
    expect(world.events).toEqual([{ type: "reply", conversationId: CONVERSATION, text: "Hello." }]);
    expect(world.saves).toEqual([]);
  });

  test("while a question is open a message only checks for the answer, without the model [I-73]", async () => {
    const world = flowWorld();
    const asked = waitsFor(await world.start(modelSaying(PLAN, planOf("a"))).handle(MESSAGE));
    const silent = modelSaying();
    const again = waitsFor(await world.start(silent).handle({ ...MESSAGE, message: "Well?" }));
    expect(again).toEqual(asked);
    expect(silent.doGenerateCalls).toHaveLength(0);
  });

  test("the history is given with the request and not saved", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"));
    await world.start(model).handle({
      ...MESSAGE,
      history: [{ role: "user", content: "We spoke about ships." }],
    });
    expect(JSON.stringify(model.doGenerateCalls[0]?.prompt)).toContain("ships");
    expect(JSON.stringify(world.saves)).not.toContain("ships");
  });
});

describe("plan", () => {
  test("a plan waits for a person, and the run resumes where it was saved [I-70 S1-50]", async () => {
    const world = flowWorld();
    const asked = waitsFor(
      await world.start(modelSaying(PLAN, planOf("look", "write"))).handle(MESSAGE),
    );
    expect(asked).toMatchObject({ type: "ask_user", resume_phase: "waiting_confirm" });
    expect(asked.display_text).toContain("1. look (done when: look is there)");
    expect(asked).not.toHaveProperty("pending_tool");
    world.session.reply("accept");
    // Another process, whose model is not asked for a plan again.
    const outcome = await world.start(modelSaying(NEXT, NEXT)).confirm(answerTo(asked));
    expect(outcome).toMatchObject({ outcome: "delivered" });
  });

  test.each(["reject", "maybe", true, { accept: true }, undefined])(
    "the answer %j rejects a plan, and another one is made [I-75]",
    async (answer) => {
      const world = flowWorld();
      const asked = waitsFor(await world.start(modelSaying(PLAN, planOf("a"))).handle(MESSAGE));
      world.session.reply(answer);
      const model = modelSaying(planOf("b"));
      const again = waitsFor(await world.start(model).confirm(answerTo(asked)));
      expect(again.interaction_id).not.toBe(asked.interaction_id);
      expect(again.display_text).toContain("1. b");
      expect(JSON.stringify(model.doGenerateCalls[0]?.prompt)).toContain("not accepted");
      expect(world.session.effects).toEqual([]);
    },
  );

  test("a question can come before the plan", async () => {
    const world = flowWorld();
    const question = { action: "ask_user", question: "Which ship?", choices: ["A", "B"] };
    const asked = waitsFor(await world.start(modelSaying(PLAN, question)).handle(MESSAGE));
    expect(asked).toMatchObject({
      type: "ask_user",
      display_text: "Which ship?",
      resume_node: "plan",
      resume_phase: "planning",
    });
    expect(world.session.questions[0]).toMatchObject({ choices: ["A", "B"] });
    world.session.reply("B");
    const model = modelSaying(planOf("load B"));
    const plan = waitsFor(await world.start(model).reply(answerTo(asked)));
    expect(plan).toMatchObject({ type: "ask_user", metadata: { confirms: "plan" } });
    expect(JSON.stringify(model.doGenerateCalls[0]?.prompt)).toContain("Answer: B");
  });
});

describe("execute", () => {
  test("calls are made through the session, with a key of their place in the run", async () => {
    const world = flowWorld();
    const model = modelSaying(
      PLAN,
      planOf("a", "b"),
      callOf("x", { n: 1 }),
      NEXT,
      callOf("y"),
      DONE,
    );
    await acceptedPlan(world, world.start(model));
    expect(world.session.effects).toEqual(['x {"n":1}', "y {}"]);
    const [first, second] = world.session.calls;
    expect(first?.key).toBe(first?.callId);
    expect(first?.key).toMatch(/^[0-9a-f-]{36}\.0\.2\.[0-9a-f]{16}$/);
    expect(second?.key).toMatch(/\.1\.4\./);
    expect(first?.messageId).toBe(second?.messageId);
  });

  test("a question interrupts the run, and its answer resumes the same step [S1-26]", async () => {
    const world = flowWorld();
    const question = { action: "ask_user", question: "Red or blue?" };
    const model = modelSaying(PLAN, planOf("a", "b"), NEXT, question);
    const asked = waitsFor(await acceptedPlan(world, world.start(model)));
    expect(asked).toMatchObject({ type: "ask_user", resume_phase: "executing", resume_step: 1 });
    world.session.reply({ color: "blue" });
    const rest = modelSaying(callOf("paint"), NEXT);
    const outcome = await world.start(rest).reply(answerTo(asked));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("blue");
  });

  test("the model gets an unanswered question as no answer", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"), { action: "ask_user", question: "So?" });
    const asked = waitsFor(await acceptedPlan(world, world.start(model)));
    world.session.reply(undefined);
    const rest = modelSaying(DONE);
    await world.start(rest).reply(answerTo(asked));
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("No answer.");
  });

  test("the model gets a denial of the gate, and the run continues", async () => {
    const world = flowWorld();
    world.session.lane = (tool) => (tool === "x" ? "deny" : "allow");
    const model = modelSaying(PLAN, planOf("a"), callOf("x"), callOf("y"), DONE);
    await acceptedPlan(world, world.start(model));
    expect(world.session.effects).toEqual(["y {}"]);
    expect(JSON.stringify(model.doGenerateCalls[3]?.prompt)).toContain("the gate says no");
  });

  test.each([
    "I am done.",
    '{"action":"explode"}',
    '{"action":"done"}',
    '{"action":"next_step","goal_check":" "}',
  ])("%s is answered with a correction and asked again [I-76]", async (said) => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"), said, said, said, DONE);
    const outcome = await acceptedPlan(world, world.start(model));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(JSON.stringify(model.doGenerateCalls.at(-1)?.prompt)).toContain("could not be used");
    expect(model.doGenerateCalls).toHaveLength(6);
  });

  test("too many corrections in a row end the run; those before a good answer do not count [I-76]", async () => {
    const world = flowWorld();
    const bad = "no idea";
    const answers = [PLAN, bad, bad, planOf("a", "b"), bad, bad, bad, NEXT, bad, bad, bad, bad];
    const model = modelSaying(...answers);
    const flow = world.start(model, { maxCorrections: 3 });
    const outcome = await acceptedPlan(world, flow);
    expect(model.doGenerateCalls).toHaveLength(answers.length);
    expect(outcome).toMatchObject({ outcome: "delivered" });
    const facts = JSON.stringify(model.doStreamCalls[0]?.prompt);
    expect(facts).toContain("4 answers of the model in a row could not be used");
    expect(facts).toContain("[open] b");
  });

  test("exhausted rounds lead to delivery, after the last choice [I-76]", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a", "b"), callOf("x"), callOf("y"));
    const outcome = await acceptedPlan(world, world.start(model, { roundLimit: 3 }));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(world.session.effects).toEqual(["x {}", "y {}"]);
    expect(JSON.stringify(model.doStreamCalls[0]?.prompt)).toContain("all 3 rounds are used up");
  });

  test("a failing model stops the run, which can be resumed from the last save", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"), callOf("x"));
    await expect(acceptedPlan(world, world.start(model))).rejects.toThrow("once too often");
    expect(world.session.effects).toHaveLength(1);
    const rest = modelSaying(DONE);
    expect(await world.start(rest).resume(CONVERSATION)).toMatchObject({ outcome: "delivered" });
    expect(world.session.effects).toHaveLength(1);
  });

  test("a message during a run is passed to the model", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"), callOf("x"));
    await acceptedPlan(world, world.start(model)).catch(() => {});
    const rest = modelSaying(DONE);
    await world.start(rest).handle({ ...MESSAGE, message: "Hurry up." });
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("Hurry up.");
  });
});

test("an aborted run stops before its next step and continues when it is resumed", async () => {
  const world = flowWorld();
  const stop = new AbortController();
  const asked = waitsFor(await world.start(modelSaying(PLAN, planOf("a"))).handle(MESSAGE));
  world.session.reply("accept");
  const answers = [callOf("x"), NEXT];
  const model = scriptedModel({
    answer() {
      stop.abort(new Error("enough"));
      return JSON.stringify(answers.shift());
    },
  });
  const called = world.start(model).confirm({ ...answerTo(asked), signal: stop.signal });
  await expect(called).rejects.toThrow("enough");
  expect(world.session.effects).toEqual([]);
  const outcome = await world.start(modelSaying(callOf("x"), NEXT)).resume(CONVERSATION);
  expect(outcome).toMatchObject({ outcome: "delivered" });
  expect(world.session.effects).toEqual(["x {}"]);
});

test("a model that never answers times out", async () => {
  const world = flowWorld();
  const model = scriptedModel({ answer: () => new Promise<string>(() => {}) });
  const flow = world.start(model, { modelTimeoutMs: 5 });
  await expect(flow.handle(MESSAGE)).rejects.toThrow("No answer within 5 ms");
});

test("models of the older interface work", async () => {
  const world = flowWorld();
  const answers = [PLAN, planOf("a"), DONE];
  const model = new MockLanguageModelV3({
    doGenerate: async () => ({
      content: [{ type: "text", text: JSON.stringify(answers.shift()) }],
      finishReason: { unified: "stop", raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 1, text: 1, reasoning: undefined },
      },
      warnings: [],
    }),
  });
  const outcome = await acceptedPlan(world, world.start(model));
  expect(outcome).toMatchObject({ outcome: "delivered" });
});

describe("the prompt", () => {
  test("the model sees the plan, the current step, the rounds and the tools", async () => {
    const world = flowWorld();
    const seen: string[] = [];
    const answers = [PLAN, planOf("a", "b"), NEXT, NEXT];
    const model = scriptedModel({
      answer({ instructions }) {
        seen.push(instructions);
        return JSON.stringify(answers.shift());
      },
    });
    const tool = {
      name: "ship.load",
      description: () => "Loads.",
      inputSchema: { type: "object" },
    };
    const flow = world.start(model, { tools: { all: () => [tool] }, roundLimit: 9 });
    await acceptedPlan(world, flow);
    expect(seen[3]).toContain("You are at step 2 of 2: b");
    expect(seen[3]).toContain("It is done when: b is there");
    expect(seen[3]).toContain("Round 3 of 9");
    expect(seen.every((text) => text.includes("ship.load: Loads."))).toBe(true);
    expect(JSON.stringify(world.saves)).not.toContain("ship.load");
  });
});
