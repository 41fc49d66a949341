import type { ReviewRule } from "../../gate/review-rules.ts";
import { parseJson } from "../../model/parse-json.ts";
import type { Validator } from "../../model/validator.ts";
import type { Verdict } from "../../model/verdict.ts";
import type { JsonObject } from "../../util/json.ts";

const MOST_CENTS = 2_000_000;

function verdict(validator: string, problem: string | undefined): Verdict {
  return {
    approved: problem === undefined,
    score: problem === undefined ? 1 : 0,
    severity: problem === undefined ? "" : "block",
    reason: problem ?? "nothing against it",
    validator,
    policyVersion: "demo-1",
  };
}

function inputsOf(raw: Uint8Array): readonly JsonObject[] {
  const { calls } = parseJson(raw) as { calls: { input: JsonObject }[] };
  return calls.map(({ input }) => input);
}

/** Looks at the shape of things: is there a warehouse item behind it? */
export function techReview(skus: readonly string[]): Validator {
  return {
    name: "known-items",
    async review({ raw }) {
      const strange = inputsOf(raw).find(
        ({ sku }) => sku !== undefined && !skus.includes(String(sku)),
      );
      return verdict("known-items", strange && `There is no item ${strange["sku"]}.`);
    },
  };
}

/** Looks at money: nobody has to be asked about an order that is too large anyway. */
export const businessReview: Validator = {
  name: "budget",
  async review({ raw }) {
    const cents = inputsOf(raw).reduce((sum, { cents = 0 }) => sum + Number(cents), 0);
    const over = `It costs ${(cents / 100).toFixed(2)} EUR, the limit is ${MOST_CENTS / 100}.00.`;
    return verdict("budget", cents > MOST_CENTS ? over : undefined);
  },
};

/** What cannot be taken back goes to somebody else when nobody has answered for a while. */
export const DEMO_REVIEW: readonly ReviewRule[] = [
  // One person plays every reviewer of the demo, so whoever edits a call may approve it too.
  { requires: [{ name: "review", count: 1 }], editorMayApprove: true },
  {
    tools: ["carriers.*"],
    requires: [{ name: "review", count: 1 }],
    editorMayApprove: true,
    escalation: { afterMs: 30 * 60_000, to: "person:duty" },
  },
];
