// Found by pausing processes for hours: one that is paused with its request in hand sends it after another one has asked the
// target, got a no, and continued. Only the target can tell the two apart, by the fence.

import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

/** The one that goes on takes over under fence 2, asks, and calls under a fence of its own. */
const TARGETS = [
  { target: "compares fences", happens: ["fence 3"] },
  { target: "does not look at them", happens: ["fence 3", "fence 1"] },
] as const;

forEachStore("a late request", (open) => {
  test.each(TARGETS)("to a probed target that $target: $happens [T8 I7]", async (row) => {
    const { store, clock } = await open();
    const happened: string[] = [];
    const paused = Promise.withResolvers<void>();
    let newest = 0;
    const portOf = (isPaused: boolean) =>
      createGate({
        store,
        tenant: "acme",
        tools: [
          defineTool({
            name: "shop.send",
            description: "Sends a parcel.",
            input: { type: "object" },
            safety: { effect: "external" },
            async execute({ fence }) {
              if (isPaused) await paused.promise;
              if (row.target === "compares fences" && fence < newest) throw new Error("too late");
              happened.push(`fence ${fence}`);
              return "sent";
            },
            async probe({ fence }) {
              newest = Math.max(newest, fence);
              if (happened.length === 0) return { happened: false };
              return { happened: true, result: "sent" };
            },
          }),
        ],
        validators: {
          tech: sampleVerdictValidator("schema"),
          business: sampleVerdictValidator("limits"),
        },
        guard: allowAlways,
        policy: {
          version: "1",
          rules: [{ id: "free", effect: "allow", tool: "shop.*", reason: "a test" }],
        },
        leaseMs: 2_000,
        clock,
      });
    const [slow, quick] = [portOf(true), portOf(false)];
    const session = slow.sessions.open({ id: "s", agent: "agent:one" });
    const calling = session.call({ callId: "c", key: "k", tool: "shop.send", input: {} });
    const goesOn = async () => {
      clock.advance(3_000);
      await quick.recover();
      return happened.length;
    };
    await expect.poll(goesOn, { interval: 10, timeout: 5_000 }).toBe(1);
    paused.resolve();
    await calling;
    expect(happened).toEqual(row.happens);
    expect(await session.resultOf("k")).toMatchObject({ answer: "done", text: "sent" });
  });
});
