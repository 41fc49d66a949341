// A flow with everything around it in one process: a model with a script, a gate that can be bent, and all that was said.

import type { LanguageModel } from "ai";
import {
  createFlow,
  type Flow,
  type FlowEvent,
  type FlowOptions,
  type FlowOutcome,
  type FlowProblem,
} from "../../src/flow/create-flow.ts";
import { memoryFlowStates } from "../../src/flow/runtime-state.ts";
import type { FlowSnapshot, FlowStateStore } from "../../src/model/flow-state.ts";
import type { InteractionSnapshot } from "../../src/model/interaction.ts";
import { FakeSession } from "./fake-session.ts";

export const CONVERSATION = "talk-1";

export interface FlowWorld {
  readonly session: FakeSession;
  readonly states: FlowStateStore;
  readonly events: FlowEvent[];
  readonly problems: FlowProblem[];
  /** Every snapshot that was saved. */
  readonly saves: FlowSnapshot[];
  /** Another process over the same store and the same gate. */
  start(model: LanguageModel | undefined, over?: Partial<FlowOptions>): Flow;
}

export function flowWorld(): FlowWorld {
  const session = new FakeSession();
  const kept = memoryFlowStates();
  const saves: FlowSnapshot[] = [];
  const events: FlowEvent[] = [];
  const problems: FlowProblem[] = [];
  const states: FlowStateStore = {
    ...kept,
    async save(snapshot, keep) {
      const isSaved = await kept.save(snapshot, keep);
      if (isSaved) saves.push(structuredClone(snapshot));
      return isSaved;
    },
  };
  return {
    session,
    states,
    events,
    problems,
    saves,
    start: (model, over = {}) =>
      createFlow({
        ...(model === undefined ? {} : { model }),
        openSession: () => session,
        tools: { all: () => [] },
        states,
        onEvent: (event) => {
          events.push(event);
        },
        onProblem: (problem) => problems.push(problem),
        modelRetries: 0,
        ...over,
      }),
  };
}

export const PLAN = { action: "plan" };

export function planOf(...texts: readonly string[]): object {
  return { action: "plan", steps: texts.map((text) => ({ text, done_when: `${text} is there` })) };
}

export function callOf(tool: string, input: object = {}): object {
  return { action: "call_tool", tool, input, summary: `does ${tool}` };
}

export const NEXT = { action: "next_step", goal_check: "looked at it" };
export const DONE = { action: "done", goal_check: "all is there" };

/** The interaction a request stopped at; any other outcome is a failure of the test. */
export function waitsFor(outcome: FlowOutcome): InteractionSnapshot {
  if (outcome.outcome === "waiting") return outcome.interaction;
  throw new Error(`expected it to wait, got ${JSON.stringify(outcome)}`);
}

export function answerTo({ interaction_id, version }: InteractionSnapshot) {
  return { conversationId: CONVERSATION, interactionId: interaction_id, version };
}

export const MESSAGE = { conversationId: CONVERSATION, userId: "u-1", message: "Do it." };

/** Up to the moment where the plan is accepted and the model is asked for the first action. */
export async function acceptedPlan(world: FlowWorld, flow: Flow): Promise<FlowOutcome> {
  const asked = waitsFor(await flow.handle(MESSAGE));
  world.session.reply("accept");
  return flow.confirm(answerTo(asked));
}
