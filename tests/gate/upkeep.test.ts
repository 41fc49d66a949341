// Upkeep beside a target that hangs.

import { expect, test } from "vitest";
import { startUpkeep } from "../../src/gate/upkeep.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { set } from "../interactions/inbox-world.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { AGENT, decisionIdOf, openGate, request, rules } from "../support/port-world.ts";

const LEASE_MS = 1_000;
const HOUR = 3_600_000;

/** Calls that a process has left behind, on a target that never answers again. */
async function hanging(count: number) {
  const called: string[] = [];
  const hang = defineTool({
    name: "far.hang",
    description: "Does not answer.",
    input: { type: "object", additionalProperties: true },
    safety: { effect: "external" },
    idempotency: "keyed",
    execute({ input }) {
      called.push(String(input["n"]));
      return new Promise<string>(() => {});
    },
  });
  const policy = rules({ id: "r", effect: "allow", tool: "far.hang", reason: "a test" });
  const world = openGate();
  const timers = manualTimers(world.clock);
  const tools = [...Object.values(world.tools), hang];
  const over = { tools, policy, timers, leaseMs: LEASE_MS, timeoutMs: 10 * HOUR, approvalMs: HOUR };
  const dying = world.again({
    ...over,
    at(point) {
      if (point === "S5.after") throw new Error("gone");
    },
  });
  for (let n = 0; n < count; n += 1) {
    const session = dying.sessions.open({ id: `s-${n}`, agent: AGENT });
    await session.call(request("far.hang", { n }, `c-${n}`)).catch(() => {});
  }
  return { world, timers, called, gate: world.again(over) };
}

test("targets that hang do not delay the end of a question [SM7]", async () => {
  const { timers, called, gate } = await hanging(5);
  const session = gate.sessions.open({ id: "s", agent: AGENT });
  const id = decisionIdOf(await session.call(set("a", 1)));
  const errors: unknown[] = [];
  const expired: string[] = [];
  startUpkeep({
    gate,
    everyMs: 1_000,
    onRound: ({ swept }) => expired.push(...swept.expired),
    onError: (error) => errors.push(error),
    timers,
  });
  await timers.advance(5_000);
  // All of them are tried concurrently: none waits for the one before it.
  expect(called.toSorted()).toEqual(["0", "1", "2", "3", "4"]);
  await timers.advance(HOUR);
  expect(expired).toEqual([id]);
  expect((await gate.interactions.get(id)).outcome).toBe("expired");
  expect(errors).toEqual([]);
});
