import assert from "node:assert/strict";
import { DECISIONS } from "../../model/decision.ts";
import { cases, casesFor, type EngineCase, type EngineHarness, TENANT } from "./case.ts";
import {
  change,
  event,
  ids,
  insert,
  plain,
  refuses,
  soundTrail,
  together,
  update,
  utf8,
  written,
} from "./samples.ts";

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte);
/** What tends to get lost between a program and its database. NUL stands inside as JSON writes it. */
const HARD_TEXTS: readonly string[] = [
  "",
  " leading and trailing ",
  "Grüße, 日本語, עברית, e\u0301, 👩‍👩‍👧",
  "'; DROP TABLE decisions; --",
  '"quotes" \\ backslash \\u0041 $1 ? :name %s {"a":[1]}',
  JSON.stringify({ nul: "a\u0000b", lone: "\ud800", tab: "\t", line: "\r\n" }),
  "null",
  "true",
  "0012",
  "\u2028\u2029\u0085\ufeff",
  "x".repeat(100_000),
];

/** Reading rows back. */
export const engineFindCases = cases<EngineHarness>((test) => {
  test("find: rows come in the order they were inserted, whatever their ids and times are", async (harness) => {
    const { engine, clock } = harness;
    for (const id of ["m", "z", "a"]) {
      await written(engine, [insert(id)]);
      clock.advance(10);
    }
    await written(engine, [insert("b", { created_at: 0 }), insert("c")]);
    await written(engine, [update("m", {}, { state: "pending_ml" })]);
    const rows = await engine.find(TENANT, DECISIONS, { limit: 10 });
    assert.deepEqual(ids(rows), ["m", "z", "a", "b", "c"]);
    const ords = rows.map((row) => Number(row["ord"]));
    assert.deepEqual(
      ords,
      ords.toSorted((one, other) => one - other),
    );
    assert.equal(new Set(ords).size, 5);
  });
  test("find: changes asked for together are inserted in the order they were asked for", async (harness) => {
    const { engine } = harness;
    await together(100, (index) => written(engine, [insert(`id-${index}`)]));
    const rows = await engine.find(TENANT, DECISIONS, { limit: 1_000 });
    const asked = Array.from({ length: 100 }, (_, index) => `id-${index}`);
    assert.deepEqual(ids(rows), asked);
    assert.deepEqual(
      (await soundTrail(engine)).map((entry) => entry.subject),
      asked,
    );
  });
  test("find: pages by ord see every row once, also when rows change in between", async (harness) => {
    const { engine } = harness;
    await together(10, (index) => written(engine, [insert(`id-${index}`)]));
    const seen: unknown[] = [];
    for (let afterOrd = 0; ; ) {
      const page = await engine.find(TENANT, DECISIONS, { afterOrd, limit: 3 });
      assert.ok(page.length <= 3);
      if (page.length === 0) break;
      seen.push(...ids(page));
      afterOrd = Number(page.at(-1)?.["ord"]);
      await written(engine, [update("id-0", {}, { source_tool: `page ${afterOrd}` })]);
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 10 }, (_, index) => `id-${index}`),
    );
  });
  test("find: newest first, pages by ord go backwards and see every row once", async (harness) => {
    const { engine } = harness;
    for (let index = 0; index < 7; index += 1) await written(engine, [insert(`id-${index}`)]);
    const seen: unknown[] = [];
    for (let before: { beforeOrd?: number } = {}; ; ) {
      const query = { ...before, newestFirst: true, limit: 3 } as const;
      const page = await engine.find(TENANT, DECISIONS, query);
      if (page.length === 0) break;
      seen.push(...ids(page));
      before = { beforeOrd: Number(page.at(-1)?.["ord"]) };
      await written(engine, [insert(`later-${seen.length}`)]);
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 7 }, (_, index) => `id-${6 - index}`),
    );
  });
  test("find: limit keeps the first, also together with a condition; zero gives none", async (harness) => {
    const { engine } = harness;
    for (let index = 0; index < 6; index += 1) {
      const state = index % 2 === 0 ? "approved" : "failed";
      await written(engine, [insert(`id-${index}`, { state })]);
    }
    const where = { state: "failed" };
    assert.deepEqual(ids(await engine.find(TENANT, DECISIONS, { limit: 2 })), ["id-0", "id-1"]);
    const failed = await engine.find(TENANT, DECISIONS, { where, limit: 2 });
    assert.deepEqual(ids(failed), ["id-1", "id-3"]);
    const after = Number(failed.at(-1)?.["ord"]);
    const rest = await engine.find(TENANT, DECISIONS, { where, afterOrd: after, limit: 2 });
    assert.deepEqual(ids(rest), ["id-5"]);
    assert.deepEqual(await engine.find(TENANT, DECISIONS, { limit: 0 }), []);
  });
  test("find: follows a row from one value of an indexed column to the next", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("a")]);
    const inState = async (state: string) =>
      ids(await engine.find(TENANT, DECISIONS, { where: { state }, limit: 10 }));
    assert.deepEqual(await inState("pending_tech"), ["a"]);
    await written(engine, [update("a", {}, { state: "pending_ml" })]);
    assert.deepEqual(await inState("pending_tech"), []);
    assert.deepEqual(await inState("pending_ml"), ["a"]);
  });
  test("tenants: neither rows nor ids nor trails of one are seen or touched by another", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("same", { source_tool: "ours" })], "acme");
    await written(engine, [insert("same", { source_tool: "theirs" })], "globex");
    await written(engine, [insert("only-theirs")], "globex");
    const ours = plain(await engine.get("acme", DECISIONS, "same"));
    assert.equal(ours?.["source_tool"], "ours");
    assert.equal(await engine.get("acme", DECISIONS, "only-theirs"), undefined);
    assert.deepEqual(ids(await engine.find("acme", DECISIONS, { limit: 10 })), ["same"]);
    const meddle = update("only-theirs", {}, { source_tool: "ours now" });
    assert.equal((await engine.commit("acme", change([meddle]))).committed, false);
    await written(engine, [update("same", {}, { source_tool: "changed" })], "globex");
    assert.deepEqual(plain(await engine.get("acme", DECISIONS, "same")), ours);
    assert.equal((await soundTrail(engine, "acme")).length, 1);
    assert.equal((await soundTrail(engine, "globex")).length, 3);
    assert.equal((await soundTrail(engine, "initech")).length, 0);
  });
  test("cells: every byte value, no bytes at all and large payloads round trip [S0-11]", async (harness) => {
    const { engine } = harness;
    const large = new Uint8Array(1024 * 1024).map((_, index) => (index * 31) % 256);
    for (const [id, raw] of Object.entries({ all: ALL_BYTES, none: utf8(""), large })) {
      await written(engine, [insert(id, { raw })]);
      const row = await engine.get(TENANT, DECISIONS, id);
      assert.ok(row?.["raw"] instanceof Uint8Array);
      assert.ok(Buffer.from(row["raw"]).equals(raw), id);
    }
  });
  test("cells: text round trips whatever is in it, in rows and in the trail", async (harness) => {
    const { engine } = harness;
    for (const [index, text] of HARD_TEXTS.entries()) {
      const id = `t${index}`;
      const data = { text: text.toWellFormed(), nul: "a\u0000b" };
      await engine.commit(
        TENANT,
        change([insert(id, { diff_metadata: text, metadata: null })], [event(id, data)]),
      );
      const other = update(id, { diff_metadata: text }, { metadata: text });
      await written(engine, [other]);
      const row = await engine.get(TENANT, DECISIONS, id);
      assert.equal(row?.["diff_metadata"], text);
      assert.equal(row?.["metadata"], text);
    }
    const entries = (await soundTrail(engine)).filter((entry) => entry.data !== "{}");
    const texts = entries.map((entry) => JSON.parse(entry.data ?? "").text);
    assert.deepEqual(
      texts,
      HARD_TEXTS.map((text) => text.toWellFormed()),
    );
  });
});

/** Ids, closing, coming back, and sharing. */
export const engineLifeCases: readonly EngineCase[] = [
  ...cases<EngineHarness>((test) => {
    test("newId: ids are unique texts without surprises [S0-19]", async ({ engine }) => {
      const ids = Array.from({ length: 5_000 }, () => engine.newId());
      assert.equal(new Set(ids).size, 5_000);
      for (const id of ids) assert.match(id, /^[\w-]{1,64}$/);
    });
    test("newId: stays unique when the clock steps back", async ({ engine, clock }) => {
      const before = Array.from({ length: 100 }, () => engine.newId());
      clock.set(clock.now() - 10);
      const after = Array.from({ length: 100 }, () => engine.newId());
      assert.equal(new Set([...before, ...after]).size, 200);
    });
    test("close: what was asked for before is still answered, everything after is store_closed", async (harness) => {
      const { engine } = harness;
      const asked = together(10, (index) => written(engine, [insert(`id-${index}`)]));
      const closed = engine.close();
      assert.equal((await asked).length, 10);
      await closed;
      await refuses("store_closed", () => engine.commit(TENANT, change([insert("b")])), "commit");
      await refuses("store_closed", () => engine.get(TENANT, DECISIONS, "id-0"), "get");
      await refuses("store_closed", () => engine.find(TENANT, DECISIONS, { limit: 1 }), "find");
      await refuses(
        "store_closed",
        () => engine.entries(TENANT, { after: 0, limit: 1 }),
        "entries",
      );
      await refuses("store_closed", () => engine.head(TENANT), "head");
      await refuses("store_closed", () => engine.heads(), "heads");
    });
    test("close: twice is fine, one after the other and at once", async ({ engine, store }) => {
      await written(engine, [insert("a")]);
      await Promise.all([engine.close(), store.close()]);
      await engine.close();
      await store[Symbol.asyncDispose]();
    });
  }),
  ...casesFor<EngineHarness>("durable", (test) => {
    test("durable: what was acknowledged is there after closing and opening again", async (harness) => {
      const { engine } = harness;
      await together(20, (index) => written(engine, [insert(`id-${index}`)]));
      await written(engine, [update("id-3", {}, { state: "approved" })]);
      const rows = (await engine.find(TENANT, DECISIONS, { limit: 100 })).map(plain);
      const entries = await soundTrail(engine);
      await engine.close();
      const { engine: reopened } = await again(harness);
      const found = await reopened.find(TENANT, DECISIONS, { limit: 100 });
      assert.deepEqual(found.map(plain), rows);
      assert.deepEqual(await soundTrail(reopened), entries);
      await written(reopened, [insert("after")]);
      assert.equal((await soundTrail(reopened)).length, 22, "the chain goes on where it ended");
      const ids = [engine.newId(), reopened.newId()];
      assert.equal(new Set(ids).size, 2);
    });
  }),
  ...casesFor<EngineHarness>("manyProcesses", (test) => {
    test("many processes: two handles with 32 writers each make one linear chain without a fork [R26 I17]", async (harness) => {
      const engines = [harness.engine, (await again(harness)).engine];
      await together(64, async (index) => {
        const engine = engines[index % 2] ?? harness.engine;
        await written(engine, [insert(`${index}-0`)]);
        await written(engine, [insert(`${index}-1`)]);
      });
      for (const engine of engines) assert.equal((await soundTrail(engine)).length, 128);
    });
    test("many processes: three handles that write one by one, all the time, never trip over each other", async (harness) => {
      const [second, third] = [await again(harness), await again(harness)];
      const engines = [harness.engine, second.engine, third.engine];
      // Nothing is grouped here, so every single write meets those of the others.
      await together(3, async (index) => {
        const engine = engines[index] ?? harness.engine;
        for (let turn = 0; turn < 20; turn += 1)
          await written(engine, [insert(`${index}-${turn}`)]);
      });
      assert.equal((await soundTrail(third.engine)).length, 60);
    });
    test("many processes: of two handles that move one record exactly one wins, the other learns it", async (harness) => {
      const engines = [harness.engine, (await again(harness)).engine];
      await written(harness.engine, [insert("a", { state: "approved" })]);
      const results = await Promise.all(
        engines.map((engine, index) => {
          const set = { state: "executed", source_tool: `engine-${index}` };
          return engine.commit(TENANT, change([update("a", { state: "approved" }, set)]));
        }),
      );
      const winner = results.findIndex((result) => result.committed);
      const loser = results.find((result) => !result.committed);
      assert.ok(loser !== undefined && !loser.committed, "exactly one wins");
      assert.equal(loser.current?.["source_tool"], `engine-${winner}`);
      assert.equal((await soundTrail(harness.engine)).length, 2);
    });
    test("many processes: ids of two handles never meet", async (harness) => {
      const engines = [harness.engine, (await again(harness)).engine];
      const ids = engines.flatMap((engine) => Array.from({ length: 2_000 }, () => engine.newId()));
      assert.equal(new Set(ids).size, 4_000);
    });
  }),
];

function again(harness: EngineHarness): Promise<EngineHarness> {
  assert.ok(harness.again, "a store with this capability needs `again` in its harness");
  return harness.again();
}
