import { expect, test } from "vitest";
import { manualTimers } from "../../../tests/support/manual-timers.ts";
import { manualClock } from "../../util/clock.ts";
import { Lines, type PgClient } from "./connection.ts";

test("connecting and asking share one deadline [SH3]", async () => {
  const timers = manualTimers(manualClock(0));
  const silent: PgClient = {
    query: () => new Promise(() => {}),
    release: () => {},
    on: () => {},
    off: () => {},
  };
  const connect = async () => {
    await timers.sleep(80);
    return silent;
  };
  const lines = new Lines({ pool: { connect, query: silent.query }, timers });
  let endedAt = 0;
  const asked = lines.query({ text: "SELECT 1" }, 100).catch(() => {
    endedAt = timers.elapsedMs();
  });
  await timers.advance(150);
  await asked;
  expect(endedAt).toBe(100);
});
