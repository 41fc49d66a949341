import { expect, test } from "vitest";
import { isSallyportError } from "../model/errors.ts";
import type { Interaction } from "../model/interaction.ts";
import { memoryStore } from "../store/memory/index.ts";
import { manualClock } from "../util/clock.ts";
import {
  ASK_USER,
  answerOfQuestion,
  askUserTool,
  checkAnswer,
  openQuestion,
  questionHash,
  questionId,
  questionIn,
} from "./inbox.ts";

const START = Date.parse("2026-11-15T06:00:00.000Z");
const asker = { sessionId: "s-1", chain: ["agent:one", "person:olga"] };

function open() {
  return memoryStore({ clock: manualClock(START) }).tenant("acme").interactions;
}

test("a question is opened once with what the asker said, and found again by the same id", async () => {
  const store = open();
  const question = { callId: "q", text: "Who?", choices: ["ada", "bob"], assignedTo: "person:eve" };
  const first = await openQuestion(question, asker, store, 60_000);
  expect(first).toMatchObject({ answer: "pending", interactionId: questionId("s-1", "q") });
  expect(await openQuestion(question, asker, store, 60_000)).toEqual(first);
  expect(await store.get(first.interactionId)).toMatchObject({
    type: "ask_user",
    chain: asker.chain,
    choices: ["ada", "bob"],
    assignedTo: "person:eve",
    deadline: "2026-11-15T06:01:00.000Z",
    hash: questionHash("s-1", question),
  });
});

test("another content under the same id is told, and the first question stays", async () => {
  const store = open();
  await openQuestion({ callId: "q", text: "Who?" }, asker, store, 60_000);
  for (const other of [
    { callId: "q", text: "Who? " },
    { callId: "q", text: "Who?", choices: ["ada"] },
  ]) {
    const error = await openQuestion(other, asker, store, 60_000).catch(
      (thrown: unknown) => thrown,
    );
    expect(isSallyportError(error, "already_exists")).toBe(true);
  }
  expect((await store.list({ status: "open", limit: 10 })).map((one) => one.displayText)).toEqual([
    "Who?",
  ]);
});

test("ids of sessions and calls do not run into each other", () => {
  expect(questionId("a", "bc")).not.toBe(questionId("ab", "c"));
  expect(questionHash("a", { callId: "b", text: "c" })).not.toBe(
    questionHash("a", { callId: "c", text: "b" }),
  );
});

test("only an answer is an answer: open, called off, expired and superseded are none", () => {
  const closed = (facts: Partial<Interaction>) =>
    answerOfQuestion({ id: "q", status: "resolved", reason: "", ...facts } as Interaction).answer;
  expect(closed({ status: "open" })).toBe("pending");
  expect(closed({ outcome: "answered", answer: false, answeredBy: "person:ada" })).toBe("answered");
  expect(closed({ outcome: "answered", answer: null, answeredBy: "person:ada" })).toBe("answered");
  expect(closed({ outcome: "answered", answer: undefined })).toBe("unanswered");
  expect(closed({ outcome: "expired", status: "canceled" })).toBe("unanswered");
  expect(closed({ outcome: "canceled", status: "canceled" })).toBe("unanswered");
  expect(closed({ outcome: "superseded" })).toBe("unanswered");
});

test("of several choices exactly one is an answer", () => {
  const question = { id: "q", choices: ["yes", "no"] } as unknown as Interaction;
  expect(() => checkAnswer(question, "yes")).not.toThrow();
  for (const answer of ["Yes", "yes ", "", "maybe", true, ["yes"], { yes: true }, null]) {
    expect(() => checkAnswer(question, answer), String(answer)).toThrow("one of: yes, no");
  }
  const free = { id: "q", choices: [] } as unknown as Interaction;
  expect(() => checkAnswer(free, { anything: [1] })).not.toThrow();
});

test("the tool for models asks and never acts", async () => {
  const tool = askUserTool();
  expect(tool.name).toBe(ASK_USER);
  expect(tool.metadata).toMatchObject({ effect: "read", permissionClass: "readonly" });
  expect(questionIn({ question: "Who?" })).toEqual({ text: "Who?", choices: [] });
  expect(questionIn({ question: "Who?", choices: ["a"] })).toEqual({
    text: "Who?",
    choices: ["a"],
  });
  for (const input of [{}, { question: "" }, { question: "a", choices: "b" }, { question: 1 }]) {
    expect(tool.parseInput(input).ok, JSON.stringify(input)).toBe(false);
  }
  const context = {} as Parameters<typeof tool.execute>[0]["context"];
  const run = tool.execute({ callId: "c", input: { question: "Who?" }, context });
  await expect(run).rejects.toThrow("not executed");
});
