import assert from "node:assert/strict";
import { DECISIONS } from "../decision-rows.ts";
import type { EngineCase } from "./case.ts";
import { TENANT } from "./harness.ts";
import { change, event, insert, plain, remove, soundTrail, update, written } from "./rows.ts";
import { NOWHERE, refuses, together } from "./samples.ts";

/** Steps that take a record away. */
export const engineDeleteCases: readonly EngineCase[] = [
  {
    name: "delete: takes the record away and leaves behind the row as it was, for its event too",
    async run({ engine }) {
      const { rows: before } = await written(engine, [insert("a", { source_tool: "crm" })]);
      await written(engine, [insert("b")]);
      const plan = { ...event({ left: "id" }), facts: { tool: { left: "source_tool" } } };
      const result = await engine.commit(TENANT, change([remove("a")], [plan]));
      assert.ok(result.committed);
      assert.deepEqual(result.rows.map(plain), before.map(plain));
      assert.equal(await engine.get(TENANT, DECISIONS, "a"), undefined);
      const left = await engine.find(TENANT, DECISIONS, { limit: 10 });
      assert.deepEqual(
        left.map((row) => row["id"]),
        ["b"],
      );
      const bySession = { where: { session_id: "session-1" }, limit: 10 };
      assert.equal((await engine.find(TENANT, DECISIONS, bySession)).length, 1);
      const last = (await soundTrail(engine)).at(-1);
      assert.deepEqual([last?.subject, last?.data], ["a", '{"tool":"crm"}']);
    },
  },
  {
    name: "delete: a record that looks otherwise, or is not there, refuses the change and leaves everything",
    async run({ engine }) {
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
    },
  },
  {
    name: "delete: S0-104 what cannot be told is not deleted",
    async run({ engine }) {
      await written(engine, [insert("a")]);
      const untold = change([remove("a")], [event({ left: "no_such_column" })]);
      await refuses("invalid_input", () => engine.commit(TENANT, untold));
      assert.ok(await engine.get(TENANT, DECISIONS, "a"));
    },
  },
  {
    name: "delete: of many at once one succeeds, and the id is free again",
    async run({ engine }) {
      await written(engine, [insert("a")]);
      const all = await together(16, () => engine.commit(TENANT, change([remove("a")])));
      assert.equal(all.filter(({ committed }) => committed).length, 1);
      await written(engine, [insert("a", { state: "failed" })]);
      assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["state"], "failed");
    },
  },
  {
    name: "delete: never reaches another tenant",
    async run({ engine }) {
      await written(engine, [insert("a")], "globex");
      assert.equal((await engine.commit(TENANT, change([remove("a")]))).committed, false);
      assert.ok(await engine.get("globex", DECISIONS, "a"));
    },
  },
];
