import { describe, expect, test } from "vitest";
import type { PendingTool } from "../model/interaction.ts";
import {
  clearInteraction,
  createRuntimeState,
  openAskUser,
  openConfirm,
  openInteraction,
  type RuntimeState,
  resumeFromInteraction,
} from "./runtime-state.ts";

import { loadRuntimeState, savedRuntimeState, saveRuntimeState } from "./snapshot-json.ts";

const OPENING = { interactionId: "i-1", displayText: "So?", resumeNode: "execute" };
const TOOL: PendingTool = { tool_name: "pay", args_json: '{"cents":1}', summary: "pays" };
const KEYS = [
  ...["version", "interaction_id", "type", "status", "display_text"],
  ...["resume_node", "resume_phase", "resume_step"],
];

function waiting(): RuntimeState {
  const state = createRuntimeState({
    trace_id: "t-1",
    user_id: "u-1",
    conversation_id: "c-1",
    phase: "waiting_confirm",
    plan_steps: [{ text: "a", done_when: "b" }],
    current_step: 2,
    rounds_used: 4,
  });
  openConfirm(state, OPENING, TOOL);
  return state;
}

const json = (state: RuntimeState) => JSON.parse(saveRuntimeState(state));

test("S1-05 a waiting call has three facts under these names", () => {
  expect(Object.keys(json(waiting()).pending_interaction.pending_tool)).toEqual([
    "tool_name",
    "args_json",
    "summary",
  ]);
});

test("S1-06 S1-07 arguments stay the text they were, whatever it says", () => {
  const state = createRuntimeState();
  const args_json = '{"a": 1, "a": 2, not even JSON';
  openConfirm(state, OPENING, { ...TOOL, args_json });
  const loaded = loadRuntimeState(saveRuntimeState(state));
  expect(loaded.pending?.pending_tool?.args_json).toBe(args_json);
});

test("S1-08 S1-09 the keys of an interaction, without what is empty", () => {
  expect(Object.keys(json(waiting()).pending_interaction)).toEqual([...KEYS, "pending_tool"]);
  const asked = createRuntimeState();
  openAskUser(asked, { interactionId: "", displayText: "", resumeNode: "" });
  expect(Object.keys(json(asked).pending_interaction)).toEqual(KEYS);
  const lost = createRuntimeState();
  openInteraction(lost, OPENING, {
    type: "connection_lost",
    pending_tool: TOOL,
    metadata: { why: "gone" },
  });
  expect(Object.keys(json(lost).pending_interaction)).toEqual([
    ...KEYS,
    "pending_tool",
    "metadata",
  ]);
  const empty = createRuntimeState();
  openInteraction(empty, OPENING, { type: "connection_lost", metadata: {} });
  expect(Object.keys(json(empty).pending_interaction)).toEqual(KEYS);
});

test("S1-10 S1-16 flow control and interruption stay apart", () => {
  const { common_state, pending_interaction } = json(waiting());
  expect(Object.keys(common_state).toSorted()).toEqual(
    [
      ...["trace_id", "user_id", "conversation_id", "phase", "plan_steps"],
      ...["current_step", "round_limit", "rounds_used"],
    ].toSorted(),
  );
  expect(Object.keys(pending_interaction).filter((key) => key in common_state)).toEqual([]);
});

test("S1-11 S1-12 what is stored says where to go on, also for a reader that has only that", () => {
  const text = saveRuntimeState(waiting());
  const loaded = loadRuntimeState(text);
  expect(loaded.pending).toMatchObject({
    resume_node: "execute",
    resume_phase: "waiting_confirm",
    resume_step: 2,
  });
  expect(resumeFromInteraction(loaded)).toBe(true);
  expect(loaded.common).toMatchObject({ phase: "waiting_confirm", current_step: 2 });
});

test("S1-13 the two parts have these names, and the second is left out when there is none", () => {
  expect(Object.keys(json(waiting()))).toEqual(["common_state", "pending_interaction"]);
  expect(Object.keys(json(createRuntimeState()))).toEqual(["common_state"]);
  const cleared = waiting();
  clearInteraction(cleared);
  expect(Object.keys(json(cleared))).toEqual(["common_state"]);
});

test("S1-14 the mailbox is not saved", () => {
  const state = createRuntimeState();
  state.mailbox = { tool: { ...TOOL, args_json: '"only here"' }, interactionId: "i-9" };
  const text = saveRuntimeState(state);
  expect(text).not.toContain("only here");
  expect(loadRuntimeState(text).mailbox).toBeUndefined();
});

test("S1-17 saved and loaded it is the same, and a copy", () => {
  const state = waiting();
  expect(loadRuntimeState(saveRuntimeState(state))).toEqual(state);
  const copy = savedRuntimeState(state);
  state.common.current_step = 9;
  expect(copy.common_state.current_step).toBe(2);
});

describe("what is no runtime state is refused", () => {
  const good = json(waiting());
  const bad: Record<string, unknown> = {
    "a list": [],
    "no common state": { pending_interaction: good.pending_interaction },
    "an unknown phase": { common_state: { ...good.common_state, phase: "sleeping" } },
    "a step below zero": { common_state: { ...good.common_state, current_step: -1 } },
    "a step as text": { common_state: { ...good.common_state, current_step: "2" } },
    "an id that is no text": { common_state: { ...good.common_state, trace_id: 7 } },
    "steps without text": { common_state: { ...good.common_state, plan_steps: [{}] } },
    ...Object.fromEntries(
      Object.entries({
        version: 2,
        type: "asks",
        status: "cancelled",
        resume_phase: "x",
        resume_step: null,
        interaction_id: 1,
        pending_tool: { tool_name: "x" },
        metadata: [],
      }).map(([key, value]) => [
        `an interaction with ${key} ${JSON.stringify(value)}`,
        { ...good, pending_interaction: { ...good.pending_interaction, [key]: value } },
      ]),
    ),
  };
  test.each(Object.entries(bad))("%s", (_, value) => {
    expect(() => loadRuntimeState(JSON.stringify(value))).toThrow(/damaged_record/);
  });
  test("no JSON", () => {
    expect(() => loadRuntimeState("{")).toThrow(/invalid_json/);
  });
});
