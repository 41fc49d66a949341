import { expect, test } from "vitest";
import { newDraft } from "../model/decision.ts";
import { manualClock, toIso } from "../util/clock.ts";
import { memoryStore } from "./memory/index.ts";

const START = Date.parse("2026-11-15T06:00:00.000Z");

/** A decision that is approved, and a way to begin one of its calls. */
async function approved() {
  const store = memoryStore({ clock: manualClock(START) }).tenant("acme");
  const { decisions, operations, leftBehind } = store;
  const diff = { sourceTool: "bundle", raw: new Uint8Array([1]), metadata: {} };
  const { id } = await decisions.stage(newDraft("s-1", diff, toIso(START)));
  const yes = { approved: true, score: 1, severity: "", reason: "", policyVersion: "" } as const;
  await decisions.updateTechVerdict(id, { ...yes, validator: "t" });
  await decisions.updateBizVerdict(id, { ...yes, validator: "b" });
  const begin = (operationId: string) =>
    operations.start({
      id: operationId,
      sessionId: "s-1",
      messageId: "",
      callId: "c-1",
      turn: 0,
      tool: "t",
      effect: "external",
      definitionHash: "d",
      input: "{}",
      workingDirectory: "",
      step: 0,
      undoOf: "",
      approval: undefined,
      leaseMs: 1_000,
      actor: "executor",
    });
  const giveUp = (reason = "no way") =>
    leftBehind.giveUp(id, { reason, actor: "executor", unlessBegun: `${id}.1` });
  return { id, decisions, begin, giveUp };
}

test("a decision is given up once, and saying so again changes nothing [I28]", async () => {
  const { id, decisions, begin, giveUp } = await approved();
  await begin(`${id}.0`);
  expect(await giveUp("no way")).toBe(true);
  expect(await giveUp("another word")).toBe(true);
  const { state, executionError } = await decisions.get(id);
  expect([state, executionError]).toEqual(["failed", "no way"]);
});

test("a decision whose next call somebody has begun is not given up [I28]", async () => {
  const { id, decisions, begin, giveUp } = await approved();
  await begin(`${id}.1`);
  expect(await giveUp()).toBe(false);
  expect((await decisions.get(id)).state).toBe("approved");
});

test("a decision that was executed is not given up", async () => {
  const { id, decisions, giveUp } = await approved();
  await decisions.markExecuted(id, {});
  await expect(giveUp()).rejects.toMatchObject({ code: "already_final" });
});
