import { describe, expect, test } from "vitest";
import { allowAlways, createStaging, type StagingOptions } from "../../src/gate/review.ts";
import type { DecisionStore } from "../../src/store/decisions.ts";
import { scripted, scriptedGuard } from "../support/staging.ts";

const store = {} as DecisionStore;
const parts = { store, tech: scripted("t"), business: scripted("b"), guard: allowAlways };

describe("createStaging", () => {
  test.each(["store", "tech", "business", "guard"] as const)(
    "throws without a %s [S0-53]",
    (part) => {
      for (const nothing of [undefined, null]) {
        const without = { ...parts, [part]: nothing } as unknown as StagingOptions;
        expect(() => createStaging(without)).toThrow(TypeError);
        expect(() => createStaging(without)).toThrow(part);
      }
      const { [part]: _left, ...rest } = parts;
      expect(() => createStaging(rest as StagingOptions)).toThrow(part);
    },
  );

  test("has no default guard: 'no dependency rules' is passed in [S0-54]", () => {
    const { guard: _left, ...rest } = parts;
    expect(() => createStaging(rest as unknown as StagingOptions)).toThrow("guard");
    expect(() => createStaging({ ...rest, guard: allowAlways })).not.toThrow();
  });

  test("gives calls to ask with and no way to be called back [S0-59]", () => {
    expect(Object.keys(createStaging(parts)).toSorted()).toEqual([
      "get",
      "list",
      "listBySession",
      "listStuck",
      "markExecuted",
      "markFailed",
      "stage",
      "validateBiz",
      "validateTech",
    ]);
  });
});

describe("what only passes through", () => {
  const calls: unknown[][] = [];
  const answer = { id: "answer" };
  const recording = new Proxy({} as DecisionStore, {
    get:
      (_target, name) =>
      async (...args: unknown[]) => {
        calls.push([name, ...args]);
        return answer;
      },
  });
  const guard = scriptedGuard(false);
  const staging = createStaging({ ...parts, store: recording, guard });
  const by = { actor: "executor" };

  test.each([
    ["markExecuted", ["id-1", { proof: 1 }, by]],
    ["markExecuted", ["id-1", undefined, undefined]],
    ["markFailed", ["id-1", "reason", by]],
    ["get", ["id-1"]],
    ["list", [{ limit: 3 }]],
    ["listBySession", ["session-1"]],
    ["listStuck", ["approved", 5]],
  ] as const)(
    "%s: what is asked and answered is the store's, and no guard is asked [S0-74 S0-75]",
    async (name, args) => {
      calls.length = 0;
      const call = staging[name] as (...args: readonly unknown[]) => Promise<unknown>;
      expect(await call(...args)).toBe(answer);
      expect(calls).toEqual([[name, ...args]]);
      expect(guard.asked).toEqual([]);
    },
  );

  test("hands a refusal on as it is [S0-74]", async () => {
    const refusal = new Error("from the store");
    const refusing = { markExecuted: () => Promise.reject(refusal) } as unknown as DecisionStore;
    const over = createStaging({ ...parts, store: refusing });
    await expect(over.markExecuted("id", 1)).rejects.toBe(refusal);
  });
});
