import { afterAll, beforeAll, describe, onTestFinished } from "vitest";
import {
  isWanted,
  STORE_NAMES,
  type StoreMaker,
  type StoreName,
  startStores,
  type TestStore,
} from "./stores.ts";

/**
 * The same tests on every engine. `open` gives a fresh store that is closed when the test is over, so a test that leaves
 * a connection open fails.
 */
export function forEachStore(
  title: string,
  define: (open: () => Promise<TestStore>) => void,
  names: readonly StoreName[] = STORE_NAMES,
): void {
  for (const name of names) {
    // skip: STORES names the stores to test, and this is not one of them
    describe.skipIf(!isWanted(name))(`${title} on ${name}`, () => {
      let stores: StoreMaker;
      beforeAll(async () => {
        stores = await startStores[name]();
      });
      afterAll(() => stores?.stop());
      define(async () => {
        const store = await stores.open();
        onTestFinished(() => store.close());
        return store;
      });
    });
  }
}
