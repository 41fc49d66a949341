import assert from "node:assert/strict";
import { DECISIONS } from "../decision-rows.ts";
import type { Conditions, Step } from "../engine.ts";
import type { EngineCase } from "./case.ts";
import { TENANT } from "./harness.ts";
import { change, insert, plain, soundTrail, update, written } from "./rows.ts";
import { NOWHERE } from "./samples.ts";

const require = (id: string, where: Conditions, absent: "holds" | "refuses" = "refuses"): Step => ({
  op: "require",
  table: DECISIONS,
  id,
  where,
  absent,
});

/** Steps that look at a record and change nothing. */
export const engineRequireCases: readonly EngineCase[] = [
  {
    name: "require: a record that looks as required lets the change through and stays as it is",
    async run({ engine }) {
      await written(engine, [insert("switch", { source_tool: "off" })]);
      const before = plain(await engine.get(TENANT, DECISIONS, "switch"));
      const { rows } = await written(engine, [
        require("switch", { source_tool: "off" }),
        insert("a"),
      ]);
      assert.deepEqual(plain(rows[0]), before);
      assert.deepEqual(plain(await engine.get(TENANT, DECISIONS, "switch")), before);
      assert.ok(await engine.get(TENANT, DECISIONS, "a"));
    },
  },
  {
    name: "require: a record that looks otherwise refuses the change, with what is there",
    async run({ engine }) {
      await written(engine, [insert("switch", { source_tool: "on" })]);
      const steps = [require("switch", { source_tool: "off" }), insert("a")];
      const result = await engine.commit(TENANT, change(steps));
      assert.ok(!result.committed);
      assert.deepEqual([result.step, result.current?.["source_tool"]], [0, "on"]);
      assert.equal(await engine.get(TENANT, DECISIONS, "a"), undefined);
      assert.equal((await soundTrail(engine)).length, 1);
    },
  },
  {
    name: "require: a missing record refuses or holds, as the step says",
    async run({ engine }) {
      const refused = await engine.commit(
        TENANT,
        change([require(NOWHERE, { source_tool: "off" }), insert("a")]),
      );
      assert.deepEqual(
        [refused.committed, await engine.get(TENANT, DECISIONS, "a")],
        [false, undefined],
      );
      const { rows } = await written(engine, [
        require(NOWHERE, { source_tool: "off" }, "holds"),
        insert("a"),
      ]);
      assert.deepEqual(rows[0], {});
    },
  },
  {
    name: "require: a refusal after a write takes the write back, also in company",
    async run({ engine }) {
      await written(engine, [insert("a"), insert("switch", { source_tool: "on" })]);
      const spoiled = change([
        update("a", {}, { source_tool: "changed" }),
        require("switch", { source_tool: "off" }),
      ]);
      const results = await Promise.all([
        engine.commit(TENANT, spoiled),
        engine.commit(TENANT, change([insert("b")])),
        engine.commit(TENANT, change([insert("c")])),
      ]);
      assert.deepEqual(
        results.map(({ committed }) => committed),
        [false, true, true],
      );
      assert.notEqual((await engine.get(TENANT, DECISIONS, "a"))?.["source_tool"], "changed");
    },
  },
  {
    name: "require: T38 I30 once a switch is thrown and acknowledged, nothing that requires it passes",
    async run({ engine }) {
      await written(engine, [insert("switch", { source_tool: "off" })]);
      let thrownAt = Number.POSITIVE_INFINITY;
      const late: number[] = [];
      const calls = Array.from({ length: 60 }, async (_, n) => {
        if (n === 30) {
          const off = { source_tool: "on" };
          const { seq } = await written(engine, [update("switch", {}, off)]);
          thrownAt = seq;
          return;
        }
        if (n > 30) await engine.now();
        const steps = [require("switch", { source_tool: "off" }), insert(`call-${n}`)];
        const result = await engine.commit(TENANT, change(steps));
        if (result.committed) late.push(result.seq);
      });
      await Promise.all(calls);
      assert.ok(late.length > 0, "some calls came before the switch");
      assert.ok(
        late.every((seq) => seq < thrownAt),
        "none came after it",
      );
      const after = [require("switch", { source_tool: "off" }), insert("after")];
      assert.equal((await engine.commit(TENANT, change(after))).committed, false);
    },
  },
];
