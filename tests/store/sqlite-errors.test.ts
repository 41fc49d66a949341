import { setTimeout } from "node:timers/promises";
import Sqlite from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { DECISIONS } from "../../src/model/decision.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import { START } from "../../src/store/conformance/index.ts";
import {
  change,
  insert,
  NO,
  sampleDraft,
  soundTrail,
  stagedIn,
  update,
  YES,
} from "../../src/store/conformance/samples.ts";
import { sqliteEngine } from "../../src/store/sqlite/index.ts";
import { manualClock, systemClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { refusal } from "../support/staging.ts";
import { stagingProcess } from "../support/staging-process.ts";
import { isWanted, type StoreMaker, startStores, type TestStore } from "../support/stores.ts";

// skip: STORES names the stores to test, and this is not one of them
describe.skipIf(!isWanted("sqlite"))("sqlite", () => {
  let stores: StoreMaker;
  beforeAll(async () => {
    stores = await startStores.sqlite();
  });
  afterAll(() => stores.stop());

  /** A fresh store, and a way into its file past it. */
  async function open(): Promise<{ store: TestStore; file: string; direct: Sqlite.Database }> {
    const store = await stores.open();
    const file = store.place.kind === "sqlite" ? store.place.file : "";
    const direct = new Sqlite(file);
    onTestFinished(async () => {
      direct.close();
      await store.close();
    });
    return { store, file, direct };
  }

  test("when the trail cannot be written no state changes; reads continue, and writes do after the repair [T36 I16 S0-104]", async () => {
    const { store, direct } = await open();
    const { engine } = store;
    await engine.commit("acme", change([insert("a")]));
    direct.exec(
      "CREATE TRIGGER down BEFORE INSERT ON audit_blocks BEGIN SELECT RAISE(ABORT, 'down'); END",
    );
    const move = change([update("a", {}, { state: "failed" }), insert("b")]);
    await expect(engine.commit("acme", move)).rejects.toThrow("sallyport:");
    expect((await engine.get("acme", DECISIONS, "a"))?.["state"]).toBe("pending_tech");
    expect(await engine.get("acme", DECISIONS, "b")).toBeUndefined();
    direct.exec("DROP TRIGGER down");
    expect((await engine.commit("acme", move)).committed).toBe(true);
    expect(await soundTrail(engine)).toHaveLength(2);
  });

  test("a tenant whose first entry was rolled back still gets its own chain [R26 T36]", async () => {
    const { store, direct } = await open();
    const { engine } = store;
    direct.exec(
      "CREATE TRIGGER down BEFORE INSERT ON audit_blocks BEGIN SELECT RAISE(ABORT, 'down'); END",
    );
    await expect(engine.commit("acme", change([insert("a")]))).rejects.toThrow("sallyport:");
    direct.exec("DROP TRIGGER down");
    // It takes the number that the other one had for a moment.
    await engine.commit("globex", change([insert("a")]));
    await engine.commit("acme", change([insert("a")]));
    expect((await engine.heads()).map(({ tenant, seq }) => [tenant, seq])).toEqual([
      ["acme", 1],
      ["globex", 1],
    ]);
    expect(await soundTrail(engine, "acme")).toHaveLength(1);
    expect(await soundTrail(engine, "globex")).toHaveLength(1);
  });

  test("a full chain refuses further entries, and none of them gets into the next chain [T36]", async () => {
    const { store, direct } = await open();
    const { engine } = store;
    for (const tenant of ["acme", "globex", "initech"]) {
      await engine.commit(tenant, change([insert("a")]));
    }
    // As if all places but this one had been written; the second chain's number is even, so nothing collides by itself.
    direct.exec("UPDATE audit_blocks SET ord = (2 << 32) | 4294967295 WHERE chain = 2");
    await refusal("invalid_input", engine.commit("globex", change([insert("b")])));
    expect(await engine.get("globex", DECISIONS, "b")).toBeUndefined();
    expect(await soundTrail(engine, "initech")).toHaveLength(1);
  });

  test("a state outside the seven, put there from outside, makes every move an illegal transition [S0-99]", async () => {
    const { store, direct } = await open();
    const { decisions } = store;
    const { id } = await decisions.stage(sampleDraft());
    direct.pragma("ignore_check_constraints = ON");
    direct.exec("UPDATE decisions SET state = 'no_such_state'");
    const moves = [
      () => decisions.updateTechVerdict(id, YES),
      () => decisions.updateBizVerdict(id, NO),
      () => decisions.markExecuted(id, 1),
      () => decisions.markFailed(id, "no"),
    ];
    for (const move of moves) {
      const error = await move().catch((thrown: unknown) => thrown);
      expect(isSallyportError(error, "illegal_transition"), String(error)).toBe(true);
    }
    await refusal("damaged_record", decisions.get(id));
  });

  test.each([
    ["diff_metadata", "not JSON"],
    ["diff_metadata", "5"],
    ["metadata", '{"$v8":"AAAA"}'],
    ["tech_verdict", "null and void"],
    ["tech_verdict", "5"],
    ["tech_verdict", '{"approved":"yes"}'],
  ])(
    "a %s of %j, written from outside, is damaged_record and is not used",
    async (column, text) => {
      const { store, direct } = await open();
      const { id } = await stagedIn("approved", store);
      direct.prepare(`UPDATE decisions SET ${column} = ?`).run(text);
      const error = await refusal("damaged_record", store.decisions.get(id));
      expect(error.details).toMatchObject({ id, column });
      // A list leaves out what cannot be read, and only that.
      expect(await store.decisions.list()).toEqual([]);
    },
  );

  test("a writer that keeps the lock is store_busy after the time limit; reads continue, and later writes too", async () => {
    const { file, direct } = await open();
    const parts = { random: systemRandom, timers: systemTimers, clock: systemClock };
    const engine = sqliteEngine({ ...parts, file, patienceMs: 60 });
    await engine.commit("acme", change([insert("a")]));
    direct.exec("BEGIN IMMEDIATE");
    const [write, rows] = await Promise.all([
      refusal("store_busy", engine.commit("acme", change([insert("b")]))),
      engine.find("acme", DECISIONS, { limit: 9 }),
    ]);
    expect(write.retry).toBe("safe");
    expect(rows).toHaveLength(1);
    direct.exec("ROLLBACK");
    expect((await engine.commit("acme", change([insert("b")]))).committed).toBe(true);
    await engine.close();
  });

  test("the time limit is monotonic: it also ends when the clock stops or steps back", async () => {
    const { file, direct } = await open();
    const parts = { random: systemRandom, timers: systemTimers, clock: manualClock(START) };
    const engine = sqliteEngine({ ...parts, file, patienceMs: 60 });
    direct.exec("BEGIN IMMEDIATE");
    const write = engine.commit("acme", change([insert("a")])).catch((error: unknown) => error);
    const waited = await Promise.race([write, setTimeout(1_500, "it is still waiting")]);
    direct.exec("ROLLBACK");
    await write;
    await engine.close();
    expect(waited).toMatchObject({ code: "store_busy" });
  });

  test("processes that open a new file at the same moment make one store", async () => {
    const place = { kind: "sqlite", file: `${(await open()).file}.new` } as const;
    const others = await Promise.all([1, 2, 3, 4].map(() => stagingProcess(place, START)));
    const staged = await Promise.all(others.map((other) => other.call("stage", "session-1")));
    await Promise.all(others.map((other) => other.end()));
    expect(staged.map((answer) => typeof answer)).toEqual(["object", "object", "object", "object"]);
    const direct = new Sqlite(place.file);
    expect(direct.prepare("SELECT last FROM audit_blocks ORDER BY last").pluck().all()).toEqual([
      1, 2, 3, 4,
    ]);
    direct.close();
  });
});
