import { expect, test } from "vitest";
import { systemTimers } from "../util/timers.ts";
import { type CheckpointHandler, runCheckpoint } from "./before-call.ts";

test("the handler gets tool, input, reason and a signal, and returns go, refuse or cancelled [I-39]", async () => {
  const seen: unknown[] = [];
  const handler: CheckpointHandler = (request, signal) => {
    seen.push(request, signal instanceof AbortSignal);
    return { answer: "go" };
  };
  const request = { tool: "bank.set", input: { amount: 5 }, reason: "each call is looked at" };
  const options = { needed: true, handler, timers: systemTimers, timeoutMs: 1_000 };
  expect(await runCheckpoint(request, options)).toEqual({ go: true });
  expect(seen).toEqual([request, true]);
});
