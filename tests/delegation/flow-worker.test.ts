// A sub-agent that is a flow: its session is the child's, so its calls are bound and its questions reach the inbox.

import { expect, test } from "vitest";
import { describeCapsule } from "../../src/delegation/scope.ts";
import type { Worker } from "../../src/delegation/worker.ts";
import { createFlow } from "../../src/flow/create-flow.ts";
import { memoryFlowStates } from "../../src/flow/runtime-state.ts";
import type { Session } from "../../src/gate/session.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { callOf, DONE, NEXT, PLAN, planOf } from "../flow/flow-world.ts";
import { modelSaying } from "../flow/scripted-model.ts";
import { type BoxWorld, codes, openBox, startRun } from "./port-delegation.ts";

const putOf = (slot: string) => callOf("box.put", { slot, value: 1 });

function flowWorker({ gate }: BoxWorld, model: ReturnType<typeof modelSaying>): Worker<Session> {
  return async ({ capsule, session, signal }) => {
    const flow = createFlow({
      model,
      openSession: () => session,
      tools: gate.tools,
      states: memoryFlowStates(),
      onProblem({ error }) {
        throw error;
      },
      modelRetries: 0,
    });
    const conversationId = capsule.delegationId;
    let outcome = await flow.handle({ conversationId, message: describeCapsule(capsule), signal });
    while (outcome.outcome === "waiting") {
      const { interaction_id: interactionId, version } = outcome.interaction;
      while ((await gate.interactions.get(interactionId)).status === "open") {
        await systemTimers.sleep(5, signal);
      }
      outcome = await flow.confirm({ conversationId, interactionId, version, signal });
    }
    return outcome.outcome === "delivered" ? outcome.summary : outcome.outcome;
  };
}

test("a flow can work for a delegation: a person answers its question, and calls outside its scope are denied", async () => {
  const world = openBox();
  const { session } = await startRun(world.gate, ["a", "b"]);
  const model = modelSaying(PLAN, planOf("put b", "put a"), putOf("b"), NEXT, putOf("a"), DONE);
  const working = session.delegateWork({
    mode: "single",
    requests: [codes({ planFiles: ["slot:a"] })],
    worker: flowWorker(world, model),
  });
  let asked: Awaited<ReturnType<typeof world.gate.interactions.list>>[number] | undefined;
  while (asked === undefined) {
    [asked] = await world.gate.interactions.list();
    await systemTimers.sleep(5);
  }
  expect(asked.chain).toEqual(["agent:child", "agent:lead"]);
  const { id, hash } = asked;
  await world.gate.interactions.answer(id, { hash, by: "person:ada", answer: "accept" });
  const [result] = await working;
  expect(result).toMatchObject({
    answer: "worked",
    outcome: { state: "reported", promiseMet: true },
  });
  expect(world.effects.map(({ slot }) => slot)).toEqual(["a"]);
  const prompts = JSON.stringify(model.doGenerateCalls.map(({ prompt }) => prompt));
  expect(prompts).toContain("the log says no");
  expect(prompts).toContain("plan-approved-files-only");
});
