import { expect, test } from "vitest";
import type { Guard, Validator } from "../model/decision.ts";
import { DECISION_STATES, newDraft } from "../model/decision.ts";
import { memoryStore } from "../store/memory/index.ts";
import { allowAlways, createStaging } from "./review.ts";

const verdict = { approved: true, score: 1, reason: "", severity: "", policyVersion: "1" } as const;
const yes: Validator = { name: "yes", review: () => ({ ...verdict, validator: "yes" }) };

const options = { signal: new AbortController().signal };

test("allow-always says yes to every record and every target [S0-107]", () => {
  for (const state of DECISION_STATES) {
    for (const target of DECISION_STATES) {
      for (const metadata of [{}, { tenant: "acme" }, { upstream: [1] }]) {
        const diff = { sourceTool: "t", raw: new Uint8Array(), metadata };
        const decision = { ...newDraft("s", diff, "2026-11-15T06:00:00.000Z"), state };
        expect(allowAlways.allows(decision, target, options)).toBe(true);
      }
    }
  }
});

test("a guard answers yes, no or fails for a record and a target, by rules of its own [S0-106]", async () => {
  await using store = memoryStore();
  const asked: string[] = [];
  const guard: Guard = {
    async allows({ state, metadata }, target) {
      asked.push(`${state} > ${target}`);
      if (metadata["size"] === 0) throw new Error("nothing to move");
      return target !== "approved" || Number(metadata["size"]) < 3;
    },
  };
  const staging = createStaging({
    store: store.tenant("default").decisions,
    tech: yes,
    business: yes,
    guard,
  });
  const stage = async (size: number) => {
    const diff = { sourceTool: "t", raw: new Uint8Array([1]), metadata: { size } };
    return (await staging.stage("s", diff)).id;
  };
  const [small, large, empty] = [await stage(1), await stage(3), await stage(0)];

  await staging.validateTech(small);
  expect((await staging.validateBiz(small)).state).toBe("approved");
  await staging.validateTech(large);
  await expect(staging.validateBiz(large)).rejects.toMatchObject({ code: "dependency_denied" });
  await expect(staging.validateTech(empty)).rejects.toMatchObject({
    code: "dependency_denied",
    cause: new Error("nothing to move"),
  });
  expect(new Set(asked)).toEqual(new Set(["pending_tech > pending_ml", "pending_ml > approved"]));
});
