import { afterAll, beforeAll, describe } from "vitest";
import { isWanted, STORE_NAMES, type StoreMaker, startStores } from "../support/stores.ts";
import { runTaskCases } from "./task-stores.ts";

/** The task list over the store that everything else uses, on each of its engines. */
for (const name of STORE_NAMES) {
  // skip: STORES names the stores to test, and this is not one of them
  describe.skipIf(!isWanted(name))(name, () => {
    let stores: StoreMaker;
    beforeAll(async () => {
      stores = await startStores[name]();
    });
    afterAll(() => stores?.stop());
    runTaskCases("tasks", async () => {
      const { store, clock, again, close } = await stores.open();
      return {
        store: store.tenant("acme").tasks,
        clock,
        ...(again === undefined
          ? {}
          : { again: async () => (await again()).store.tenant("acme").tasks }),
        remove: close,
      };
    });
  });
}
