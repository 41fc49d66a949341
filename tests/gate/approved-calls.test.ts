// Calls that a person or the reviews let through are cancelled and followed like those that run at once.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, approve, decisionIdOf, openGate, request, rules } from "../support/port-world.ts";

/** Reports once, then works until it is told to stop; whether it happened is left open. */
function slow() {
  const began = Promise.withResolvers<void>();
  const tool = defineTool({
    name: "slow.send",
    description: "Takes its time.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute({ signal, progress }) {
      progress({ message: "half of it", done: 0.5 });
      began.resolve();
      return new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve("stopped"));
      });
    },
  });
  return { tool, began: began.promise };
}

test("a call that a person approved is followed and cancelled while it runs [S2-04 S2-05]", async () => {
  const { tool, began } = slow();
  const { gate } = openGate({ tools: [tool] });
  const session = gate.sessions.open({ id: "s", agent: AGENT });
  const id = decisionIdOf(await session.call(request("slow.send", {})));
  const reports: unknown[] = [];
  const unfollow = gate.running.follow("s", "c-1", (report) => void reports.push(report));
  const answers = approve(gate, id);
  await began;
  expect(gate.running.cancel("s", "c-2", "no such call")).toBe(false);
  expect(gate.running.cancel("s", "c-1", "too slow")).toBe(true);
  expect(await answers).toMatchObject([
    { answer: "unknown", text: expect.stringContaining("too slow") },
  ]);
  expect(reports).toEqual([{ message: "half of it", done: 0.5 }]);
  expect(gate.running.cancel("s", "c-1", "it is over")).toBe(false);
  unfollow();
});

test("a call that the reviews alone let through ends with its caller's signal, who hears of its progress [S2-04 S2-05]", async () => {
  const { tool, began } = slow();
  const policy = rules({ id: "r", effect: "review", tool: "slow.*", reason: "test" });
  const { gate } = openGate({ tools: [tool], policy });
  const stop = new AbortController();
  const reports: unknown[] = [];
  const running = gate.sessions.open({ id: "s", agent: AGENT }).call(request("slow.send", {}), {
    signal: stop.signal,
    onProgress: (callId, report) => void reports.push([callId, report]),
  });
  await began;
  stop.abort(new Error("not needed any more"));
  expect(await running).toMatchObject({
    answer: "unknown",
    text: expect.stringContaining("not needed any more"),
  });
  expect(reports).toEqual([["c-1", { message: "half of it", done: 0.5 }]]);
});
