import { expect, test } from "vitest";
import { FLOW_PHASES, type FlowPhase } from "../model/flow-state.ts";
import { NODES, type NodeName, nextNode, ROUTES } from "./run.ts";
import { createRuntimeState, openAskUser } from "./runtime-state.ts";
import { newWork } from "./work.ts";

const TOOL = { tool_name: "t", args_json: "{}", summary: "s" };
const WHERE: Record<FlowPhase, NodeName | "end"> = {
  planning: "plan",
  waiting_confirm: "confirm",
  executing: "execute",
  done: "deliver",
  chatting: "end",
  interrupted: "end",
};

test.each(FLOW_PHASES)("the way from every working node in phase %s", (phase) => {
  for (const node of ["chat", "plan", "confirm", "execute"] as const) {
    expect(nextNode(node, createRuntimeState({ phase }), newWork())).toBe(WHERE[phase]);
  }
});

test.each(FLOW_PHASES)(
  "I-73 S1-34 something pending comes before the phase %s and before exhaustion",
  (phase) => {
    const state = createRuntimeState({ phase, round_limit: 1, rounds_used: 9 });
    openAskUser(state, { interactionId: "i", displayText: "?", resumeNode: "execute" });
    // Not guessed from the phase: it may say anything.
    state.common.phase = phase;
    for (const node of ["chat", "plan", "confirm", "execute"] as const) {
      expect(nextNode(node, state, newWork())).toBe("interrupt");
    }
    expect(ROUTES[0]).toEqual({ pending: true, to: "interrupt" });
  },
);

test("I-76 used up rounds lead to delivery, but what was chosen or accepted is done first", () => {
  for (const phase of ["planning", "executing"] as const) {
    const state = createRuntimeState({ phase, round_limit: 1, rounds_used: 1 });
    expect(nextNode("execute", state, newWork())).toBe("deliver");
    const chosen = newWork();
    chosen.entries.push({ kind: "call", id: "c", tool: TOOL });
    expect(nextNode("execute", state, chosen)).toBe(WHERE[phase]);
    chosen.entries.push({ kind: "result", id: "c", answer: "done", text: "" });
    expect(nextNode("execute", state, chosen)).toBe("deliver");
    state.mailbox = { tool: TOOL, interactionId: "i" };
    expect(nextNode("chat", state, newWork())).toBe(WHERE[phase]);
  }
});

test("after an interruption and after delivery it ends", () => {
  for (const phase of FLOW_PHASES) {
    for (const node of ["interrupt", "deliver"] as const) {
      expect(nextNode(node, createRuntimeState({ phase }), newWork())).toBe("end");
    }
  }
  expect(NODES).toHaveLength(6);
});
