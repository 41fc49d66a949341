// Rollbacks as people ask for them: by session, message or call, over real records.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, openGate, PERSON, rules } from "../support/port-world.ts";

const ALLOWED = rules({ id: "all", effect: "allow", tool: "world.*", reason: "r" });

function open() {
  const world = openGate({ policy: ALLOWED });
  const session = world.gate.sessions.open({ id: "s", agent: AGENT });
  const set = (messageId: string, callId: string, key: string, value: string) =>
    session.call({ callId, messageId, tool: "world.set", input: { key, value } });
  return { ...world, session, set };
}

test("a message is taken back from its last call to its first; the other messages stay [S2-101 I-34]", async () => {
  const { session, set, effects, values } = open();
  await set("m-1", "1", "a", "one");
  await set("m-2", "2", "a", "two");
  await set("m-2", "3", "b", "two");
  await set("m-2", "4", "a", "three");
  effects.length = 0;
  const report = await session.rollback(PERSON, { messageId: "m-2" });
  expect(report.undone).toHaveLength(3);
  expect(effects).toEqual([
    'world.set {"key":"a","value":"two"}',
    'world.set {"key":"b","value":null}',
    'world.set {"key":"a","value":"one"}',
  ]);
  expect(values.get("a")).toBe("one");
});

test("a message id that nobody used takes back nothing [I-34]", async () => {
  const { session, set, effects, values } = open();
  await set("m-1", "1", "a", "one");
  effects.length = 0;
  expect((await session.rollback(PERSON, { messageId: "m-9" })).undone).toEqual([]);
  expect(effects).toEqual([]);
  expect(values.get("a")).toBe("one");
});

test("a second rollback does nothing twice, and what failed is never undone [I-35]", async () => {
  const { session, set, effects, values } = open();
  await set("m-1", "1", "a", "one");
  const broken = values.set;
  values.set = () => {
    throw new Error("production said no");
  };
  expect((await set("m-1", "2", "b", "one")).answer).toBe("failed");
  values.set = broken;
  effects.length = 0;
  expect((await session.rollback(PERSON)).undone).toHaveLength(1);
  expect(effects).toEqual(['world.set {"key":"a","value":null}']);
  expect((await session.rollback(PERSON)).undone).toEqual([]);
  expect(effects).toHaveLength(1);
});

test("a rollback calls what the record of the call says, not what the tool says of itself [S2-102]", async () => {
  const run: string[] = [];
  const restore = defineTool({
    name: "shelf.restore",
    description: "Puts back.",
    input: { type: "object", additionalProperties: true },
    undoOnly: true,
    execute({ input }) {
      run.push(JSON.stringify(input));
      return "restored";
    },
  });
  const clear = (to: string) =>
    defineTool({
      name: "shelf.clear",
      description: "Clears; can be undone with shelf.clear, it says.",
      input: { type: "object" },
      safety: { effect: "write", reversible: true },
      execute: () => "cleared",
      undo: () => ({ tool: "shelf.restore", input: { shelf: to } }),
    });
  const policy = rules({ id: "all", effect: "allow", tool: "shelf.*", reason: "r" });
  const world = openGate({ policy, tools: [clear("as recorded"), restore] });
  const call = { callId: "1", tool: "shelf.clear", input: {} };
  const done = await world.gate.sessions.open({ id: "s", agent: AGENT }).call(call);
  expect(done.answer).toBe("done");
  // The same tool in a later deploy would say something else.
  const later = world.again({ tools: [clear("as deployed later"), restore] });
  const report = await later.sessions.open({ id: "s", agent: AGENT }).rollback(PERSON);
  expect(report.undone).toHaveLength(1);
  expect(run).toEqual(['{"shelf":"as recorded"}']);
});
