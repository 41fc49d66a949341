// Conversations that a worker continues: woken by an answer in the inbox, taken over from a process that went away.

import type { LanguageModel } from "ai";
import { expect, onTestFinished, test } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { continueFlows, createFlow } from "../../src/flow/create-flow.ts";
import { startUpkeep } from "../../src/gate/upkeep.ts";
import { createStore } from "../../src/store/store.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { AGENT, type GateWorld, openGate, PERSON, TENANT } from "../support/port-world.ts";
import { CONVERSATION, callOf, DONE, MESSAGE, PLAN, planOf, waitsFor } from "./flow-world.ts";
import { modelSaying } from "./scripted-model.ts";

const SET = callOf("world.set", { key: "a", value: 1 });

function process(world: GateWorld, model: LanguageModel, keepMs?: number) {
  const { gate, clock } = world;
  const store = createStore(world.tap.engine, { redact: createRedactor({}) });
  const states = store.tenant(TENANT).flowStates;
  const problems: unknown[] = [];
  const flow = createFlow({
    model,
    openSession: ({ conversationId }) => gate.sessions.open({ id: conversationId, agent: AGENT }),
    tools: gate.tools,
    states,
    onProblem: (problem) => problems.push(problem),
    modelRetries: 0,
    ...(keepMs === undefined ? {} : { keepMs }),
  });
  const { interactions } = gate;
  const onProblem = (problem: unknown) => problems.push(problem);
  const resume = continueFlows({ flow, states, interactions, onProblem, clock });
  return { flow, states, resume, problems };
}

async function accept({ gate }: GateWorld, id: string): Promise<void> {
  const { hash } = await gate.interactions.get(id);
  await gate.interactions.answer(id, { hash, by: PERSON, answer: "accept" });
}

forEachStore(
  "conversations",
  (open) => {
    test("an answer in the inbox wakes the conversation in a worker, once", async () => {
      const place = await open();
      const world = openGate({}, { engine: place.engine, clock: place.clock });
      const first = process(world, modelSaying(PLAN, planOf("set")));
      const plan = waitsFor(await first.flow.handle(MESSAGE));
      const worker = process(world, modelSaying(SET, DONE));
      expect(await worker.resume(), "the question is open").toEqual([]);
      const { promise, resolve } = Promise.withResolvers<readonly string[]>();
      const upkeep = startUpkeep({
        gate: world.gate,
        everyMs: 20,
        resume: worker.resume,
        onRound: ({ resumed }) => resumed.length > 0 && resolve(resumed),
        onError: (error) => {
          throw error;
        },
      });
      onTestFinished(() => upkeep.stop());
      await accept(world, plan.interaction_id);
      expect(await promise).toEqual([CONVERSATION]);
      await upkeep.stop();
      const loaded = await worker.states.load(CONVERSATION);
      const asked = loaded.found ? loaded.snapshot.state.pending_interaction : undefined;
      expect(asked).toMatchObject({ type: "confirm", status: "open" });
      const id = asked?.interaction_id ?? "";
      const { hash } = await world.gate.interactions.get(id);
      await world.gate.interactions.approve(id, { hash, by: PERSON });
      const others = [process(world, modelSaying(DONE)), process(world, modelSaying(DONE))];
      await Promise.all(others.map(({ resume }) => resume()));
      expect(world.effects).toEqual(['world.set {"key":"a","value":1}']);
      expect(await worker.resume()).toEqual([]);
    });
  },
  ["memory", "sqlite"],
);

test("a run without an open question is taken over after a rest, and expired ones are removed", async () => {
  const world = openGate();
  const dying = process(world, modelSaying(PLAN, planOf("set")));
  const plan = waitsFor(await dying.flow.handle(MESSAGE));
  await accept(world, plan.interaction_id);
  const failing = process(world, modelSaying());
  expect(await failing.resume()).toEqual([]);
  expect(failing.problems).toMatchObject([{ conversationId: CONVERSATION }]);
  // As the process leaves it that died right after it had read the answer.
  const loaded = await dying.states.load(CONVERSATION);
  if (!loaded.found) throw new Error("void: nothing is stored");
  const { state, revision } = loaded.snapshot;
  const common_state = { ...state.common_state, phase: "executing" } as const;
  const left = { ...loaded.snapshot, state: { common_state }, revision: revision + 1 };
  expect(await dying.states.save(left, { keepMs: 30 * 24 * 3_600_000 })).toBe(true);
  const other = process(world, modelSaying(SET));
  expect(await other.resume(), "it may still be at work").toEqual([]);
  world.clock.advance(5 * 60_000);
  expect(await other.resume()).toEqual([CONVERSATION]);
  world.clock.advance(31 * 24 * 3_600_000);
  const late = process(world, modelSaying(DONE));
  expect(await late.resume()).toEqual([]);
  expect(await late.states.unfinished()).toEqual([]);
  expect(await late.states.sweep(), "already swept").toBe(0);
});
