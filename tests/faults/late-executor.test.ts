// Found by cutting connections: a process that is late at an approved decision must not undo what another one executed.

import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

/** Where the slow one is held up on its way from the yes to the first call. */
const HELD_UP = ["before the dry run is repeated", "after it", "before the review"] as const;

forEachStore("a late process", (open) => {
  test.each(HELD_UP)(
    "a process held up %s: another one continues, and its work stays [G10 T9 I7 I28]",
    async (where) => {
      const { store, clock } = await open();
      const effects: string[] = [];
      let version = 1;
      let hold = Promise.resolve();
      let looks = 0;
      const toolFor = (isSlow: boolean) =>
        defineTool({
          name: "shop.set",
          description: "Changes the shop.",
          input: { type: "object" },
          safety: { effect: "external", reversible: true },
          idempotency: "keyed",
          async dryRun() {
            looks += 1;
            if (isSlow && where === "before the dry run is repeated") await hold;
            return "would set";
          },
          async stateVersion() {
            const now = `v${version}`;
            if (isSlow && where === "after it") await hold;
            return now;
          },
          async execute() {
            effects.push("set");
            version += 1;
            return "set";
          },
          undo: () => ({ tool: "shop.unset", input: {} }),
        });
      const unset = defineTool({
        name: "shop.unset",
        description: "Changes it back.",
        input: { type: "object" },
        safety: { effect: "external" },
        execute: async () => {
          effects.push("unset");
          return "unset";
        },
      });
      const portOf = (isSlow: boolean) =>
        createGate({
          store,
          tenant: "acme",
          tools: [toolFor(isSlow), unset],
          validators: {
            tech: sampleVerdictValidator("schema"),
            business: {
              name: "limits",
              async review() {
                if (isSlow && where === "before the review") await hold;
                return {
                  approved: true,
                  score: 1,
                  severity: "",
                  reason: "fits",
                  validator: "limits",
                  policyVersion: "1",
                };
              },
            },
          },
          guard: allowAlways,
          policy: NO_RULES,
          leaseMs: 2_000,
          clock,
        });
      const [slow, quick] = [portOf(true), portOf(false)];
      const session = slow.sessions.open({ id: "s", agent: "agent:one" });
      const heldUp = Promise.withResolvers<void>();
      const holdUp = () => {
        hold = heldUp.promise;
      };
      if (where === "before the review") holdUp();
      const calling = session.call({ callId: "c", key: "k", tool: "shop.set", input: {} });
      if (where === "before the review") {
        await recovered(async () => (await quick.interactions.list()).length === 1);
        heldUp.resolve();
      }
      const asked = await calling;
      expect(asked).toMatchObject({ answer: "pending" });
      const [question] = await quick.interactions.list();
      const { id, hash } = question!;
      if (where !== "before the review") holdUp();
      const approving = slow.interactions.approve(id, { hash, by: "person:ada" });
      if (where !== "before the review") {
        await recovered(async () => effects.length > 0);
        heldUp.resolve();
      }
      const { answers } = await approving;
      expect(answers).toMatchObject([{ answer: "done", text: "set" }]);
      expect(effects).toEqual(["set"]);
      expect(looks).toBeGreaterThan(1);
      expect(await quick.decisions.get(id)).toMatchObject({ state: "executed" });
      expect(await session.resultOf("k")).toMatchObject({ answer: "done" });

      /** The other one takes it for abandoned and goes on. */
      async function recovered(isThere: () => Promise<boolean>): Promise<void> {
        await expect
          .poll(
            async () => {
              clock.advance(3_000);
              await quick.recover();
              return isThere();
            },
            { interval: 10, timeout: 5_000 },
          )
          .toBe(true);
      }
    },
  );
});
