import { mkdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { manualClock } from "../../src/util/clock.ts";
import { cliPlace } from "./cli-process.ts";

test("store clock: a trail ahead of the clock is shown with what to do, and accepted once [SH9]", {
  timeout: 100_000,
}, async () => {
  const place = cliPlace();
  mkdirSync(place.data, { mode: 0o700 });
  const file = path.join(place.data, "sallyport.db");
  const ahead = sqliteStore({ file, clock: manualClock(Date.now() + 86_400_000) });
  await ahead.tenant("default").killSwitch.stop("a day ahead", { actor: "test" });
  await ahead.close();

  const shown = await place.run("store", "clock");
  expect(shown.code).toBe(1);
  expect(shown.out).toMatch(/^default: the clock says .*, the last entry .*; only the kill switch/);
  expect(shown.out).toContain("sallyport store clock --accept");
  const doctor = await place.run("doctor");
  expect(doctor.out).toMatch(/^-- {2}clock: .*see sallyport store clock$/m);

  const accepted = await place.run("store", "clock", "--accept", "--as", "person:ada");
  expect(accepted).toMatchObject({ code: 0, err: "" });
  expect(accepted.out).toContain("leases and deadlines go by the clock");
  await using store = sqliteStore({ file });
  const entries = await store.tenant("default").audit.read({ after: 1, limit: 10 });
  expect(entries.map(({ type, actor }) => [type, actor])).toEqual([
    ["store.clock_accepted", "person:ada"],
  ]);
});
