// What people and agents are told about calls that were undone, that never ran, or whose undo was refused.

import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { describeRollback } from "../../src/gate/rollback-report.ts";
import { validatedTool } from "../../src/gate/validators/validated-tool.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";
import { BY, createBoxes } from "./shared-records-world.ts";

test("answers of a bundle that was undone never say done for a call that was undone [D4]", async () => {
  const { session, moving, approve, amounts } = createBoxes("content");
  const key = (name: string, path: string, amount: number) => ({
    ...moving(path, amount),
    key: name,
  });
  const staged = await session.stage([key("one", "a>b", 3), key("two", "b>c", 100)]);
  const { answers } = await approve(staged);
  expect(amounts()).toBe("a10 b10 c10");
  expect(answers.map(({ answer }) => answer)).toEqual(["failed", "failed"]);
  expect(answers[0]?.text).toContain("undone");
  expect(answers[1]?.text).toBe("not enough");
  expect(await session.resultOf("one")).toMatchObject({ answer: "failed", text: answers[0]?.text });
});

test("an approval tells what came of it: executed, asked again, failed, or waiting [D5]", async () => {
  const world = createBoxes("content");
  const ask = (path: string, amount?: number) => world.session.stage([world.moving(path, amount)]);
  expect((await world.approve(await ask("a>b"))).outcome).toBe("executed");
  expect((await world.approve(await ask("a>b", 100))).outcome).toBe("failed");
  const drifting = await ask("a>c", 1);
  world.add("a", 1);
  const again = await world.approve(drifting);
  expect(again).toMatchObject({ outcome: "asked_again", answers: [{ answer: "pending" }] });
  const stopped = await ask("b>c", 1);
  await world.gate.killSwitch.stop("test", { actor: "person:olga" });
  expect((await world.approve(stopped)).outcome).toBe("held");
});

test("a drift of a call without a dry run says that the target was changed, and shows no empty looks [D9]", async () => {
  const { session, moving, approve, add } = createBoxes("content");
  const staged = await session.stage([moving("a>b"), moving("b>c")]);
  add("c", 1);
  const { answers } = await approve(staged);
  expect(answers[0]?.text).not.toContain("unavailable");
  expect(answers[0]?.text).toContain("The target of box.move (call 2 of 2) was changed");
});

test("a keyed call that was undone says so when it is repeated, and so does its result [D6]", async () => {
  const { session, moving, amounts } = createBoxes("content");
  const request = { ...moving("a>b"), key: "k" };
  expect((await session.call(request)).answer).toBe("done");
  await session.rollback(BY);
  for (const answer of [await session.call(request), await session.resultOf("k")]) {
    expect(answer).toMatchObject({ answer: "failed", text: expect.stringContaining("undone") });
  }
  expect(amounts()).toBe("a10 b10 c10");
});

test("an approved call that was undone says so when its key is asked for [D6]", async () => {
  const { session, moving, approve } = createBoxes("content");
  await approve(await session.stage([{ ...moving("a>b"), key: "k" }]));
  expect(await session.resultOf("k")).toMatchObject({ answer: "done" });
  await session.rollback(BY);
  expect(await session.resultOf("k")).toMatchObject({
    answer: "failed",
    text: expect.stringContaining("undone"),
  });
});

/** One row that can be set, and a port over it. */
function createRow(
  options: Partial<GateOptions> & {
    readonly isReviewed?: boolean;
    /** What somebody else sets the row to right after the outcome of a call was recorded. */
    readonly afterwards?: string;
  } = {},
) {
  const { isReviewed = false, afterwards, ...more } = options;
  const row = { value: "old" };
  const set = (value: string) => {
    const before = row.value;
    row.value = value;
    return { text: `set to ${value}`, undo: { tool: "db.set", input: { value: before } } };
  };
  const plain = defineTool({
    name: "db.set",
    description: "Sets the row.",
    input: {
      type: "object",
      properties: { value: { type: "string" } },
      required: ["value"],
      additionalProperties: false,
    },
    safety: { effect: "write" },
    stateVersion: () => row.value,
    execute: ({ input }) => set(String(input["value"])),
  });
  const reviewed = validatedTool({
    tool: plain,
    validator: {
      name: "words",
      review: ({ metadata }) => ({
        approved: metadata["value"] === "old",
        score: 0,
        severity: metadata["value"] === "old" ? "" : "block",
        reason: "bad word",
        validator: "words",
        policyVersion: "1",
      }),
    },
    toDiff: ({ input }) => ({
      sourceTool: "db.set",
      raw: new Uint8Array(),
      metadata: { ...(input as object) },
    }),
    sink: () => {},
  });
  const mail = defineTool({
    name: "db.mail",
    description: "Sends two mails.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute: () => ({
      text: "the second mail was refused",
      isError: true,
      undo: { irreversible: true as const, manualGuide: "Write a correction to the first one." },
    }),
  });
  const gate = createGate({
    store: memoryStore(),
    tenant: "acme",
    tools: [isReviewed ? reviewed : plain, mail],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: { version: "1", rules: [{ id: "db", effect: "allow", tool: "db.*", reason: "test" }] },
    at: (point) => {
      if (point === "S7.after" && afterwards !== undefined) row.value = afterwards;
    },
    ...more,
  });
  return { gate, row, session: gate.sessions.open({ id: "s", agent: "agent:x" }) };
}

test("a call that a review blocked after its effect is undone at once [B4] [I-03]", async () => {
  const { session, row, gate } = createRow({ isReviewed: true });
  const answer = await session.call({ callId: "c", tool: "db.set", input: { value: "new" } });
  expect(answer).toMatchObject({ answer: "failed", text: expect.stringContaining("bad word") });
  expect(answer.text, "what became of it").toContain("Undone");
  expect(row.value).toBe("old");
  expect((await gate.operations.listBySession("s"))[0]?.status).toBe("rolled_back");
  expect((await session.rollback(BY)).undone, "once").toHaveLength(0);
});

test("what somebody changed after a blocked call is kept [B4]", async () => {
  const { session, row } = createRow({ isReviewed: true, afterwards: "theirs" });
  const answer = await session.call({ callId: "c", tool: "db.set", input: { value: "new" } });
  expect(answer).toMatchObject({ answer: "failed", text: expect.stringContaining("changed") });
  expect(row.value).toBe("theirs");
  expect((await session.rollback(BY)).conflicted).toHaveLength(1);
});

test("a bundle whose call was blocked after its effect is undone with that call [B4]", async () => {
  const { session, row, gate } = createRow({ isReviewed: true });
  const staged = await session.stage([{ callId: "c", tool: "db.set", input: { value: "new" } }]);
  if (staged.answer !== "pending") throw new Error(staged.text);
  const { hash } = await gate.interactions.get(staged.interactionId);
  const { outcome } = await gate.interactions.approve(staged.interactionId, { hash, by: BY });
  expect(outcome).toBe("failed");
  expect(row.value).toBe("old");
});

test("a failed call that may have changed something is in the report with what to do by hand [B4]", async () => {
  const { session } = createRow();
  expect((await session.call({ callId: "c", tool: "db.mail", input: {} })).answer).toBe("failed");
  const report = await session.rollback(BY);
  expect(report.irreversible).toMatchObject([{ guide: "Write a correction to the first one." }]);
  expect(describeRollback(report)).toContain("By hand: Write a correction to the first one.");
});

test("an undo that is denied gives one answer: why it is denied [D9]", async () => {
  let isFrozen = false;
  const { session, gate } = createRow({
    policy: { version: "1", rules: [] },
    gatePolicies: [
      {
        name: "freeze",
        points: ["pre-tool"],
        check: () =>
          isFrozen
            ? [
                {
                  severity: "soft-deny",
                  policy: "freeze",
                  message: "Writes are frozen. Choose another way.",
                },
              ]
            : [],
      },
    ],
  });
  const asked = await session.call({ callId: "c", tool: "db.set", input: { value: "new" } });
  if (asked.answer !== "pending") throw new Error(asked.text);
  const { hash } = await gate.interactions.get(asked.interactionId);
  await gate.interactions.approve(asked.interactionId, { hash, by: BY });
  isFrozen = true;
  const [failed] = (await session.rollback(BY)).failed;
  expect(failed?.reason).toContain("Writes are frozen.");
  expect(failed?.reason).not.toContain("needs a person's consent");
});
