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

describe("talk", () => {
  test("S1-01 I-73 plain talk is answered, and neither planned nor saved", async () => {
    const world = flowWorld();
    const model = modelSaying("Hello.");
    const outcome = await world.start(model).handle(MESSAGE);
    expect(outcome).toEqual({ outcome: "replied", text: "Hello." });
    expect(world.events).toEqual([{ type: "reply", conversationId: CONVERSATION, text: "Hello." }]);
    expect(world.saves).toEqual([]);
  });

  test("I-73 while something is pending a message only looks for the answer, without the model", async () => {
    const world = flowWorld();
    const asked = waitsFor(await world.start(modelSaying(PLAN, planOf("a"))).handle(MESSAGE));
    const silent = modelSaying();
    const again = waitsFor(await world.start(silent).handle({ ...MESSAGE, message: "Well?" }));
    expect(again).toEqual(asked);
    expect(silent.doGenerateCalls).toHaveLength(0);
  });

  test("earlier talk is given with the request, and not kept", async () => {
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
  test("I-70 S1-50 a plan waits for a person, and goes on where it was stored", async () => {
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
    "I-75 the answer %j to a plan clears it, and another one is made",
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

  test("S1-26 a question stops the run, and its answer goes on in the same step", async () => {
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

  test("a question that nobody answers is told to the model as no answer", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"), { action: "ask_user", question: "So?" });
    const asked = waitsFor(await acceptedPlan(world, world.start(model)));
    world.session.reply(undefined);
    const rest = modelSaying(DONE);
    await world.start(rest).reply(answerTo(asked));
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("No answer.");
  });

  test("a refusal of the gate is told to the model, and the run goes on", async () => {
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
  ])("I-76 %s is answered with a correction and asked again", async (said) => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"), said, said, said, DONE);
    const outcome = await acceptedPlan(world, world.start(model));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(JSON.stringify(model.doGenerateCalls.at(-1)?.prompt)).toContain("could not be used");
    expect(model.doGenerateCalls).toHaveLength(6);
  });

  test("I-76 too many corrections in a row end the run; those before a good answer do not count", async () => {
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

  test("I-76 used up rounds force delivery, after what the last one chose", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a", "b"), callOf("x"), callOf("y"));
    const outcome = await acceptedPlan(world, world.start(model, { roundLimit: 3 }));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(world.session.effects).toEqual(["x {}", "y {}"]);
    expect(JSON.stringify(model.doStreamCalls[0]?.prompt)).toContain("all 3 rounds are used up");
  });

  test("a model that fails stops the run, which can be resumed from what was saved", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"), callOf("x"));
    await expect(acceptedPlan(world, world.start(model))).rejects.toThrow("once too often");
    expect(world.session.effects).toHaveLength(1);
    const rest = modelSaying(DONE);
    expect(await world.start(rest).resume(CONVERSATION)).toMatchObject({ outcome: "delivered" });
    expect(world.session.effects).toHaveLength(1);
  });

  test("a message while a run is under way is handed to the model", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("a"), callOf("x"));
    await acceptedPlan(world, world.start(model)).catch(() => {});
    const rest = modelSaying(DONE);
    await world.start(rest).handle({ ...MESSAGE, message: "Hurry up." });
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("Hurry up.");
  });
});

test("a run that is called off stops before its next step, and goes on when it is resumed", async () => {
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

test("a model that never answers is given up", async () => {
  const world = flowWorld();
  const model = scriptedModel({ answer: () => new Promise<string>(() => {}) });
  const flow = world.start(model, { modelTimeoutMs: 5 });
  await expect(flow.handle(MESSAGE)).rejects.toThrow("No answer within 5 ms");
});

test("models of the older interface work as well", async () => {
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

describe("what the model is told", () => {
  test("it sees the plan, its place, the rounds and the tools", async () => {
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
