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
  createRuntimeState,
  ensureCommonState,
  hasPendingInteraction,
  openAskUser,
  openConfirm,
  openInteraction,
  pendingInteractionType,
  type RuntimeState,
  resumeFromInteraction,
} from "./runtime-state.ts";

const OPENING = { interactionId: "i-1", displayText: "Which one?", resumeNode: "execute" };
const TOOL: PendingTool = { tool_name: "pay", args_json: '{"cents":1}', summary: "pays a cent" };

function running(common: Partial<CommonState> = {}): RuntimeState {
  return createRuntimeState({ phase: "executing", current_step: 3, ...common });
}

describe("named values", () => {
  test("S1-01 two more phases stand beside the main ones: chatting and interrupted", () => {
    expect(FLOW_PHASES).toEqual(
      expect.arrayContaining(["planning", "waiting_confirm", "executing", "done"]),
    );
    expect(FLOW_PHASES).toEqual(expect.arrayContaining(["chatting", "interrupted"]));
    expect(FLOW_PHASES).toHaveLength(6);
  });

  test("S1-02 the snapshot version is 1 and stands in every opened interaction", () => {
    expect(SNAPSHOT_VERSION).toBe(1);
    const [asked, confirmed] = [running(), running()];
    openAskUser(asked, OPENING);
    openConfirm(confirmed, OPENING, TOOL);
    expect([asked.pending?.version, confirmed.pending?.version]).toEqual([1, 1]);
  });

  test("S1-03 S1-04 the types and the statuses are exactly these", () => {
    expect(INTERACTION_TYPES).toEqual(["ask_user", "confirm", "connection_lost"]);
    expect(INTERACTION_STATUSES).toEqual(["open", "resolved", "canceled"]);
  });
});

describe("defaults", () => {
  test("S1-18 a state made of nothing is usable", () => {
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

  test("S1-19 without a state there are no defaults, and nothing breaks", () => {
    expect(ensureCommonState(undefined)).toBeUndefined();
  });

  test("S1-20 a missing phase becomes planning", () => {
    expect(createRuntimeState({ phase: "" }).common.phase).toBe("planning");
    expect(createRuntimeState({ step: 1 } as Partial<CommonState>).common.phase).toBe("planning");
  });

  test.each([0, -1, Number.NaN])("S1-21 a round limit of %d becomes the default", (limit) => {
    expect(createRuntimeState({ round_limit: limit }).common.round_limit).toBe(30);
  });

  test("S1-22 what is set stays", () => {
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

  test("S1-23 the very object of the state is given back, and a second time changes nothing", () => {
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
  test("S1-24 S1-25 only an open interaction is pending, and its type is told", () => {
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
  test("S1-26 S1-33 a question has no tool and no metadata", () => {
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

  test("S1-27 a confirmation has the tool given, or none for a plan", () => {
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

  test("S1-28 id, text and node are trimmed", () => {
    const state = running();
    const padded = { interactionId: " i-1\n", displayText: "\tSo? ", resumeNode: " execute " };
    openAskUser(state, padded);
    expect(state.pending).toMatchObject({
      interaction_id: "i-1",
      display_text: "So?",
      resume_node: "execute",
    });
  });

  test("S1-29 S1-30 phase and step become the way back, and the flow is interrupted", () => {
    const state = running({ phase: "waiting_confirm", current_step: 4 });
    openConfirm(state, OPENING);
    expect(state.pending).toMatchObject({ resume_phase: "waiting_confirm", resume_step: 4 });
    expect(state.common.phase).toBe("interrupted");
    const unset = running();
    unset.common.phase = "";
    openAskUser(unset, OPENING);
    expect(unset.pending?.resume_phase).toBe("planning");
  });

  test("S1-05 S1-31 the tool is copied, and only its three facts", () => {
    const state = running();
    const own = { ...TOOL, secret: "x" };
    openConfirm(state, OPENING, own);
    own.args_json = "{}";
    expect(state.pending?.pending_tool).toEqual(TOOL);
  });

  test("S1-32 without a state nothing is opened, and nothing breaks", () => {
    expect(openAskUser(undefined, OPENING)).toBe(false);
    expect(openConfirm(undefined, OPENING, TOOL)).toBe(false);
  });

  test("S1-35 a second one is refused, and the first stays with its way back", () => {
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
  test("S1-36 without an open one nothing changes", () => {
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

  test("S1-37 S1-38 phase and step come back, the snapshot is resolved and gone", () => {
    const state = running();
    openAskUser(state, OPENING);
    const old = state.pending;
    state.common.current_step = 9;
    expect(resumeFromInteraction(state)).toBe(true);
    expect(state.common).toMatchObject({ phase: "executing", current_step: 3 });
    expect(old?.status).toBe("resolved");
    expect(state.pending).toBeUndefined();
  });

  test("S1-39 a snapshot is consumed once", () => {
    const state = running();
    openAskUser(state, OPENING);
    expect([resumeFromInteraction(state), resumeFromInteraction(state)]).toEqual([true, false]);
  });

  test("S1-40 neither the node nor the mailbox comes back: the caller takes the tool out first", () => {
    const state = running();
    openConfirm(state, OPENING, TOOL);
    const tool = state.pending?.pending_tool;
    resumeFromInteraction(state);
    expect(state.mailbox).toBeUndefined();
    expect(tool).toEqual(TOOL);
  });

  test("S1-41 after a confirmation the phase is waiting_confirm, not executing", () => {
    const state = running({ phase: "waiting_confirm" });
    openConfirm(state, OPENING, TOOL);
    resumeFromInteraction(state);
    expect(state.common.phase).toBe("waiting_confirm");
  });
});

describe("calling off", () => {
  test("S1-42 S1-43 it is canceled and gone, and the flow stays interrupted", () => {
    const state = running();
    openAskUser(state, OPENING);
    const old = state.pending;
    clearInteraction(state);
    expect(old?.status).toBe("canceled");
    expect(state.pending).toBeUndefined();
    expect(state.common).toMatchObject({ phase: "interrupted", current_step: 3 });
  });

  test("S1-44 it does no harm without a state or without a question", () => {
    expect(() => clearInteraction(undefined)).not.toThrow();
    const state = running();
    const before = structuredClone(state);
    clearInteraction(state);
    expect(state).toEqual(before);
  });
});
