import { expect, test } from "vitest";
import type { FlowStateStore } from "../../src/model/flow-state.ts";
import {
  acceptedPlan,
  answerTo,
  CONVERSATION,
  callOf,
  flowWorld,
  MESSAGE,
  NEXT,
  PLAN,
  planOf,
  waitsFor,
} from "./flow-world.ts";
import { modelSaying } from "./scripted-model.ts";

const SAID = [PLAN, planOf("a"), callOf("pay"), NEXT];

test("every node saves after it ran, except chat and interrupt; deliver deletes [S1-49 I-72]", async () => {
  const world = flowWorld();
  world.session.lane = () => "ask";
  const flow = world.start(modelSaying(...SAID));
  const asked = waitsFor(await acceptedPlan(world, flow));
  expect(await world.states.load(CONVERSATION)).toMatchObject({ found: true });
  world.session.decide("approve");
  await flow.confirm(answerTo(asked));
  const nodes = world.saves.map(({ node, revision }) => `${revision} ${node}`);
  expect(nodes).toEqual([
    ...["1 plan", "2 confirm", "3 execute", "4 execute", "5 confirm", "6 execute", "7 execute"],
  ]);
  expect(await world.states.load(CONVERSATION)).toEqual({ found: false });
});

test("the saved state contains no request, service or tool [I-71]", async () => {
  const world = flowWorld();
  await acceptedPlan(world, world.start(modelSaying(...SAID)));
  for (const snapshot of world.saves) {
    expect(Object.keys(snapshot)).toEqual([
      ...["version", "conversation_id", "session_id", "node", "revision", "state", "work"],
    ]);
    expect(Object.keys(snapshot.work)).toEqual(["entries", "corrections", "problem"]);
  }
});

test("a choice is saved before it has an effect", async () => {
  const world = flowWorld();
  const effectsAtSave: number[] = [];
  const states: FlowStateStore = {
    ...world.states,
    save(snapshot, keep) {
      if (snapshot.node === "execute") effectsAtSave.push(world.session.effects.length);
      return world.states.save(snapshot, keep);
    },
  };
  await acceptedPlan(world, world.start(modelSaying(...SAID), { states }));
  expect(effectsAtSave).toEqual([0, 1, 1]);
});

test("a failed save is reported and does not stop the run [I-72]", async () => {
  const world = flowWorld();
  let count = 0;
  const states: FlowStateStore = {
    ...world.states,
    async save(snapshot, keep) {
      count += 1;
      if (count % 2 === 0) throw new Error("the disk is full");
      return world.states.save(snapshot, keep);
    },
  };
  const flow = world.start(modelSaying(...SAID), { states });
  const lost = await flow.handle(MESSAGE);
  expect(lost).toMatchObject({ outcome: "waiting" });
  expect(world.problems).toMatchObject([{ what: "save", conversationId: CONVERSATION }]);
  // The confirmation was not saved, so the question is found again and its answer with it.
  world.session.reply("accept");
  expect(await flow.resume(CONVERSATION)).toMatchObject({ outcome: "delivered" });
  expect(world.session.effects).toHaveLength(1);
});

test("without a store or a conversation id nothing is saved or reported [I-72]", async () => {
  const world = flowWorld();
  const flow = world.start(modelSaying(PLAN, planOf("a")));
  const { message } = MESSAGE;
  expect(await flow.handle({ message })).toMatchObject({ outcome: "waiting" });
  expect(world.saves).toEqual([]);
  const other = flowWorld();
  const session = other.session;
  const { createFlow } = await import("../../src/flow/create-flow.ts");
  const storeless = createFlow({
    model: modelSaying(PLAN, planOf("a")),
    openSession: () => session,
    tools: { all: () => [] },
    onProblem: (problem) => other.problems.push(problem),
  });
  expect(await storeless.handle(MESSAGE)).toMatchObject({ outcome: "waiting" });
  expect(await storeless.resume(CONVERSATION)).toEqual({ outcome: "nothing_stored" });
  expect([...world.problems, ...other.problems]).toEqual([]);
});

test("a failed load is an error and starts no new run [I-71]", async () => {
  const world = flowWorld();
  const states: FlowStateStore = {
    ...world.states,
    load: async () => {
      throw new Error("no connection");
    },
  };
  const model = modelSaying(PLAN);
  const flow = world.start(model, { states });
  await expect(flow.handle(MESSAGE)).rejects.toThrow("no connection");
  expect(model.doGenerateCalls).toHaveLength(0);
});

test("a run that another process continued stops before its next step", async () => {
  const world = flowWorld();
  await acceptedPlan(world, world.start(modelSaying(PLAN, planOf("a"), NEXT))).catch(() => {});
  const slow = flowWorld();
  const states: FlowStateStore = { ...slow.states, save: async () => false };
  const model = modelSaying(PLAN, planOf("a"));
  const outcome = await slow.start(model, { states }).handle(MESSAGE);
  expect(outcome).toEqual({ outcome: "taken_over" });
  expect(slow.session.questions).toEqual([]);
});

test("an unreadable stored state is reported by name", async () => {
  const world = flowWorld();
  await world.start(modelSaying(PLAN, planOf("a"))).handle(MESSAGE);
  const loaded = await world.states.load(CONVERSATION);
  if (!loaded.found) throw new Error("expected a snapshot");
  const damaged = { ...loaded.snapshot, work: {} };
  const states: FlowStateStore = {
    ...world.states,
    load: async () => ({ found: true, snapshot: damaged }),
  };
  const flow = world.start(modelSaying(), { states });
  await expect(flow.resume(CONVERSATION)).rejects.toThrow(/damaged_record/);
});
