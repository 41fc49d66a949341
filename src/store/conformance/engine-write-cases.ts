import assert from "node:assert/strict";
import { DECISIONS } from "../../model/decision.ts";
import { NOW } from "../engine.ts";
import { cases, type EngineHarness, TENANT } from "./case.ts";
import {
  change,
  EMPTY_ROW,
  event,
  ids,
  insert,
  NOWHERE,
  plain,
  refuses,
  remove,
  START,
  soundTrail,
  together,
  update,
  utf8,
  written,
} from "./samples.ts";

/** What one change does to rows. */
export const engineWriteCases = cases<EngineHarness>((test) => {
  test("insert: the row comes back as it was given, with key and order, from the write and from get", async (harness) => {
    const { engine, clock } = harness;
    const { rows, at } = await written(engine, [insert("a", { metadata: '{"k":1}' })]);
    assert.equal(at, clock.now());
    const expected = {
      ...EMPTY_ROW,
      tenant: TENANT,
      id: "a",
      session_id: "session-1",
      state: "pending_tech",
      source_tool: "crm.update",
      raw: `bytes:${Buffer.from("payload").toString("hex")}`,
      diff_metadata: "{}",
      metadata: '{"k":1}',
      asked: 0,
      created_at: START,
      updated_at: START,
    };
    const { ord: readOrd, ...read } = plain(await engine.get(TENANT, DECISIONS, "a")) ?? {};
    assert.deepEqual(read, expected);
    const { ord, ...wrote } = plain(rows[0]) ?? {};
    assert.deepEqual(wrote, expected);
    assert.equal(typeof ord, "number", "the written row says where it stands in the order");
    assert.equal(ord, readOrd);
  });
  test("insert: a taken id is refused, answers with the row that has it and changes nothing", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("a", { source_tool: "first" })]);
    const before = plain(await engine.get(TENANT, DECISIONS, "a"));
    const result = await engine.commit(TENANT, change([insert("a", { source_tool: "second" })]));
    assert.ok(!result.committed);
    assert.equal(result.step, 0);
    assert.deepEqual(plain(result.current), before);
    assert.deepEqual(plain(await engine.get(TENANT, DECISIONS, "a")), before);
    assert.equal((await soundTrail(engine)).length, 1);
  });
  test("get: an unknown id is undefined, in a table without rows too", async ({ engine }) => {
    assert.equal(await engine.get(TENANT, DECISIONS, NOWHERE), undefined);
    await written(engine, [insert("a")]);
    assert.equal(await engine.get(TENANT, DECISIONS, NOWHERE), undefined);
    assert.equal(await engine.get("someone-else", DECISIONS, "a"), undefined);
  });
  test("update: sets the named columns, leaves the others, and answers with the new row", async (harness) => {
    const { engine, clock } = harness;
    await written(engine, [insert("a", { metadata: '{"k":1}' })]);
    clock.advance(5);
    const set = { state: "pending_ml", tech_verdict: "{}", metadata: null, updated_at: NOW };
    const { rows } = await written(engine, [update("a", {}, set)]);
    const row = plain(await engine.get(TENANT, DECISIONS, "a"));
    assert.deepEqual(plain(rows[0]), row);
    assert.equal(row?.["state"], "pending_ml");
    assert.equal(row?.["tech_verdict"], "{}");
    assert.equal(row?.["metadata"], null);
    assert.equal(row?.["source_tool"], "crm.update");
    assert.equal(row?.["created_at"], START);
    assert.equal(row?.["updated_at"], START + 5);
  });
  test("update: values may be now, now plus a time, and the column's own value plus a number", async (harness) => {
    const { engine, clock } = harness;
    await written(engine, [insert("a", { updated_at: { nowPlusMs: 30_000 }, created_at: 7 })]);
    const inserted = await engine.get(TENANT, DECISIONS, "a");
    assert.equal(inserted?.["updated_at"], START + 30_000);
    clock.advance(1_000);
    const set = { updated_at: { nowPlusMs: -500 }, created_at: { plus: 3 } };
    await written(engine, [update("a", {}, set)]);
    const moved = await engine.get(TENANT, DECISIONS, "a");
    assert.equal(moved?.["updated_at"], START + 500);
    assert.equal(moved?.["created_at"], 10);
    await written(engine, [update("a", {}, { created_at: { plus: -10 } })]);
    assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["created_at"], 0);
  });
  test("update: a record that is not there is refused with no row", async ({ engine }) => {
    const result = await engine.commit(TENANT, change([update(NOWHERE, {}, { state: "failed" })]));
    assert.deepEqual(result, { committed: false, step: 0, current: undefined });
    assert.equal((await soundTrail(engine)).length, 0);
  });
  test("steps: several are written together with all their events", async ({ engine }) => {
    await written(engine, [insert("a")]);
    const steps = [update("a", { state: "pending_tech" }, { state: "pending_ml" }), insert("b")];
    const result = await engine.commit(
      TENANT,
      change(
        steps,
        steps.map((_, step) => ({
          ...event({ left: "id", step }),
          facts: { state: { left: "state", step } },
        })),
      ),
    );
    assert.ok(result.committed);
    assert.deepEqual(
      result.rows.map((row) => [row["id"], row["state"]]),
      [
        ["a", "pending_ml"],
        ["b", "pending_tech"],
      ],
    );
    assert.equal(result.seq, 3, "the number of the last entry");
    const [, second, third] = await soundTrail(engine);
    assert.deepEqual([second?.subject, second?.data], ["a", '{"state":"pending_ml"}']);
    assert.deepEqual([third?.subject, third?.data], ["b", '{"state":"pending_tech"}']);
  });
  test("steps: a refusal at the second or third leaves nothing of the first, nor an event [S0-102]", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("a"), insert("b", { state: "approved" })]);
    const before = plain(await engine.get(TENANT, DECISIONS, "a"));
    const first = update("a", { state: "pending_tech" }, { state: "pending_ml" });
    const wrong = update("b", { state: "pending_tech" }, { state: "pending_ml" });
    const second = await engine.commit(TENANT, change([first, wrong]));
    assert.ok(!second.committed);
    assert.equal(second.step, 1);
    assert.equal(second.current?.["id"], "b");
    assert.equal(second.current?.["state"], "approved");
    const third = await engine.commit(TENANT, change([first, insert("c"), insert("b")]));
    assert.ok(!third.committed);
    assert.equal(third.step, 2);
    assert.equal(third.current?.["state"], "approved");
    assert.deepEqual(plain(await engine.get(TENANT, DECISIONS, "a")), before);
    assert.equal(await engine.get(TENANT, DECISIONS, "c"), undefined);
    assert.equal((await soundTrail(engine)).length, 1);
  });
  test("steps: a refusal at the first leaves nothing of those behind it, also in company [S0-102]", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("a", { state: "approved" }), insert("b")]);
    const wrong = update("a", { state: "pending_tech" }, { state: "pending_ml" });
    const behind = update("b", { state: "pending_tech" }, { state: "pending_ml" });
    const [refused, ...others] = await Promise.all([
      engine.commit(TENANT, change([wrong, behind, insert("c")])),
      engine.commit(TENANT, change([insert("d")])),
      engine.commit(TENANT, change([insert("e"), insert("f")])),
    ]);
    assert.ok(refused?.committed === false);
    assert.deepEqual([refused.step, refused.current?.["state"]], [0, "approved"]);
    assert.ok(others.every(({ committed }) => committed));
    assert.equal((await engine.get(TENANT, DECISIONS, "b"))?.["state"], "pending_tech");
    assert.equal(await engine.get(TENANT, DECISIONS, "c"), undefined);
    assert.ok(await engine.get(TENANT, DECISIONS, "f"));
    assert.equal((await soundTrail(engine)).length, 3);
  });
  test("rows: bytes that are handed out are copies, for each who asks", async ({ engine }) => {
    const raw = utf8("abc");
    const { rows } = await written(engine, [insert("a", { raw })]);
    const read = () => engine.get(TENANT, DECISIONS, "a");
    const [one, other] = await Promise.all([read(), read()]);
    for (const row of [rows[0], one]) {
      assert.ok(row?.["raw"] instanceof Uint8Array);
      row["raw"].fill(0);
    }
    for (const row of [other, await read()]) {
      assert.ok(row?.["raw"] instanceof Uint8Array);
      assert.deepEqual(new Uint8Array(row["raw"]), utf8("abc"));
    }
    assert.deepEqual(raw, utf8("abc"), "nor is the caller's own copy shared");
  });
});

/** Steps that take a record away. */
export const engineDeleteCases = cases<EngineHarness>((test) => {
  test("delete: takes the record away and leaves behind the row as it was, for its event too", async (harness) => {
    const { engine } = harness;
    const { rows: before } = await written(engine, [insert("a", { source_tool: "crm" })]);
    await written(engine, [insert("b")]);
    const plan = { ...event({ left: "id" }), facts: { tool: { left: "source_tool" } } };
    const result = await engine.commit(TENANT, change([remove("a")], [plan]));
    assert.ok(result.committed);
    assert.deepEqual(result.rows.map(plain), before.map(plain));
    assert.equal(await engine.get(TENANT, DECISIONS, "a"), undefined);
    const left = await engine.find(TENANT, DECISIONS, { limit: 10 });
    assert.deepEqual(ids(left), ["b"]);
    const bySession = { where: { session_id: "session-1" }, limit: 10 };
    assert.equal((await engine.find(TENANT, DECISIONS, bySession)).length, 1);
    const last = (await soundTrail(engine)).at(-1);
    assert.deepEqual([last?.subject, last?.data], ["a", '{"tool":"crm"}']);
  });
  test("delete: a record that looks otherwise, or is not there, refuses the change and leaves everything", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("a"), insert("b")]);
    const before = plain(await engine.get(TENANT, DECISIONS, "a"));
    const move = update("b", {}, { state: "failed" });
    const other = await engine.commit(TENANT, change([move, remove("a", { state: "failed" })]));
    assert.ok(!other.committed);
    assert.deepEqual([other.step, plain(other.current)], [1, before]);
    const missing = await engine.commit(TENANT, change([remove(NOWHERE)]));
    assert.deepEqual(missing, { committed: false, step: 0, current: undefined });
    const half = await engine.commit(TENANT, change([remove("a"), remove(NOWHERE)]));
    assert.deepEqual(half, { committed: false, step: 1, current: undefined });
    assert.deepEqual(plain(await engine.get(TENANT, DECISIONS, "a")), before);
    assert.equal((await engine.get(TENANT, DECISIONS, "b"))?.["state"], "pending_tech");
    assert.equal((await soundTrail(engine)).length, 1);
  });
  test("delete: what cannot be told is not deleted [S0-104]", async ({ engine }) => {
    await written(engine, [insert("a")]);
    const untold = change([remove("a")], [event({ left: "no_such_column" })]);
    await refuses("invalid_input", () => engine.commit(TENANT, untold));
    assert.ok(await engine.get(TENANT, DECISIONS, "a"));
  });
  test("delete: of many at once one succeeds, and the id is free again", async ({ engine }) => {
    await written(engine, [insert("a")]);
    const all = await together(16, () => engine.commit(TENANT, change([remove("a")])));
    assert.equal(all.filter(({ committed }) => committed).length, 1);
    await written(engine, [insert("a", { state: "failed" })]);
    assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["state"], "failed");
  });
  test("delete: never reaches another tenant", async ({ engine }) => {
    await written(engine, [insert("a")], "globex");
    assert.equal((await engine.commit(TENANT, change([remove("a")]))).committed, false);
    assert.ok(await engine.get("globex", DECISIONS, "a"));
  });
});
