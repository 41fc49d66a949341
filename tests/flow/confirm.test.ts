// A tool call that waits for a person, and all its continuations.

import { describe, expect, test } from "vitest";
import type { FlowEvent, FlowRun } from "../../src/flow/create-flow.ts";
import { confirm, interrupt } from "../../src/flow/nodes.ts";
import {
  clearInteraction,
  createRuntimeState,
  hasPendingInteraction,
  newWork,
  openAskUser,
  openInteraction,
  runtimeStateOf,
  savedRuntimeState,
} from "../../src/flow/runtime-state.ts";
import { FakeSession } from "./fake-session.ts";
import {
  acceptedPlan,
  answerTo,
  CONVERSATION,
  callOf,
  DONE,
  type FlowWorld,
  flowWorld,
  MESSAGE,
  NEXT,
  PLAN,
  planOf,
  waitsFor,
} from "./flow-world.ts";
import { modelSaying } from "./scripted-model.ts";

const TOOL = { tool_name: "pay", args_json: '{"cents":1}', summary: "does pay" };

/** Stopped before the payment in the second step. */
async function beforePayment(world: FlowWorld) {
  world.session.lane = (tool) => (tool === "pay" ? "ask" : "allow");
  const answers = [PLAN, planOf("look", "pay"), callOf("look"), NEXT, callOf("pay", { cents: 1 })];
  return waitsFor(await acceptedPlan(world, world.start(modelSaying(...answers))));
}

describe("a pending call", () => {
  test("the card is made without the model and shows exactly the call [S1-27 S1-46 I-74]", async () => {
    const world = flowWorld();
    const asked = await beforePayment(world);
    expect(asked).toMatchObject({
      type: "confirm",
      pending_tool: TOOL,
      resume_phase: "waiting_confirm",
      resume_step: 1,
    });
    const cards = world.events.filter(({ type }) => type === "card");
    expect(cards.at(-1)).toEqual({
      type: "card",
      conversationId: CONVERSATION,
      card: { interactionId: asked.interaction_id, text: asked.display_text, tool: TOOL },
    });
    expect(asked.display_text).toContain('does pay\npay {"cents":1}');
    expect(world.saves.at(-1)).toMatchObject({
      node: "confirm",
      state: { pending_interaction: asked },
    });
    expect(world.session.effects).toEqual(["look {}"]);
  });

  test("an accepted call runs without asking the model again, which then continues [I-75]", async () => {
    const world = flowWorld();
    const asked = await beforePayment(world);
    world.session.decide("approve");
    const rest = modelSaying(DONE);
    const outcome = await world.start(rest).confirm(answerTo(asked));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(world.session.effects).toEqual(["look {}", 'pay {"cents":1}']);
    expect(rest.doGenerateCalls).toHaveLength(1);
    const shown = JSON.stringify(rest.doGenerateCalls[0]?.prompt);
    expect(shown.match(/Result \(done\)/g)).toHaveLength(2);
    // S1-15 S1-41: back to Execute, not into another confirmation.
    expect(world.events.filter(({ type }) => type === "card")).toHaveLength(2);
  });

  test("a rejected call is not run, and the model gets the rejection [I-75]", async () => {
    const world = flowWorld();
    const asked = await beforePayment(world);
    world.session.decide("reject");
    const rest = modelSaying(callOf("ask.discount"), DONE);
    const outcome = await world.start(rest).confirm(answerTo(asked));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(world.session.effects).toEqual(["look {}", "ask.discount {}"]);
    const askedFor = world.session.calls.map(({ tool }) => tool);
    expect(askedFor, "a rejected call is not even asked for again").toEqual([
      ...["look", "pay", "ask.discount"],
    ]);
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("too expensive");
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("at step 2 of 2");
  });

  test("an undecided call stays pending", async () => {
    const world = flowWorld();
    const asked = await beforePayment(world);
    const again = await world.start(modelSaying()).confirm(answerTo(asked));
    expect(waitsFor(again)).toEqual(asked);
    expect(world.session.effects).toEqual(["look {}"]);
  });

  test("a question that replaced another one is shown", async () => {
    const world = flowWorld();
    const asked = await beforePayment(world);
    world.session.decide("edit");
    const flow = world.start(modelSaying(DONE));
    const next = waitsFor(await flow.confirm(answerTo(asked)));
    expect(next).toMatchObject({ interaction_id: "d-2", resume_phase: "waiting_confirm" });
    expect(await flow.confirm(answerTo(asked))).toMatchObject({ outcome: "refused" });
    world.session.decide("approve");
    expect(await flow.confirm(answerTo(next))).toMatchObject({ outcome: "delivered" });
    expect(world.session.effects).toHaveLength(2);
  });
});

describe("which answer counts [I-78]", () => {
  test("a late answer to an older question is refused and has no effect", async () => {
    const world = flowWorld();
    const model = modelSaying(PLAN, planOf("pay"), callOf("pay", { cents: 1 }));
    world.session.lane = () => "ask";
    const flow = world.start(model);
    const plan = waitsFor(await flow.handle(MESSAGE));
    world.session.reply("accept");
    const payment = waitsFor(await flow.confirm(answerTo(plan)));
    world.session.decide("approve");
    const before = structuredClone(world.saves);
    for (const late of [
      answerTo(plan),
      { ...answerTo(payment), interactionId: "d-other" },
      { ...answerTo(payment), version: 2 },
      { ...answerTo(payment), conversationId: "talk-2" },
    ]) {
      expect(await flow.confirm(late)).toMatchObject({ outcome: "refused" });
    }
    expect(await flow.reply(answerTo(payment)), "it was no question").toMatchObject({
      outcome: "refused",
    });
    expect(world.saves).toEqual(before);
    expect(model.doGenerateCalls).toHaveLength(3);
  });

  test("a double click executes once", async () => {
    const world = flowWorld();
    const asked = await beforePayment(world);
    world.session.decide("approve");
    const model = modelSaying(DONE);
    const flow = world.start(model);
    const outcomes = await Promise.all([1, 2, 3].map(() => flow.confirm(answerTo(asked))));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["delivered", "refused", "refused"]);
    expect(world.session.effects).toHaveLength(2);
  });

  test("two concurrent processes execute once, and one of them stops", async () => {
    const world = flowWorld();
    const asked = await beforePayment(world);
    world.session.decide("approve");
    const processes = [1, 2].map(() => world.start(modelSaying(callOf("note"), DONE)));
    const outcomes = await Promise.all(processes.map((flow) => flow.confirm(answerTo(asked))));
    expect(outcomes.map(({ outcome }) => outcome).toSorted()).toEqual(["delivered", "taken_over"]);
    expect(world.session.effects).toEqual(["look {}", 'pay {"cents":1}', "note {}"]);
  });
});

describe("a lost outcome [I-79]", () => {
  test("it waits as connection_lost and resumes at the saved point without a question [S1-33]", async () => {
    const world = flowWorld();
    world.session.lane = (tool) => (tool === "pay" ? "lost" : "allow");
    const model = modelSaying(PLAN, planOf("a", "b"), NEXT, callOf("pay", { cents: 1 }));
    const asked = waitsFor(await acceptedPlan(world, world.start(model)));
    expect(asked).toMatchObject({
      type: "connection_lost",
      pending_tool: TOOL,
      resume_node: "execute",
      resume_phase: "executing",
      resume_step: 1,
    });
    // The outcome is still unknown: the same call is asked about, not repeated.
    const silent = modelSaying();
    const saves = world.saves.length;
    expect(waitsFor(await world.start(silent).resume(CONVERSATION))).toEqual(asked);
    expect(world.saves, "nothing has changed").toHaveLength(saves);
    world.session.decide("approve");
    const rest = modelSaying(DONE);
    expect(await world.start(rest).resume(CONVERSATION)).toMatchObject({ outcome: "delivered" });
    expect(new Set(world.session.calls.map(({ key }) => key)).size).toBe(1);
    expect(world.session.effects).toEqual(['pay {"cents":1}']);
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("at step 2 of 2");
    expect(world.session.questions).toHaveLength(1);
  });

  test("a message of the user resumes it as well", async () => {
    const world = flowWorld();
    world.session.lane = () => "lost";
    const model = modelSaying(PLAN, planOf("a"), callOf("pay"));
    await acceptedPlan(world, world.start(model));
    world.session.decide("reject");
    const rest = modelSaying(DONE);
    expect(await world.start(rest).handle(MESSAGE)).toMatchObject({ outcome: "delivered" });
  });
});

describe("the Confirm node", () => {
  function runWith(
    over: Partial<FlowRun["state"]>,
    say: (event: FlowEvent) => Promise<void>,
  ): FlowRun {
    const plan_steps = [{ text: "a", done_when: "b" }];
    const state = createRuntimeState({ phase: "waiting_confirm", plan_steps });
    Object.assign(state, over);
    const parts = { say } as FlowRun["parts"];
    return {
      state,
      work: newWork(),
      session: new FakeSession(),
      parts,
      request: { message: "", history: [], signal: undefined },
      isNew: false,
      revision: 0,
      outcome: undefined,
    };
  }

  test("it confirms a tool before a plan, and empties the mailbox [I-74 S1-15]", async () => {
    const run = runWith({ mailbox: { tool: TOOL, interactionId: "d-1" } }, async () => {});
    await confirm(run);
    expect(run.state.pending).toMatchObject({ interaction_id: "d-1", pending_tool: TOOL });
    expect(run.state.mailbox).toBeUndefined();
  });

  test("the card is sent before the interaction is opened, so a failed card leaves no question [I-74]", async () => {
    const openAtCard: boolean[] = [];
    const run = runWith({ mailbox: { tool: TOOL, interactionId: "d-1" } }, async () => {
      openAtCard.push(hasPendingInteraction(run.state));
      throw new Error("the line is dead");
    });
    await expect(confirm(run)).rejects.toThrow("the line is dead");
    expect(openAtCard).toEqual([false]);
    expect(run.state.pending).toBeUndefined();
    expect(run.state.common.phase).toBe("waiting_confirm");
    const plan = runWith({}, async () => {
      throw new Error("the line is dead");
    });
    await expect(confirm(plan)).rejects.toThrow("the line is dead");
    expect(plan.state.pending).toBeUndefined();
  });

  test("with nothing to confirm it throws [I-74]", async () => {
    const run = runWith({}, async () => {});
    run.state.common.plan_steps = [];
    await expect(confirm(run)).rejects.toThrow(/neither a tool call nor a plan/);
  });

  test("the Interrupt node has an event for a question, a confirmation and a lost call [S1-47]", async () => {
    const told: string[] = [];
    const say = async ({ type }: FlowEvent) => {
      told.push(type);
    };
    const opening = { interactionId: "i", displayText: "?", resumeNode: "execute" };
    const asked = runWith({}, say);
    openAskUser(asked.state, opening);
    const lost = runWith({}, say);
    openInteraction(lost.state, opening, { type: "connection_lost" });
    const confirmed = runWith({}, async () => {});
    await confirm(confirmed);
    const runs = [asked, { ...confirmed, parts: asked.parts }, lost];
    for (const run of runs) {
      await interrupt(run);
      expect(run.outcome).toMatchObject({ outcome: "waiting" });
    }
    expect(told).toEqual(["question", "confirmation", "connection_lost"]);
  });
});

test("a card that could not be sent is sent again when the run is resumed", async () => {
  const world = flowWorld();
  const isDead = { now: true };
  const cards: FlowEvent[] = [];
  const onEvent = (event: FlowEvent) => {
    if (event.type !== "card") return;
    if (isDead.now) throw new Error("the line is dead");
    cards.push(event);
  };
  const flow = world.start(modelSaying(PLAN, planOf("a")), { onEvent });
  await expect(flow.handle(MESSAGE)).rejects.toThrow("the line is dead");
  expect(world.saves.at(-1)).toMatchObject({
    node: "plan",
    state: expect.not.objectContaining({ pending_interaction: expect.anything() }),
  });
  isDead.now = false;
  const asked = waitsFor(await flow.resume(CONVERSATION));
  expect(cards).toHaveLength(1);
  expect(world.session.questions).toHaveLength(1);
  expect(asked.interaction_id).toBe(`q-${world.session.questions[0]?.callId}`);
});

test("after a kill between Execute and Confirm the tool is confirmed, not the plan again [S1-14 S1-40]", async () => {
  const world = flowWorld();
  world.session.lane = () => "ask";
  const model = modelSaying(PLAN, planOf("a"), callOf("pay", { cents: 1 }));
  const onEvent = (event: FlowEvent) => {
    if (event.type === "card" && event.card.tool !== undefined) throw new Error("gone");
  };
  await expect(acceptedPlan(world, world.start(model, { onEvent }))).rejects.toThrow("gone");
  expect(world.saves.at(-1)).toMatchObject({
    node: "execute",
    state: { common_state: { phase: "waiting_confirm" } },
  });
  const saved = world.saves.length;
  const silent = modelSaying();
  const asked = waitsFor(await world.start(silent).resume(CONVERSATION));
  expect(asked).toMatchObject({ type: "confirm", pending_tool: TOOL });
  expect(world.saves.slice(saved), "it continues, and repeats nothing").toMatchObject([
    { node: "confirm" },
  ]);
  expect(world.session.questions).toHaveLength(1);
  expect(world.session.effects).toEqual([]);
});

test("a canceled call is never made, and the next message leads to a new plan [S1-43]", async () => {
  const world = flowWorld();
  await beforePayment(world);
  const loaded = await world.states.load(CONVERSATION);
  if (!loaded.found) throw new Error("expected a snapshot");
  const { snapshot } = loaded;
  const state = runtimeStateOf(snapshot.state);
  clearInteraction(state);
  const cleared = { ...snapshot, revision: snapshot.revision + 1, state: savedRuntimeState(state) };
  await world.states.save(cleared, { keepMs: 1_000 });
  expect(await world.start(modelSaying()).resume(CONVERSATION)).toEqual({ outcome: "stopped" });
  world.session.lane = () => "allow";
  const flow = world.start(modelSaying(planOf("wait"), DONE));
  const plan = waitsFor(await flow.handle({ ...MESSAGE, message: "Do not pay." }));
  world.session.reply("accept");
  expect(await flow.confirm(answerTo(plan))).toMatchObject({ outcome: "delivered" });
  expect(world.session.effects).toEqual(["look {}"]);
});

test("a call decided during a kill between Execute and Confirm is not asked about again [S1-40]", async () => {
  const world = flowWorld();
  world.session.lane = () => "ask";
  const model = modelSaying(PLAN, planOf("a"), callOf("pay", { cents: 1 }));
  const onEvent = (event: FlowEvent) => {
    if (event.type === "card" && event.card.tool !== undefined) throw new Error("gone");
  };
  await expect(acceptedPlan(world, world.start(model, { onEvent }))).rejects.toThrow("gone");
  world.session.decide("approve");
  const outcome = await world.start(modelSaying(DONE)).resume(CONVERSATION);
  expect(outcome).toMatchObject({ outcome: "delivered" });
  expect(world.session.effects).toEqual(['pay {"cents":1}']);
});
