import { expect, test } from "vitest";
import { readAction, wantsPlan } from "./prompts.ts";

const ALL = ["plan", "call_tool", "ask_user", "next_step", "done"] as const;

test("an action may stand in prose and fences, and its input becomes canonical text", () => {
  const said =
    'Sure, see {this}:\n```json\n{"action":"call_tool","tool":"pay","input":{"b":1,"a":[2]}}\n```';
  expect(readAction(said, ALL)).toEqual({
    ok: true,
    action: { action: "call_tool", tool: "pay", args: '{"a":[2],"b":1}', summary: "calls pay" },
  });
});

test("all five are read", () => {
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
])("I-76 %s is unreadable, and the model is told why", (said, why) => {
  const read = readAction(said, ALL);
  expect(read).toMatchObject({ ok: false, problem: expect.stringMatching(why) });
});

test("I-76 an action that belongs elsewhere is unknown here", () => {
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
])("I-73 %s asks for a plan: %j", (said, expected) => {
  expect(wantsPlan(said)).toBe(expected);
});
