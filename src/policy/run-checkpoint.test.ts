import { expect, test } from "vitest";
import { systemTimers } from "../util/timers.ts";
import { type CheckpointHandler, runCheckpoint } from "./checkpoint.ts";

test("the handler's shape is ours: tool, input and reason in, go, refuse or cancelled out, and a signal to stop [I-39]", async () => {
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
