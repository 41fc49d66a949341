import { expect, test } from "vitest";
import { FLOW_PHASES, type FlowPhase } from "../model/flow-state.ts";
import { NODE_ROUTES, NODES, type NodeName, nextNode } from "./create-flow.ts";
import { readAction, wantsPlan } from "./prompts.ts";
import { createRuntimeState, newWork, openAskUser } from "./runtime-state.ts";

const TOOL = { tool_name: "t", args_json: "{}", summary: "s" };
const WHERE: Record<FlowPhase, NodeName | "end"> = {
  planning: "plan",
  waiting_confirm: "confirm",
  executing: "execute",
  done: "deliver",
  chatting: "end",
  interrupted: "end",
};

test.each(FLOW_PHASES)("the next node after every working node in the phase %s", (phase) => {
  for (const node of ["chat", "plan", "confirm", "execute"] as const) {
    expect(nextNode(node, createRuntimeState({ phase }), newWork())).toBe(WHERE[phase]);
  }
});

test.each(FLOW_PHASES)(
  "an open question comes before the phase %s and before exhaustion [I-73 S1-34]",
  (phase) => {
    const state = createRuntimeState({ phase, round_limit: 1, rounds_used: 9 });
    openAskUser(state, { interactionId: "i", displayText: "?", resumeNode: "execute" });
    // Not guessed from the phase: it may say anything.
    state.common.phase = phase;
    for (const node of ["chat", "plan", "confirm", "execute"] as const) {
      expect(nextNode(node, state, newWork())).toBe("interrupt");
    }
    expect(NODE_ROUTES[0]).toEqual({ pending: true, to: "interrupt" });
  },
);

test("exhausted rounds lead to delivery after what was chosen or accepted is executed [I-76]", () => {
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

test("interrupt and deliver end the run", () => {
  for (const phase of FLOW_PHASES) {
    for (const node of ["interrupt", "deliver"] as const) {
      expect(nextNode(node, createRuntimeState({ phase }), newWork())).toBe("end");
    }
  }
  expect(NODES).toHaveLength(6);
});

const ALL = ["plan", "call_tool", "ask_user", "next_step", "done"] as const;

test("an action is found in prose and fences, and its input becomes canonical text", () => {
  const said =
    'Sure, see {this}:\n```json\n{"action":"call_tool","tool":"pay","input":{"b":1,"a":[2]}}\n```';
  expect(readAction(said, ALL)).toEqual({
    ok: true,
    action: { action: "call_tool", tool: "pay", args: '{"a":[2],"b":1}', summary: "calls pay" },
  });
});

test("all five actions are read", () => {
  const said = [
    { action: "plan", steps: [{ text: " a ", done_when: "b" }] },
    { action: "call_tool", tool: "t", input: {}, summary: "s" },
    { action: "ask_user", question: "q?", choices: ["x"] },
    { action: "next_step", goal_check: "seen" },
    { action: "done", goal_check: "seen" },
  ];
  expect(said.map((action) => readAction(JSON.stringify(action), ALL))).toEqual([
    { ok: true, action: { action: "plan", steps: [{ text: "a", done_when: "b" }] } },
    { ok: true, action: { action: "call_tool", tool: "t", args: "{}", summary: "s" } },
    { ok: true, action: { action: "ask_user", question: "q?", choices: ["x"] } },
    { ok: true, action: { action: "next_step", check: "seen" } },
    { ok: true, action: { action: "done", check: "seen" } },
  ]);
});

test.each([
  ["", /no JSON object/],
  ["I am done.", /no JSON object/],
  ['{"action":"fly"}', /must be one of/],
  ['{"action":["done"]}', /must be one of/],
  ['{"action":"done","goal_check":"x"} {"action":"next_step","goal_check":"x"}', /more than one/],
  ['{"action":"done","action":"next_step","goal_check":"x"}', /twice|duplicate/i],
  ['{"action":"next_step"}', /goal_check/],
  ['{"action":"done","goal_check":"  "}', /goal_check/],
  ['{"action":"plan","steps":[]}', /at least one/],
  ['{"action":"plan","steps":[{"text":"a"}]}', /done_when/],
  [`{"action":"plan","steps":[${Array(51).fill('{"text":"a","done_when":"b"}')}]}`, /more than 50/],
  ['{"action":"call_tool","input":{}}', /tool/],
  ['{"action":"call_tool","tool":"t","input":"x"}', /object/],
  ['{"action":"ask_user"}', /question/],
  ['{"action":"ask_user","question":"q","choices":[1]}', /choices/],
  ["[".repeat(1_000), /nested/],
])("%s is unreadable, and the model gets the reason [I-76]", (said, why) => {
  const read = readAction(said, ALL);
  expect(read).toMatchObject({ ok: false, problem: expect.stringMatching(why) });
});

test("an action of another node is rejected [I-76]", () => {
  const read = readAction('{"action":"done","goal_check":"x"}', ["plan", "ask_user"]);
  expect(read).toMatchObject({ ok: false, problem: expect.stringContaining("plan, ask_user") });
});

test.each([
  ['{"action":"plan"}', true],
  ['Let me see.\n```json\n{"why":"it is work","action":"plan"}\n```', true],
  ["We could make a plan.", false],
  ['{"action":"plans"}', false],
  ['{"plan":"action"}', false],
  ["[".repeat(1_000), false],
  ["", false],
])("%s asks for a plan: %j [I-73]", (said, expected) => {
  expect(wantsPlan(said)).toBe(expected);
});
