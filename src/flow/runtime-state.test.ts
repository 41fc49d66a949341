import { describe, expect, test } from "vitest";
import { type CommonState, DEFAULT_ROUND_LIMIT, FLOW_PHASES } from "../model/flow-state.ts";
import {
  INTERACTION_STATUSES,
  INTERACTION_TYPES,
  type PendingTool,
  SNAPSHOT_VERSION,
} from "../model/interaction.ts";
import {
  clearInteraction,
  confirmPlan,
  countRound,
  createRuntimeState,
  ensureCommonState,
  finishPlan,
  hasPendingInteraction,
  isExhausted,
  loadRuntimeState,
  openAskUser,
  openConfirm,
  openInteraction,
  pendingInteractionType,
  progressOf,
  type RuntimeState,
  rejectPlan,
  resumeFromInteraction,
  savedRuntimeState,
  saveRuntimeState,
} from "./runtime-state.ts";

const OPENING = { interactionId: "i-1", displayText: "Which one?", resumeNode: "execute" };
const TOOL: PendingTool = { tool_name: "pay", args_json: '{"cents":1}', summary: "pays a cent" };

function running(common: Partial<CommonState> = {}): RuntimeState {
  return createRuntimeState({ phase: "executing", current_step: 3, ...common });
}

describe("named values", () => {
  test("there are six phases, with chatting and interrupted [S1-01]", () => {
    expect(FLOW_PHASES).toEqual(
      expect.arrayContaining(["planning", "waiting_confirm", "executing", "done"]),
    );
    expect(FLOW_PHASES).toEqual(expect.arrayContaining(["chatting", "interrupted"]));
    expect(FLOW_PHASES).toHaveLength(6);
  });

  test("the snapshot version is 1 and is in every opened interaction [S1-02]", () => {
    expect(SNAPSHOT_VERSION).toBe(1);
    const [asked, confirmed] = [running(), running()];
    openAskUser(asked, OPENING);
    openConfirm(confirmed, OPENING, TOOL);
    expect([asked.pending?.version, confirmed.pending?.version]).toEqual([1, 1]);
  });

  test("the types and the statuses are exactly these [S1-03 S1-04]", () => {
    expect(INTERACTION_TYPES).toEqual(["ask_user", "confirm", "connection_lost"]);
    expect(INTERACTION_STATUSES).toEqual(["open", "resolved", "canceled"]);
  });
});

describe("defaults", () => {
  test("an empty state gets all defaults [S1-18]", () => {
    expect(createRuntimeState().common).toEqual({
      trace_id: "",
      user_id: "",
      conversation_id: "",
      phase: "planning",
      plan_steps: [],
      current_step: 0,
      round_limit: DEFAULT_ROUND_LIMIT,
      rounds_used: 0,
    });
    const broken = { common: undefined } as unknown as RuntimeState;
    expect(ensureCommonState(broken)?.phase).toBe("planning");
    expect(broken.common).toBeDefined();
  });

  test("without a state there are no defaults and no error [S1-19]", () => {
    expect(ensureCommonState(undefined)).toBeUndefined();
  });

  test("a missing phase becomes planning [S1-20]", () => {
    expect(createRuntimeState({ phase: "" }).common.phase).toBe("planning");
    expect(createRuntimeState({ step: 1 } as Partial<CommonState>).common.phase).toBe("planning");
  });

  test.each([0, -1, Number.NaN])("a round limit of %d becomes the default [S1-21]", (limit) => {
    expect(createRuntimeState({ round_limit: limit }).common.round_limit).toBe(30);
  });

  test("given fields are kept [S1-22]", () => {
    const given: CommonState = {
      trace_id: "t",
      user_id: "u",
      conversation_id: "c",
      phase: "done",
      plan_steps: [{ text: "a", done_when: "b" }],
      current_step: 7,
      round_limit: 2,
      rounds_used: 1,
    };
    expect(createRuntimeState({ ...given }).common).toEqual(given);
  });

  test("returns the object of the state, and a second call changes nothing [S1-23]", () => {
    const common: Partial<CommonState> = {};
    const state = createRuntimeState(common);
    const first = ensureCommonState(state);
    expect(first).toBe(state.common);
    expect(first).toBe(common);
    if (first !== undefined) first.current_step = 5;
    expect(state.common.current_step).toBe(5);
    const before = structuredClone(state.common);
    expect(ensureCommonState(state)).toEqual(before);
  });
});

describe("what is pending", () => {
  test("only an open interaction is pending, with its type [S1-24 S1-25]", () => {
    expect([hasPendingInteraction(undefined), pendingInteractionType(undefined)]).toEqual([
      false,
      "",
    ]);
    const state = running();
    expect([hasPendingInteraction(state), pendingInteractionType(state)]).toEqual([false, ""]);
    openConfirm(state, OPENING);
    expect([hasPendingInteraction(state), pendingInteractionType(state)]).toEqual([
      true,
      "confirm",
    ]);
    for (const status of ["resolved", "canceled"] as const) {
      if (state.pending !== undefined) state.pending.status = status;
      expect([hasPendingInteraction(state), pendingInteractionType(state)]).toEqual([false, ""]);
    }
  });
});

describe("opening", () => {
  test("a question has no tool and no metadata [S1-26 S1-33]", () => {
    const state = running();
    expect(openAskUser(state, OPENING)).toBe(true);
    expect(state.pending).toEqual({
      version: 1,
      interaction_id: "i-1",
      type: "ask_user",
      status: "open",
      display_text: "Which one?",
      resume_node: "execute",
      resume_phase: "executing",
      resume_step: 3,
    });
  });

  test("a confirmation has the tool given, or none for a plan [S1-27]", () => {
    const [withTool, ofPlan] = [running(), running()];
    openConfirm(withTool, OPENING, TOOL);
    openConfirm(ofPlan, OPENING);
    expect(withTool.pending).toMatchObject({
      type: "confirm",
      status: "open",
      pending_tool: TOOL,
    });
    expect(ofPlan.pending).toMatchObject({ type: "confirm", status: "open" });
    expect(ofPlan.pending).not.toHaveProperty("pending_tool");
    expect(withTool.pending).not.toHaveProperty("metadata");
  });

  test("id, text and node are trimmed [S1-28]", () => {
    const state = running();
    const padded = { interactionId: " i-1\n", displayText: "\tSo? ", resumeNode: " execute " };
    openAskUser(state, padded);
    expect(state.pending).toMatchObject({
      interaction_id: "i-1",
      display_text: "So?",
      resume_node: "execute",
    });
  });

  test("phase and step are kept for the resumption, and the flow is interrupted [S1-29 S1-30]", () => {
    const state = running({ phase: "waiting_confirm", current_step: 4 });
    openConfirm(state, OPENING);
    expect(state.pending).toMatchObject({ resume_phase: "waiting_confirm", resume_step: 4 });
    expect(state.common.phase).toBe("interrupted");
    const unset = running();
    unset.common.phase = "";
    openAskUser(unset, OPENING);
    expect(unset.pending?.resume_phase).toBe("planning");
  });

  test("only three fields of the tool are copied [S1-05 S1-31]", () => {
    const state = running();
    const own = { ...TOOL, secret: "x" };
    openConfirm(state, OPENING, own);
    own.args_json = "{}";
    expect(state.pending?.pending_tool).toEqual(TOOL);
  });

  test("without a state nothing is opened and there is no error [S1-32]", () => {
    expect(openAskUser(undefined, OPENING)).toBe(false);
    expect(openConfirm(undefined, OPENING, TOOL)).toBe(false);
  });

  test("a second question is refused, and the first one is unchanged [S1-35]", () => {
    const state = running();
    openConfirm(state, OPENING, TOOL);
    const first = structuredClone(state.pending);
    expect(openAskUser(state, { ...OPENING, interactionId: "i-2" })).toBe(false);
    expect(openConfirm(state, { ...OPENING, interactionId: "i-3" })).toBe(false);
    expect(openInteraction(state, OPENING, { type: "connection_lost" })).toBe(false);
    expect(state.pending).toEqual(first);
    resumeFromInteraction(state);
    expect(state.common).toMatchObject({ phase: "executing", current_step: 3 });
  });
});

describe("resuming", () => {
  test("without an open question nothing changes [S1-36]", () => {
    expect(resumeFromInteraction(undefined)).toBe(false);
    const state = running();
    for (const status of [undefined, "resolved", "canceled"] as const) {
      if (status !== undefined) {
        openAskUser(state, OPENING);
        if (state.pending !== undefined) state.pending.status = status;
      }
      const before = structuredClone(state);
      expect(resumeFromInteraction(state)).toBe(false);
      expect(state).toEqual(before);
      state.pending = undefined;
    }
  });

  test("phase and step are restored, and the snapshot is resolved and removed [S1-37 S1-38]", () => {
    const state = running();
    openAskUser(state, OPENING);
    const old = state.pending;
    state.common.current_step = 9;
    expect(resumeFromInteraction(state)).toBe(true);
    expect(state.common).toMatchObject({ phase: "executing", current_step: 3 });
    expect(old?.status).toBe("resolved");
    expect(state.pending).toBeUndefined();
  });

  test("a snapshot is consumed once [S1-39]", () => {
    const state = running();
    openAskUser(state, OPENING);
    expect([resumeFromInteraction(state), resumeFromInteraction(state)]).toEqual([true, false]);
  });

  test("neither the node nor the mailbox is restored: the caller reads the tool first [S1-40]", () => {
    const state = running();
    openConfirm(state, OPENING, TOOL);
    const tool = state.pending?.pending_tool;
    resumeFromInteraction(state);
    expect(state.mailbox).toBeUndefined();
    expect(tool).toEqual(TOOL);
  });

  test("after a confirmation the phase is waiting_confirm, not executing [S1-41]", () => {
    const state = running({ phase: "waiting_confirm" });
    openConfirm(state, OPENING, TOOL);
    resumeFromInteraction(state);
    expect(state.common.phase).toBe("waiting_confirm");
  });
});

describe("canceling", () => {
  test("the question is canceled and removed, and the flow stays interrupted [S1-42 S1-43]", () => {
    const state = running();
    openAskUser(state, OPENING);
    const old = state.pending;
    clearInteraction(state);
    expect(old?.status).toBe("canceled");
    expect(state.pending).toBeUndefined();
    expect(state.common).toMatchObject({ phase: "interrupted", current_step: 3 });
  });

  test("without a state or a question there is no error [S1-44]", () => {
    expect(() => clearInteraction(undefined)).not.toThrow();
    const state = running();
    const before = structuredClone(state);
    clearInteraction(state);
    expect(state).toEqual(before);
  });
});

const STEPS = [
  { text: "a", done_when: "b" },
  { text: "c", done_when: "d" },
];

test("the common state has ids, phase, plan, step and rounds; the default limit is 30 rounds [I-68]", () => {
  const { common } = createRuntimeState();
  expect(Object.keys(common).toSorted()).toEqual([
    ...["conversation_id", "current_step", "phase", "plan_steps", "round_limit"],
    ...["rounds_used", "trace_id", "user_id"],
  ]);
  expect(common.round_limit).toBe(30);
  expect(FLOW_PHASES.slice(0, 4)).toEqual(["planning", "waiting_confirm", "executing", "done"]);
});

test("a round is counted at its start, and the last one exhausts the limit [I-69]", () => {
  const { common } = createRuntimeState({ round_limit: 2 });
  const seen = [1, 2, 3].map(() => [countRound(common), isExhausted(common), common.rounds_used]);
  expect(seen).toEqual([
    [true, false, 1],
    [true, true, 2],
    [false, true, 3],
  ]);
});

test("progress starts at 1 and never passes the total [I-69]", () => {
  const at = (current_step: number) =>
    progressOf(createRuntimeState({ plan_steps: STEPS, current_step }).common);
  expect([0, 1, 2, 9].map(at).map(({ step, total }) => `${step}/${total}`)).toEqual([
    ...["1/2", "2/2", "2/2", "2/2"],
  ]);
  expect(progressOf(createRuntimeState().common)).toEqual({ step: 0, total: 0 });
});

test("a plan waits for confirmation, is confirmed, or is removed [I-70]", () => {
  const { common } = createRuntimeState({ current_step: 4 });
  finishPlan(common, STEPS);
  expect(common).toMatchObject({
    plan_steps: STEPS,
    current_step: 0,
    phase: "waiting_confirm",
  });
  confirmPlan(common);
  expect(common).toMatchObject({ plan_steps: STEPS, phase: "executing" });
  rejectPlan(common);
  expect(common).toMatchObject({ plan_steps: [], phase: "planning" });
});

const ASKED = { interactionId: "i-1", displayText: "So?", resumeNode: "execute" };
const PAY: PendingTool = { tool_name: "pay", args_json: '{"cents":1}', summary: "pays" };
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
  openConfirm(state, ASKED, PAY);
  return state;
}

const json = (state: RuntimeState) => JSON.parse(saveRuntimeState(state));

test("a pending call is saved with three fields [S1-05]", () => {
  expect(Object.keys(json(waiting()).pending_interaction.pending_tool)).toEqual([
    "tool_name",
    "args_json",
    "summary",
  ]);
});

test("arguments are saved as unchanged text [S1-06 S1-07]", () => {
  const state = createRuntimeState();
  const args_json = '{"a": 1, "a": 2, not even JSON';
  openConfirm(state, ASKED, { ...PAY, args_json });
  const loaded = loadRuntimeState(saveRuntimeState(state));
  expect(loaded.pending?.pending_tool?.args_json).toBe(args_json);
});

test("an interaction is saved without empty fields [S1-08 S1-09]", () => {
  expect(Object.keys(json(waiting()).pending_interaction)).toEqual([...KEYS, "pending_tool"]);
  const asked = createRuntimeState();
  openAskUser(asked, { interactionId: "", displayText: "", resumeNode: "" });
  expect(Object.keys(json(asked).pending_interaction)).toEqual(KEYS);
  const lost = createRuntimeState();
  openInteraction(lost, ASKED, {
    type: "connection_lost",
    pending_tool: PAY,
    metadata: { why: "gone" },
  });
  expect(Object.keys(json(lost).pending_interaction)).toEqual([
    ...KEYS,
    "pending_tool",
    "metadata",
  ]);
  const empty = createRuntimeState();
  openInteraction(empty, ASKED, { type: "connection_lost", metadata: {} });
  expect(Object.keys(json(empty).pending_interaction)).toEqual(KEYS);
});

test("flow control and interruption are saved separately [S1-10 S1-16]", () => {
  const { common_state, pending_interaction } = json(waiting());
  expect(Object.keys(common_state).toSorted()).toEqual(
    [
      ...["trace_id", "user_id", "conversation_id", "phase", "plan_steps"],
      ...["current_step", "round_limit", "rounds_used"],
    ].toSorted(),
  );
  expect(Object.keys(pending_interaction).filter((key) => key in common_state)).toEqual([]);
});

test("the saved state alone says where to resume [S1-11 S1-12]", () => {
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

test("the saved state has two parts, and the second is omitted when there is none [S1-13]", () => {
  expect(Object.keys(json(waiting()))).toEqual(["common_state", "pending_interaction"]);
  expect(Object.keys(json(createRuntimeState()))).toEqual(["common_state"]);
  const cleared = waiting();
  clearInteraction(cleared);
  expect(Object.keys(json(cleared))).toEqual(["common_state"]);
});

test("the mailbox is not saved [S1-14]", () => {
  const state = createRuntimeState();
  state.mailbox = { tool: { ...PAY, args_json: '"only here"' }, interactionId: "i-9" };
  const text = saveRuntimeState(state);
  expect(text).not.toContain("only here");
  expect(loadRuntimeState(text).mailbox).toBeUndefined();
});

test("a saved and loaded state is an equal copy [S1-17]", () => {
  const state = waiting();
  expect(loadRuntimeState(saveRuntimeState(state))).toEqual(state);
  const copy = savedRuntimeState(state);
  state.common.current_step = 9;
  expect(copy.common_state.current_step).toBe(2);
});

describe("an invalid runtime state is rejected", () => {
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
