// Hints of commits across processes: nothing polls here, so what is told came as a hint.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../interactions/processes/person-child.ts";
import { ENGINES, newPlace } from "../interactions/processes/person-process.ts";

test.each(ENGINES)(
  "%s: a listener is told of what another process committed, and of nothing once it is told to stop",
  async (engine) => {
    const place = await newPlace(engine);
    onTestFinished(() => place.remove());
    // Two stores have nothing in common but the database, as two processes.
    const [here, other] = [await openStore(place), await openStore(place)];
    onTestFinished(async () => {
      await here.close();
      await other.close();
    });
    const { killSwitch } = other.store.tenant("acme");
    await killSwitch.stop("drill", { actor: "person:ada" });
    let told = 0;
    const stop = here.store.onCommit(() => {
      told += 1;
    });
    const secondStop = here.store.onCommit(() => {});
    // What is told late is of before; PostgreSQL also has to connect first.
    await sleep(300);
    told = 0;
    await sleep(100);
    expect(told, "nothing happened").toBe(0);
    for (const reason of ["one", "two", "three"]) {
      const before = told;
      await killSwitch.stop(reason, { actor: "person:ada" });
      await expect.poll(() => told, { interval: 5, timeout: 5_000 }).toBeGreaterThan(before);
    }
    stop();
    stop();
    secondStop();
    const before = told;
    await killSwitch.stop("unheard", { actor: "person:ada" });
    await sleep(100);
    expect(told).toBe(before);
    const stopAgain = here.store.onCommit(() => {
      told += 1;
    });
    await expect
      .poll(
        async () => {
          await killSwitch.stop("again", { actor: "person:ada" });
          return told;
        },
        { timeout: 5_000 },
      )
      .toBeGreaterThan(before);
    stopAgain();
  },
);
