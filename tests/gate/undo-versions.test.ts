import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { leftOver } from "../../src/gate/rollback-report.ts";
import type { Policy } from "../../src/policy/policy.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const BY = "person:ada";
const allowAll: Policy = {
  version: "1",
  rules: [{ id: "all", effect: "allow", tool: "shelf.put", reason: "trusted" }],
};

/** Rows whose version grows with every write of any writer: an undo is one more. */
function setup() {
  const rows = new Map<string, { value: string; version: number }>();
  const put = (key: string, value: string) =>
    rows.set(key, { value, version: (rows.get(key)?.version ?? 0) + 1 });
  const tool = defineTool({
    name: "shelf.put",
    description: "Puts something on a shelf.",
    input: {
      type: "object",
      properties: { key: { type: "string" }, value: { type: "string" } },
      required: ["key", "value"],
      additionalProperties: false,
    },
    safety: { effect: "external", reversible: true },
    stateVersion: ({ input }) => String(rows.get(String(input["key"]))?.version ?? 0),
    execute({ input }) {
      const [key, value] = [String(input["key"]), String(input["value"])];
      if (value === "breaks") return { text: "it fell down", isError: true };
      const before = rows.get(key)?.value ?? "";
      put(key, value);
      return { text: "put", data: { key, before } };
    },
    undo({ output }) {
      const { key, before } = output as { key: string; before: string };
      return { tool: "shelf.put", input: { key, value: before } };
    },
  });
  const store = memoryStore();
  const gate = createGate({
    store,
    tenant: "acme",
    tools: [tool],
    validators: { tech: sampleVerdictValidator("a"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: allowAll,
  });
  const session = gate.sessions.open({ id: "run-1", agent: "agent:one" });
  let calls = 0;
  const call = async (key: string, value: string): Promise<string> => {
    calls += 1;
    const input = { key, value };
    const answer = await session.call({ callId: `c-${calls}`, tool: "shelf.put", input });
    expect(answer.answer).toBe("done");
    return (await gate.operations.listBySession("run-1")).at(-1)?.id ?? "";
  };
  const on = (key: string) => rows.get(key)?.value;
  return { gate, store, session, call, put, on };
}

test("several changes of one record are undone one after the other, though each undo gives it a new version [T9]", async () => {
  const { session, call, on, store } = setup();
  for (const value of ["one", "two", "three", "four"]) await call("a", value);
  const report = await session.rollback(BY);
  expect(report.undone).toHaveLength(4);
  expect(leftOver(report)).toEqual([]);
  expect(on("a")).toBe("");
  const trail = await store.tenant("acme").audit.read({ after: 0, limit: 100 });
  // Every undo tells of each earlier change whose record it wrote: three, then two, then one.
  expect(trail.filter(({ type }) => type === "operation.brought_back")).toHaveLength(6);
});

test("call by call as well, with new changes between the rollbacks [T9]", async () => {
  const { session, call, on } = setup();
  const first = await call("a", "one");
  const second = await call("a", "two");
  expect((await session.rollback(BY, { operationId: second })).undone).toHaveLength(1);
  const third = await call("a", "three");
  expect((await session.rollback(BY, { operationId: third })).undone).toHaveLength(1);
  expect(on("a")).toBe("one");
  expect((await session.rollback(BY, { operationId: first })).undone).toHaveLength(1);
  expect(on("a")).toBe("");
});

test("what somebody changed between two of our changes is kept [T9]", async () => {
  const { session, call, put, on } = setup();
  await call("a", "one");
  put("a", "theirs");
  await call("a", "two");
  const report = await session.rollback(BY);
  expect([report.undone.length, report.conflicted.length]).toEqual([1, 1]);
  expect(on("a")).toBe("theirs");
});

test("what somebody changed after one of our undos is kept [T9]", async () => {
  const { session, call, put, on } = setup();
  await call("a", "one");
  const second = await call("a", "two");
  await session.rollback(BY, { operationId: second });
  put("a", "theirs");
  expect((await session.rollback(BY)).conflicted).toHaveLength(1);
  expect(on("a")).toBe("theirs");
});

test("records with the same versions are not taken for each other [T9]", async () => {
  const { session, call, put, on } = setup();
  await call("a", "one");
  await call("b", "one");
  const last = await call("b", "two");
  // Now both have version 2, one by the gate and one by another writer; after the undo and the next line both have 3.
  put("a", "theirs");
  await session.rollback(BY, { operationId: last });
  put("a", "theirs again");
  const report = await session.rollback(BY);
  expect([report.undone.length, report.conflicted.length]).toEqual([1, 1]);
  expect([on("a"), on("b")]).toEqual(["theirs again", ""]);
});

test("the undo of one record vouches for no other that somebody changed to the same version [T9]", async () => {
  const { session, call, put, on } = setup();
  await call("a", "one");
  await call("b", "one");
  await call("b", "two");
  // Both have version 2 now, a by another writer.
  put("a", "theirs");
  const report = await session.rollback(BY);
  expect([report.undone.length, report.conflicted.length]).toEqual([2, 1]);
  expect([on("a"), on("b")]).toEqual(["theirs", ""]);
});

test("a record that had the version before the undo came to it is not taken for the one that was undone [T9]", async () => {
  const { session, call, put, on } = setup();
  await call("a", "one");
  await call("b", "one");
  await call("b", "two");
  for (const value of ["theirs", "theirs again"]) put("a", value);
  const report = await session.rollback(BY);
  expect([report.undone.length, report.conflicted.length]).toEqual([2, 1]);
  expect([on("a"), on("b")]).toEqual(["theirs again", ""]);
});

test("a bundle that changes one record twice and then fails is undone whole [T9]", async () => {
  const { gate, session, on } = setup();
  const put = (callId: string, value: string) => ({
    callId,
    tool: "shelf.put",
    input: { key: "a", value },
  });
  const staged = await session.stage([put("1", "one"), put("2", "two"), put("3", "breaks")]);
  if (staged.answer !== "pending") throw new Error(`a bundle is asked about: ${staged.text}`);
  const { decisionId } = staged;
  const hash = (await gate.interactions.shown(decisionId))?.hash ?? "";
  await gate.interactions.approve(decisionId, { hash, by: BY });
  const decision = await gate.decisions.get(decisionId);
  expect(decision.state).toBe("failed");
  expect(decision.executionError).not.toMatch(/changed since/);
  expect(on("a")).toBe("");
});
