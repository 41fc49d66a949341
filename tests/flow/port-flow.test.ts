// A flow over the real gate: the run continues with the decisions of the inbox.

import type { LanguageModel } from "ai";
import { describe, expect, test } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { createFlow, type Flow } from "../../src/flow/create-flow.ts";
import { askUserTool } from "../../src/gate/inbox.ts";
import { SallyportError } from "../../src/model/errors.ts";
import type { InteractionSnapshot } from "../../src/model/interaction.ts";
import { createStore } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, type GateWorld, openGate, PERSON, rules, TENANT } from "../support/port-world.ts";
import {
  answerTo,
  CONVERSATION,
  callOf,
  DONE,
  MESSAGE,
  NEXT,
  PLAN,
  planOf,
  waitsFor,
} from "./flow-world.ts";
import { modelSaying } from "./scripted-model.ts";

const LOOK = callOf("world.look", { key: "a" });
const SET = callOf("world.set", { key: "a", value: 1 });

function start(world: GateWorld, model: LanguageModel, gate = world.gate): Flow {
  const store = createStore(world.tap.engine, { redact: createRedactor({}) });
  return createFlow({
    model,
    openSession: ({ conversationId }) => gate.sessions.open({ id: conversationId, agent: AGENT }),
    tools: gate.tools,
    states: store.tenant(TENANT).flowStates,
    onProblem({ error }) {
      throw error;
    },
    modelRetries: 0,
  });
}

/** Answers the plan in the inbox and continues to the next stop of the run. */
async function acceptPlan(world: GateWorld, flow: Flow): Promise<InteractionSnapshot> {
  const plan = waitsFor(await flow.handle(MESSAGE));
  const { hash } = await world.gate.interactions.get(plan.interaction_id);
  await world.gate.interactions.answer(plan.interaction_id, { hash, by: PERSON, answer: "accept" });
  return waitsFor(await flow.confirm(answerTo(plan)));
}

/** Stopped at a call that needs a person, after one that does not. */
async function beforeSet(world: GateWorld): Promise<InteractionSnapshot> {
  const model = modelSaying(PLAN, planOf("look", "set"), LOOK, NEXT, SET);
  return acceptPlan(world, start(world, model));
}

async function seen(world: GateWorld, { interaction_id }: InteractionSnapshot, by = PERSON) {
  const { hash } = await world.gate.interactions.get(interaction_id);
  return { hash, by };
}

const statesOf = async ({ gate }: GateWorld) =>
  (await gate.decisions.listBySession(CONVERSATION)).map(({ state }) => state);

for (const door of ["confirm", "reply"] as const) {
  test(`a plan is the same kind of question in the flow and in the inbox, and continues by ${door} [B5d]`, async () => {
    const world = openGate();
    const flow = start(world, modelSaying(PLAN, planOf("look"), DONE));
    const plan = waitsFor(await flow.handle(MESSAGE));
    const { type, choices, hash } = await world.gate.interactions.get(plan.interaction_id);
    expect({ type, choices }).toEqual({ type: plan.type, choices: ["accept", "reject"] });
    const yes = { hash, by: PERSON, answer: "accept" };
    await world.gate.interactions.answer(plan.interaction_id, yes);
    expect(await flow[door](answerTo(plan))).toMatchObject({ outcome: "delivered" });
  });
}

describe("a confirmation is about a staged record [I-81]", () => {
  test("an accepted call is executed by the gate, and the run gets the one result", async () => {
    const world = openGate();
    const asked = await beforeSet(world);
    expect(await statesOf(world)).toEqual(["pending_ml"]);
    expect(await world.gate.interactions.get(asked.interaction_id)).toMatchObject({
      type: "confirm",
      status: "open",
      sessionId: CONVERSATION,
    });
    expect(world.effects).toEqual([]);
    const { interactions } = world.gate;
    await interactions.approve(asked.interaction_id, await seen(world, asked));
    const rest = modelSaying(DONE);
    const outcome = await start(world, rest).confirm(answerTo(asked));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(world.effects).toEqual(['world.set {"key":"a","value":1}']);
    expect(await statesOf(world)).toEqual(["executed"]);
    const shown = JSON.stringify(rest.doGenerateCalls[0]?.prompt);
    expect(shown.match(/Result \(done\): set/g)).toHaveLength(1);
  });

  test("a rejection rejects the record, and nothing stays approved", async () => {
    const world = openGate();
    const asked = await beforeSet(world);
    const no = { ...(await seen(world, asked)), reason: "not on a Sunday" };
    await world.gate.interactions.reject(asked.interaction_id, no);
    expect(await statesOf(world), "before the run has come back").toEqual(["rejected_ml"]);
    const rest = modelSaying(DONE);
    await start(world, rest).confirm(answerTo(asked));
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("not on a Sunday");
    expect(world.effects).toEqual([]);
    expect(await world.gate.decisions.listStuck("approved", 0)).toEqual([]);
  });

  test("neither a call of the flow nor the agent can approve", async () => {
    const world = openGate();
    const asked = await beforeSet(world);
    const flow = start(world, modelSaying());
    expect(waitsFor(await flow.confirm(answerTo(asked)))).toEqual(asked);
    const itself = await seen(world, asked, AGENT);
    await expect(world.gate.interactions.approve(asked.interaction_id, itself)).rejects.toThrow(
      /not_allowed/,
    );
    expect(world.effects).toEqual([]);
  });

  test("no answer means no, and the run continues without the call", async () => {
    const world = openGate({ approvalMs: 1_000 });
    const asked = await beforeSet(world);
    world.clock.advance(1_001);
    await world.gate.interactions.sweep();
    const rest = modelSaying(DONE);
    const outcome = await start(world, rest).confirm(answerTo(asked));
    expect(outcome).toMatchObject({ outcome: "delivered" });
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("Result (denied)");
    expect(world.effects).toEqual([]);
    expect(await statesOf(world)).toEqual(["rejected_ml"]);
  });

  test("an edited call is a new question that no longer shows the agent's input", async () => {
    const world = openGate({
      review: [{ requires: [{ name: "review", count: 1 }], editorMayApprove: true }],
    });
    const asked = await beforeSet(world);
    const { interactions } = world.gate;
    const edited = await interactions.edit(asked.interaction_id, {
      ...(await seen(world, asked)),
      inputs: { 0: { key: "a", value: 2 } },
    });
    if (!edited.edited) throw new Error(edited.text);
    const flow = start(world, modelSaying(DONE));
    const next = waitsFor(await flow.confirm(answerTo(asked)));
    expect(next.interaction_id).toBe(edited.interaction.id);
    expect(next.display_text).toContain("Changed in review");
    expect(next.display_text).not.toContain('"value":1');
    await interactions.approve(next.interaction_id, await seen(world, next));
    expect(await flow.confirm(answerTo(next))).toMatchObject({ outcome: "delivered" });
    expect(world.effects).toEqual(['world.set {"key":"a","value":2}']);
  });
});

test("pains 5: resuming repeats no call from before the pause [R16]", async () => {
  const world = openGate();
  const asked = await beforeSet(world);
  expect(world.reads).toHaveLength(1);
  for (let times = 0; times < 3; times += 1) {
    await start(world, modelSaying()).resume(CONVERSATION);
  }
  await world.gate.interactions.approve(asked.interaction_id, await seen(world, asked));
  await start(world, modelSaying(DONE)).confirm(answerTo(asked));
  expect(world.reads).toHaveLength(1);
  expect(world.effects).toHaveLength(1);
});

test("an approval whose process died before the execution is executed, and the run continues [R17]", async () => {
  const world = openGate({ leaseMs: 1_000 });
  const asked = await beforeSet(world);
  const dying = world.again({
    at(point) {
      if (point === "S4.after") throw new Error("gone");
    },
  });
  const yes = await seen(world, asked);
  world.tap.isApart = true;
  await expect(dying.interactions.approve(asked.interaction_id, yes)).rejects.toThrow("gone");
  world.tap.isApart = false;
  // Approved and not executed: the run waits, and does not make the call by itself.
  const flow = start(world, modelSaying(DONE));
  expect(waitsFor(await flow.confirm(answerTo(asked)))).toEqual(asked);
  expect(world.effects).toEqual([]);
  world.clock.advance(1_001);
  await world.gate.recover();
  expect(await flow.confirm(answerTo(asked))).toMatchObject({ outcome: "delivered" });
  expect(world.effects).toHaveLength(1);
});

test("a lost outcome waits for a person under the id of the inbox, and the run continues with the finding [B5c] [I-79]", async () => {
  const calls: number[] = [];
  const lossy = defineTool({
    name: "world.lossy",
    description: "Loses its answer.",
    input: { type: "object", additionalProperties: false },
    safety: { effect: "external" },
    execute() {
      calls.push(1);
      throw new SallyportError("outcome_unknown", {});
    },
  });
  const policy = rules({ id: "r", effect: "allow", tool: "world.lossy", reason: "a test" });
  const world = openGate({ tools: [lossy], policy });
  const model = modelSaying(PLAN, planOf("a"), callOf("world.lossy"));
  const lost = await acceptPlan(world, start(world, model));
  expect(lost).toMatchObject({ type: "connection_lost", resume_phase: "executing" });
  const [open] = await world.gate.interactions.list({ status: "open" });
  expect(open?.type).toBe("connection_lost");
  expect(lost.interaction_id, "the flow shows the question of the inbox").toBe(open?.id);
  const found = {
    hash: open?.hash ?? "",
    by: PERSON,
    happened: true,
    output: "it is there",
  } as const;
  await world.gate.interactions.settle(open?.id ?? "", found);
  const rest = modelSaying(DONE);
  expect(await start(world, rest).resume(CONVERSATION)).toMatchObject({ outcome: "delivered" });
  expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("Result (done): it is there");
  expect(calls).toHaveLength(1);
});

test("a question through the ask_user tool is in the same inbox, and its answer is the result", async () => {
  const world = openGate({ tools: [askUserTool()] });
  const question = callOf("ask_user", { question: "Red or blue?", choices: ["red", "blue"] });
  const asked = await acceptPlan(world, start(world, modelSaying(PLAN, planOf("a"), question)));
  expect(asked).toMatchObject({ type: "ask_user", display_text: "Red or blue?" });
  const flow = start(world, modelSaying(DONE));
  expect(waitsFor(await flow.reply(answerTo(asked)))).toEqual(asked);
  const answer = { ...(await seen(world, asked)), answer: "blue" };
  await world.gate.interactions.answer(asked.interaction_id, answer);
  const rest = modelSaying(DONE);
  expect(await start(world, rest).reply(answerTo(asked))).toMatchObject({ outcome: "delivered" });
  expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("Result (done): blue");
});

test("a second run in the same conversation makes its own calls", async () => {
  const world = openGate();
  for (const value of [1, 2]) {
    const set = callOf("world.set", { key: "a", value });
    const asked = await acceptPlan(world, start(world, modelSaying(PLAN, planOf("set"), set)));
    await world.gate.interactions.approve(asked.interaction_id, await seen(world, asked));
    await start(world, modelSaying(DONE)).confirm(answerTo(asked));
  }
  expect(world.effects).toHaveLength(2);
});

test("a hook keeps a person's words from the agent, and keeps the agent at work when it wants to stop [I-46]", async () => {
  let stops = 0;
  const world = openGate({
    hooks: [
      {
        name: "watch",
        points: ["user_prompt", "stop"],
        handle({ point, input }) {
          if (point === "user_prompt") {
            return input === "forbidden" ? { answer: "deny", message: "no." } : { answer: "allow" };
          }
          stops += 1;
          return stops === 1
            ? { answer: "deny", message: "the tests are missing." }
            : { answer: "allow" };
        },
      },
    ],
  });
  const model = modelSaying(PLAN, planOf("look"), DONE, LOOK, DONE, "The end.");
  const flow = start(world, model);
  expect(await flow.handle({ ...MESSAGE, message: "forbidden" })).toMatchObject({
    outcome: "refused",
    text: expect.stringContaining("no."),
  });
  const plan = waitsFor(await flow.handle(MESSAGE));
  const { hash } = await world.gate.interactions.get(plan.interaction_id);
  await world.gate.interactions.answer(plan.interaction_id, { hash, by: PERSON, answer: "accept" });
  const end = await flow.confirm(answerTo(plan));
  expect(end).toMatchObject({ outcome: "delivered" });
  expect(stops).toBe(2);
  expect(world.reads, "it went on after the first no").toHaveLength(1);
});

test("a saved state executes, repeats and rolls back nothing, whatever is written into it; the gate does these [S1-07]", async () => {
  const world = openGate();
  const asked = await beforeSet(world);
  const { flowStates } = createStore(world.tap.engine, { redact: createRedactor({}) }).tenant(
    TENANT,
  );
  const loaded = await flowStates.load(CONVERSATION);
  if (!loaded.found) throw new Error("nothing was saved");
  const before = loaded.snapshot;
  const keep = { keepMs: 3_600_000 };

  // Somebody wrote into it that the question is decided, and for another call.
  const { common_state, pending_interaction } = before.state;
  if (pending_interaction?.pending_tool === undefined) throw new Error("it is about no call");
  const pending_tool = {
    ...pending_interaction.pending_tool,
    args_json: '{"key":"a","value":99}',
  };
  const forged = {
    common_state: { ...common_state, phase: "executing" as const },
    pending_interaction: { ...pending_interaction, status: "resolved" as const, pending_tool },
  };
  const revision = before.revision + 1;
  expect(await flowStates.save({ ...before, revision, state: forged }, keep)).toBe(true);
  const again = waitsFor(await start(world, modelSaying()).resume(CONVERSATION));
  expect(again.interaction_id, "the same question of the gate").toBe(asked.interaction_id);
  expect(world.effects).toEqual([]);
  expect(await statesOf(world)).toEqual(["pending_ml"]);

  await world.gate.interactions.approve(asked.interaction_id, await seen(world, asked));
  const done = ['world.set {"key":"a","value":1}'];
  expect(world.effects, "what the gate keeps, not what the state says").toEqual(done);
  await start(world, modelSaying(DONE)).confirm(answerTo(asked));
  // The state from before the answer, as from a backup: the run continues there, and the gate knows the call.
  for (let times = 0; times < 2; times += 1) {
    expect(await flowStates.save({ ...before, revision: 1 }, keep)).toBe(true);
    const rest = modelSaying(DONE);
    expect(await start(world, rest).resume(CONVERSATION)).toMatchObject({ outcome: "delivered" });
    expect(JSON.stringify(rest.doGenerateCalls[0]?.prompt)).toContain("Result (done): set");
  }
  expect(world.effects).toEqual(done);

  // Neither the end of the run nor its removal takes anything back; a rollback of the gate does.
  expect((await flowStates.load(CONVERSATION)).found).toBe(false);
  expect(world.values.get("a")).toBe(1);
  const session = world.gate.sessions.open({ id: CONVERSATION, agent: AGENT });
  expect(await session.rollback(PERSON)).toMatchObject({ undone: [{ tool: "world.set" }] });
  expect(world.values.get("a")).toBe(null);
});

test("a question and a confirmation interrupt the flow and are no tools: only business calls are staged or executed [S1-10]", async () => {
  const world = openGate();
  const question = { action: "ask_user", question: "Which value?", choices: ["1", "2"] };
  const planning = modelSaying(PLAN, planOf("set"), question, SET);
  const asked = await acceptPlan(world, start(world, planning));
  expect(asked).toMatchObject({ type: "ask_user", resume_node: "execute", resume_step: 0 });
  expect(asked).not.toHaveProperty("pending_tool");
  expect(await world.gate.interactions.get(asked.interaction_id)).toMatchObject({
    type: "ask_user",
    decisionId: "",
  });
  expect(await statesOf(world), "a question is not a call").toEqual([]);
  expect(await world.gate.operations.listBySession(CONVERSATION)).toEqual([]);

  const answer = { ...(await seen(world, asked)), answer: "1" };
  await world.gate.interactions.answer(asked.interaction_id, answer);
  const confirm = waitsFor(await start(world, modelSaying(SET)).reply(answerTo(asked)));
  expect(confirm).toMatchObject({
    type: "confirm",
    resume_node: "execute",
    resume_step: 0,
    pending_tool: { tool_name: "world.set" },
  });
  expect(await statesOf(world), "the call that is confirmed, not its confirmation").toEqual([
    "pending_ml",
  ]);

  // No tool of the gate, none that the model is shown, and none that it could call by the name.
  const names = world.gate.tools.all().map(({ name }) => name);
  const shown = JSON.stringify(planning.doGenerateCalls[0]?.prompt).match(/- [\w.]+: /g) ?? [];
  expect(shown.map((line) => line.slice(2, -2)).toSorted()).toEqual(names.toSorted());
  for (const name of ["ask_user", "confirm"]) {
    expect(names).not.toContain(name);
    const session = world.gate.sessions.open({ id: "other", agent: AGENT });
    const call = { callId: name, tool: name, input: { question: "Which?" }, messageId: "m" };
    expect(await session.call(call), "there is no such tool").toMatchObject({ answer: "failed" });
  }
});
