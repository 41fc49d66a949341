import assert from "node:assert/strict";
import { DECISIONS } from "../../model/decision.ts";
import { isSallyportError } from "../../model/errors.ts";
import type { Change, ChangeResult } from "../engine.ts";
import { cases, type EngineHarness, TENANT } from "./case.ts";

import {
  change,
  committed,
  event,
  insert,
  plain,
  soundTrail,
  together,
  update,
  written,
} from "./samples.ts";

/** Changes asked for at the same time: engines may write them together, but each keeps its own answer. */
export const engineGroupCases = cases<EngineHarness>((test) => {
  test("group: 64 concurrent writers make one linear, contiguous chain [R26]", async (harness) => {
    const { engine } = harness;
    const writer = async (index: number) => {
      for (let turn = 0; turn < 4; turn += 1) await written(engine, [insert(`${index}-${turn}`)]);
    };
    await together(64, writer);
    const entries = await soundTrail(engine);
    assert.equal(entries.length, 256);
    assert.equal(new Set(entries.map((entry) => entry.subject)).size, 256);
    for (let index = 0; index < 64; index += 1) {
      const mine = entries.filter((entry) => entry.subject.startsWith(`${index}-`));
      const order = mine.map((entry) => entry.subject);
      assert.deepEqual(
        order,
        [0, 1, 2, 3].map((turn) => `${index}-${turn}`),
        "I18 cause first",
      );
    }
  });
  test("group: each change is answered with the number of its own last entry [B04]", async (harness) => {
    const { engine } = harness;
    const results = await together(32, (index) =>
      engine.commit(TENANT, change([insert(`id-${index}`)])),
    );
    const entries = await soundTrail(engine);
    for (const [index, result] of results.entries()) {
      assert.ok(result.committed);
      assert.equal(entries[result.seq - 1]?.subject, `id-${index}`);
    }
  });
  test("group: writers of several tenants at once make one chain each [I17]", async (harness) => {
    const { engine } = harness;
    const tenants = ["acme", "globex", "initech"];
    await together(60, (index) =>
      written(engine, [insert(`id-${index}`)], tenants[index % tenants.length]),
    );
    for (const tenant of tenants) assert.equal((await soundTrail(engine, tenant)).length, 20);
  });
  test("group: changes of one record asked for together happen in the order they were asked [S0-103]", async (harness) => {
    const { engine } = harness;
    const states = ["pending_tech", "pending_ml", "approved", "executed"];
    const results = await Promise.all([
      engine.commit(TENANT, change([insert("a")])),
      ...[0, 1, 2].map((index) =>
        engine.commit(
          TENANT,
          change([update("a", { state: states[index] ?? "" }, { state: states[index + 1] ?? "" })]),
        ),
      ),
      engine.commit(TENANT, change([insert("a")])),
    ]);
    assert.deepEqual(committed(results), [true, true, true, true, false]);
    assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["state"], "executed");
    assert.equal((await soundTrail(engine)).length, 4);
  });
  test("group: refused changes leave no gap and no trace between those that hold", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("taken"), insert("spare")]);
    const before = plain(await engine.get(TENANT, DECISIONS, "spare"));
    const results = await together(30, (index) => {
      const ok = insert(`id-${index}`);
      if (index % 3 === 0) return engine.commit(TENANT, change([ok]));
      if (index % 3 === 1) return engine.commit(TENANT, change([insert("taken")]));
      // Refused half way, after a first step that would have held.
      const refused = update("spare", { state: "failed" }, { state: "executed" });
      return engine.commit(TENANT, change([ok, refused]));
    });
    for (const [index, result] of results.entries()) {
      assert.equal(result.committed, index % 3 === 0);
      if (!result.committed) assert.equal(result.step, index % 3 === 1 ? 0 : 1);
    }
    assert.equal((await soundTrail(engine)).length, 11);
    assert.equal((await engine.find(TENANT, DECISIONS, { limit: 100 })).length, 12);
    assert.deepEqual(plain(await engine.get(TENANT, DECISIONS, "spare")), before);
  });
  test("group: a change whose events cannot be made fails alone and leaves nothing [S0-104]", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("a")]);
    const before = plain(await engine.get(TENANT, DECISIONS, "a"));
    const steps = [update("a", {}, { state: "failed" }), insert("half")];
    const broken = change(steps, [event({ left: "no_such_column", step: 1 })]);
    const outcomes = await among(12, broken, (one) => engine.commit(TENANT, one));
    assert.equal(outcomes.broken.status, "rejected");
    assert.ok(isSallyportError(outcomes.broken.reason, "invalid_input"));
    assert.equal(outcomes.committed, 12, "everybody else is served");
    assert.deepEqual(plain(await engine.get(TENANT, DECISIONS, "a")), before);
    assert.equal(await engine.get(TENANT, DECISIONS, "half"), undefined);
    assert.equal((await soundTrail(engine)).length, 13);
  });
  test("group: an event that cannot be written down (half a character) fails alone and leaves nothing", async (harness) => {
    const { engine } = harness;
    const broken = change([insert("half")], [event("half", { text: "\ud800" })]);
    const outcomes = await among(5, broken, (one) => engine.commit(TENANT, one));
    assert.equal(outcomes.broken.status, "rejected");
    assert.equal(outcomes.committed, 5);
    assert.equal(await engine.get(TENANT, DECISIONS, "half"), undefined);
    assert.equal((await soundTrail(engine)).length, 5);
  });
  test("group: a row that the database refuses fails alone, as invalid_input (an engine may have no such rule)", async (harness) => {
    const { engine } = harness;
    const broken = change([insert("odd", { state: "no_such_state" })]);
    const { broken: outcome, committed } = await among(5, broken, (one) =>
      engine.commit(TENANT, one),
    );
    assert.equal(committed, 5);
    const refused = outcome.status === "rejected";
    if (refused)
      assert.ok(isSallyportError(outcome.reason, "invalid_input"), String(outcome.reason));
    assert.equal((await engine.get(TENANT, DECISIONS, "odd")) === undefined, refused);
    assert.equal((await soundTrail(engine)).length, refused ? 5 : 6);
  });
  test("group: many changes refused half way, of several tenants, leave all the others written [SH6]", async (harness) => {
    const { engine } = harness;
    const tenants = ["acme", "globex", "initech"];
    const half = (id: string) => change([insert(id), update("nobody", {}, { state: "failed" })]);
    const results = await together(90, (index) => {
      const tenant = tenants[index % tenants.length] ?? TENANT;
      const id = `id-${index}`;
      return engine.commit(tenant, index % 5 === 0 ? half(id) : change([insert(id)]));
    });
    for (const [index, result] of results.entries()) {
      assert.equal(result.committed, index % 5 !== 0);
      if (!result.committed) assert.equal(result.step, 1);
    }
    for (const tenant of tenants) assert.equal((await soundTrail(engine, tenant)).length, 24);
  });
  test("group: large changes and small ones asked for at once are all written [SM4]", async (harness) => {
    const { engine } = harness;
    const raw = new Uint8Array(700_000).fill(1);
    await together(20, (index) =>
      written(engine, [insert(`id-${index}`, index % 2 === 0 ? { raw } : {})]),
    );
    const row = await engine.get(TENANT, DECISIONS, "id-0");
    assert.equal((row?.["raw"] as Uint8Array | undefined)?.length, raw.length);
    assert.equal((await soundTrail(engine)).length, 20);
  });
});

/** Asks for the broken change in the midst of `others` good ones. */
async function among(
  others: number,
  broken: Change,
  commit: (one: Change) => Promise<ChangeResult>,
): Promise<{ broken: PromiseSettledResult<ChangeResult>; committed: number }> {
  const changes = Array.from({ length: others }, (_, index) => change([insert(`good-${index}`)]));
  changes.splice(others / 2, 0, broken);
  const results = await Promise.allSettled(changes.map(commit));
  const [outcome] = results.splice(changes.indexOf(broken), 1);
  assert.ok(outcome !== undefined);
  const committed = results.filter((one) => one.status === "fulfilled" && one.value.committed);
  return { broken: outcome, committed: committed.length };
}
