import { afterAll, beforeAll, describe, test } from "vitest";
import { decisionCases, engineCases, runCase } from "../../src/store/conformance/index.ts";
import { isWanted, type StoreMaker, type StoreName, startStores } from "./stores.ts";

/** The whole contract on one engine, a fresh store per case. A case that the engine cannot do is skipped with its reason. */
export function runStoreCases(name: StoreName): void {
  // skip: STORES names the stores to test, and this is not one of them
  describe.skipIf(!isWanted(name))(name, () => {
    let stores: StoreMaker;
    beforeAll(async () => {
      stores = await startStores[name]();
    });
    afterAll(() => stores?.stop());
    for (const one of [...decisionCases, ...engineCases]) {
      test(one.name, async ({ skip }) => {
        const { outcome, reason, error } = await runCase(() => stores.open(), one);
        if (outcome === "failed") throw error;
        // skip: the case needs a capability that this engine says it does not have
        skip(outcome === "skipped", `${name}: ${reason}`);
      });
    }
  });
}
