import assert from "node:assert/strict";
import { DECISIONS } from "../decision-rows.ts";
import type { EngineCase, EngineHarness } from "./case.ts";
import { TENANT } from "./harness.ts";
import { change, insert, plain, soundTrail, update, written } from "./rows.ts";
import { refuses, together } from "./samples.ts";

/** Ids, closing, coming back, and sharing. */
export const engineLifeCases: readonly EngineCase[] = [
  {
    name: "newId: S0-19 ids are unique texts without surprises",
    async run({ engine }) {
      const ids = Array.from({ length: 5_000 }, () => engine.newId());
      assert.equal(new Set(ids).size, 5_000);
      for (const id of ids) assert.match(id, /^[\w-]{1,64}$/);
    },
  },
  {
    name: "newId: stays unique when the clock steps back",
    async run({ engine, clock }) {
      const before = Array.from({ length: 100 }, () => engine.newId());
      clock.set(clock.now() - 10);
      const after = Array.from({ length: 100 }, () => engine.newId());
      assert.equal(new Set([...before, ...after]).size, 200);
    },
  },
  {
    name: "close: what was asked for before is still answered, everything after is store_closed",
    async run({ engine }) {
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
    },
  },
  {
    name: "close: twice is fine, one after the other and at once",
    async run({ engine, store }) {
      await written(engine, [insert("a")]);
      await Promise.all([engine.close(), store.close()]);
      await engine.close();
      await store[Symbol.asyncDispose]();
    },
  },
  {
    name: "durable: what was acknowledged is there after closing and opening again",
    needs: "durable",
    async run(harness) {
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
    },
  },
  {
    name: "many processes: R26 two handles with 32 writers each make one linear chain, I17 no fork",
    needs: "manyProcesses",
    async run(harness) {
      const engines = [harness.engine, (await again(harness)).engine];
      await together(64, async (index) => {
        const engine = engines[index % 2] ?? harness.engine;
        await written(engine, [insert(`${index}-0`)]);
        await written(engine, [insert(`${index}-1`)]);
      });
      for (const engine of engines) assert.equal((await soundTrail(engine)).length, 128);
    },
  },
  {
    name: "many processes: three handles that write one by one, all the time, never trip over each other",
    needs: "manyProcesses",
    async run(harness) {
      const [second, third] = [await again(harness), await again(harness)];
      const engines = [harness.engine, second.engine, third.engine];
      // Nothing is grouped here, so every single write meets those of the others.
      await together(3, async (index) => {
        const engine = engines[index] ?? harness.engine;
        for (let turn = 0; turn < 20; turn += 1)
          await written(engine, [insert(`${index}-${turn}`)]);
      });
      assert.equal((await soundTrail(third.engine)).length, 60);
    },
  },
  {
    name: "many processes: of two handles that move one record exactly one wins, the other learns it",
    needs: "manyProcesses",
    async run(harness) {
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
    },
  },
  {
    name: "many processes: ids of two handles never meet",
    needs: "manyProcesses",
    async run(harness) {
      const engines = [harness.engine, (await again(harness)).engine];
      const ids = engines.flatMap((engine) => Array.from({ length: 2_000 }, () => engine.newId()));
      assert.equal(new Set(ids).size, 4_000);
    },
  },
];

function again(harness: EngineHarness): Promise<EngineHarness> {
  assert.ok(harness.again, "a store with this capability needs `again` in its harness");
  return harness.again();
}
