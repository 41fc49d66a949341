import { expect, onTestFinished, test } from "vitest";
import { change, insert } from "../../src/store/conformance/samples.ts";
import { sqliteEngine } from "../../src/store/sqlite/index.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";

const TENANTS = 2_000;

test("heads: the ends of all chains are read at once and not one by one [SL7]", async () => {
  const parts = { random: systemRandom, timers: systemTimers, patienceMs: 1_000 };
  const engine = sqliteEngine({ file: ":memory:", ...parts });
  onTestFinished(() => engine.close());
  const names = Array.from({ length: TENANTS }, (_, n) => `tenant-${String(n).padStart(4, "0")}`);
  await Promise.all(names.map((name) => engine.commit(name, change([insert("a")]))));
  const times = { together: Number.POSITIVE_INFINITY, oneByOne: Number.POSITIVE_INFINITY };
  for (let round = 0; round < 5; round += 1) {
    const before = performance.now();
    const together = await engine.heads();
    const between = performance.now();
    const oneByOne = await Promise.all(names.map((name) => engine.head(name)));
    times.together = Math.min(times.together, between - before);
    times.oneByOne = Math.min(times.oneByOne, performance.now() - between);
    expect(together).toEqual(oneByOne);
  }
  expect(times.together).toBeLessThan(times.oneByOne / 2);
});
