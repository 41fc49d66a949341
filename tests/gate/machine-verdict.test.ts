// The business validator's verdict stays with the decision, next to the person's, whatever the person says.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createGate, type Gate } from "../../src/index.ts";
import { NO_VERDICT, type Validator } from "../../src/model/decision.ts";
import { previewHash } from "../../src/model/interaction.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { decisionIdOf, PERSON } from "../support/port-world.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const DOUBT = {
  approved: true,
  score: 0.3,
  reason: "An unusual amount.",
  severity: "warn",
  validator: "limits",
  policyVersion: "7",
} as const;

const refund = defineTool({
  name: "billing.refund",
  description: "Pays an invoice back.",
  input: { type: "object" },
  safety: { effect: "external" },
  execute: () => "paid back",
});

/** Whether the question is written together with its decision, or after it because the review takes long. */
type Pace = "prompt" | "slow";

forEachStore("the machine's business verdict", (open) => {
  test.each(["prompt", "slow"] as const)(
    "%s: it is on the record while a person is asked and after their word, in the log and under the hash [I-02]",
    async (pace: Pace) => {
      const { store } = await open();
      const business: Validator = {
        name: DOUBT.validator,
        async review() {
          while (pace === "slow" && (await gate.decisions.list()).length === 0) await sleep(1);
          return DOUBT;
        },
      };
      const tech = sampleVerdictValidator("schema");
      const gate: Gate = createGate({ store, tools: [refund], validators: { tech, business } });
      const session = gate.sessions.open({ id: "s-1", agent: "agent:one" });
      const call = { callId: "c-1", tool: refund.name, input: { cents: 12_900 } };
      const id = decisionIdOf(await session.call(call));
      const { diff: _, ...waits } = await gate.decisions.get(id);
      expect(waits).toMatchObject({ state: "pending_ml", bizVerdict: NO_VERDICT });
      expect(waits.machineVerdict).toEqual(DOUBT);

      const shown = await gate.interactions.shown(id);
      const { preview, hash } = shown ?? expect.fail("nothing is shown");
      expect(preview.machine).toEqual(DOUBT);
      expect(previewHash({ ...preview, machine: { ...DOUBT, score: 0.9 } })).not.toBe(hash);
      const entries = await gate.audit.entries({ after: 0, limit: 100 });
      const previewed = entries.filter(({ type }) => type === "decision.previewed");
      expect(previewed.map(({ data }) => data?.["machine"])).toEqual([DOUBT]);

      await gate.interactions.approve(id, { hash, by: PERSON });
      expect(await gate.decisions.get(id)).toMatchObject({
        state: "executed",
        bizVerdict: { approved: true, validator: PERSON },
        machineVerdict: DOUBT,
      });
      expect((await gate.decisions.list())[0]?.machineVerdict).toEqual(DOUBT);
    },
  );
});
