import assert from "node:assert/strict";
import { DECISIONS } from "../../model/decision.ts";
import type { Conditions, Engine, Step } from "../engine.ts";
import { cases, type EngineCase, type EngineHarness, TENANT } from "./case.ts";
import {
  change,
  committed,
  insert,
  NOWHERE,
  plain,
  remove,
  START,
  soundTrail,
  take,
  update,
  utf8,
  written,
} from "./samples.ts";

const AGO = START - 60_000;
type Test = readonly [what: string, where: Conditions, holds: boolean];
/** Each test is asked of a query, an update, a take and a delete: all must agree. */
const TESTS: Readonly<Record<string, readonly Test[]>> = {
  "text and numbers by equality": [
    ["no condition", {}, true],
    ["equal text", { state: "approved" }, true],
    ["other text", { state: "Approved" }, false],
    ["equal number", { updated_at: AGO }, true],
    ["other number", { updated_at: AGO + 1 }, false],
  ],
  "bytes by equality": [
    ["equal bytes", { raw: utf8("payload") }, true],
    ["other bytes", { raw: utf8("payloa") }, false],
  ],
  null: [
    ["null where null is", { metadata: null }, true],
    ["null where text is", { tech_verdict: null }, false],
    ["text where null is", { metadata: "{}" }, false],
    ["empty text where null is", { metadata: "" }, false],
  ],
  "bounds, inclusive": [
    ["at least, one below", { updated_at: { atLeast: AGO - 1 } }, true],
    ["at least, exactly", { updated_at: { atLeast: AGO } }, true],
    ["at least, one above", { updated_at: { atLeast: AGO + 1 } }, false],
    ["at most, one above", { updated_at: { atMost: AGO + 1 } }, true],
    ["at most, exactly", { updated_at: { atMost: AGO } }, true],
    ["at most, one below", { updated_at: { atMost: AGO - 1 } }, false],
  ],
  "bounds relative to now, inclusive": [
    ["at least a minute ago, inclusive", { updated_at: { atMost: { nowPlusMs: -60_000 } } }, true],
    ["at least a minute and 1 ms ago", { updated_at: { atMost: { nowPlusMs: -60_001 } } }, false],
    ["not before a minute ago", { updated_at: { atLeast: { nowPlusMs: -60_000 } } }, true],
    ["later than a minute ago", { updated_at: { atLeast: { nowPlusMs: -59_999 } } }, false],
    ["in the future", { updated_at: { atLeast: { nowPlusMs: 0 } } }, false],
  ],
  "one of a list": [
    ["one of several", { state: { oneOf: ["failed", "approved"] } }, true],
    ["one of others", { state: { oneOf: ["failed", "executed"] } }, false],
    ["one of none", { state: { oneOf: [] } }, false],
    ["one of, where null is", { metadata: { oneOf: ["", "null"] } }, false],
  ],
  "several at once": [
    ["two that hold", { state: "approved", updated_at: { atMost: AGO } }, true],
    ["two of which one holds", { state: "approved", session_id: "session-2" }, false],
  ],
};

async function setUp(engine: Engine): Promise<void> {
  const row = { state: "approved", tech_verdict: "{}", created_at: AGO, updated_at: AGO };
  await written(engine, [insert("a", row)]);
}

/** What the conditions of a change and of a query mean. */
export const engineConditionCases: readonly EngineCase[] = [
  ...Object.entries(TESTS).map(
    ([kind, tests]): EngineCase => ({
      name: `conditions: ${kind}, in queries, updates, takes and deletes alike`,
      async run(harness) {
        await setUp(harness.engine);
        for (const test of tests) await assertMeans(harness, test);
      },
    }),
  ),
  ...cases<EngineHarness>((test) => {
    test("conditions: of two that ask for the same value and change it, the second is refused", async (harness) => {
      const { engine } = harness;
      await setUp(engine);
      const move = (tool: string) =>
        engine.commit(
          TENANT,
          change([update("a", { state: "approved" }, { state: "executed", source_tool: tool })]),
        );
      const [first, second] = await Promise.all([move("one"), move("two")]);
      assert.ok(first?.committed, "the one who asked first");
      assert.ok(!second?.committed);
      assert.equal(second.current?.["source_tool"], "one", "the loser learns who was first");
    });
    test("conditions: a fence that counts up is checked and moved in one write", async (harness) => {
      const { engine } = harness;
      await written(engine, [insert("a", { created_at: 4 })]);
      const claim = (fence: number) =>
        engine.commit(
          TENANT,
          change([update("a", { created_at: fence }, { created_at: { plus: 1 } })]),
        );
      const results = await Promise.all([claim(4), claim(4), claim(5)]);
      assert.deepEqual(committed(results), [true, false, true]);
      assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["created_at"], 6);
    });
  }),
];

async function assertMeans({ engine }: EngineHarness, [what, where, holds]: Test): Promise<void> {
  const before = plain(await engine.get(TENANT, DECISIONS, "a"));
  const found = await engine.find(TENANT, DECISIONS, { where, limit: 10 });
  assert.equal(found.length, holds ? 1 : 0, `${what}, as a query`);
  const source_tool = `was moved by ${what}`;
  const result = await engine.commit(TENANT, change([update("a", where, { source_tool })]));
  assert.equal(result.committed, holds, `${what}, as the condition of an update`);
  const after = plain(await engine.get(TENANT, DECISIONS, "a"));
  assert.deepEqual(after, holds ? { ...before, source_tool } : before, what);
  if (!result.committed) assert.deepEqual(plain(result.current), before, what);
  const taken = await engine.commit(TENANT, change([take({ where, set: { source_tool: "t" } })]));
  assert.equal(taken.committed, holds, `${what}, as the condition of a take`);
  const deleted = await engine.commit(TENANT, change([remove("a", where)]));
  assert.equal(deleted.committed, holds, `${what}, as the condition of a delete`);
  if (deleted.committed) await setUp(engine);
}

const require = (id: string, where: Conditions, absent: "holds" | "refuses" = "refuses"): Step => ({
  op: "require",
  table: DECISIONS,
  id,
  where,
  absent,
});

/** Steps that look at a record and change nothing. */
export const engineRequireCases = cases<EngineHarness>((test) => {
  test("require: a record that looks as required lets the change through and stays as it is", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("switch", { source_tool: "off" })]);
    const before = plain(await engine.get(TENANT, DECISIONS, "switch"));
    const { rows } = await written(engine, [
      require("switch", { source_tool: "off" }),
      insert("a"),
    ]);
    assert.deepEqual(plain(rows[0]), before);
    assert.deepEqual(plain(await engine.get(TENANT, DECISIONS, "switch")), before);
    assert.ok(await engine.get(TENANT, DECISIONS, "a"));
  });
  test("require: a record that looks otherwise refuses the change, with what is there", async (harness) => {
    const { engine } = harness;
    await written(engine, [insert("switch", { source_tool: "on" })]);
    const steps = [require("switch", { source_tool: "off" }), insert("a")];
    const result = await engine.commit(TENANT, change(steps));
    assert.ok(!result.committed);
    assert.deepEqual([result.step, result.current?.["source_tool"]], [0, "on"]);
    assert.equal(await engine.get(TENANT, DECISIONS, "a"), undefined);
    assert.equal((await soundTrail(engine)).length, 1);
  });
  test("require: a missing record refuses or holds, as the step says", async ({ engine }) => {
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
  });
  test("require: a refusal after a write takes the write back, also in company", async (harness) => {
    const { engine } = harness;
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
    assert.deepEqual(committed(results), [false, true, true]);
    assert.notEqual((await engine.get(TENANT, DECISIONS, "a"))?.["source_tool"], "changed");
  });
  test("require: once a switch is thrown and acknowledged, nothing that requires it passes [I30 T38]", async (harness) => {
    const { engine } = harness;
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
  });
});
