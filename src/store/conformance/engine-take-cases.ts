import assert from "node:assert/strict";
import { DECISIONS } from "../decision-rows.ts";
import { type Engine, NOW, type Order, type Row, type Step, type Values } from "../engine.ts";
import type { EngineCase } from "./case.ts";
import { TENANT } from "./harness.ts";
import { change, event, insert, plain, soundTrail, take } from "./rows.ts";
import { bytes, refuses, START } from "./samples.ts";

const ids = (rows: readonly Row[]) => rows.map((row) => row["id"]);

async function insertAll(engine: Engine, rows: Readonly<Record<string, Values>>): Promise<void> {
  for (const [id, row] of Object.entries(rows)) {
    await engine.commit(TENANT, change([insert(id, row)]));
  }
}

async function taken(engine: Engine, step: Step): Promise<readonly Row[]> {
  const result = await engine.commit(TENANT, change([step]));
  return result.committed ? result.rows : [];
}

/** Many who look for work at once. */
export const engineTakeCases: readonly EngineCase[] = [
  {
    name: "take: changes the best rows alike, at most as many as asked for, and hands them out best first",
    async run({ engine }) {
      const times = { a: 3, b: 1, c: 2, d: 1, e: 9 };
      for (const [id, created_at] of Object.entries(times)) {
        await insertAll(engine, {
          [id]: { created_at, state: id === "e" ? "failed" : "approved" },
        });
      }
      const step = take({
        where: { state: "approved" },
        order: [{ column: "created_at" }],
        limit: 3,
        set: { state: "executed", created_at: { plus: 100 }, updated_at: { nowPlusMs: 5 } },
      });
      const rows = await taken(engine, step);
      assert.deepEqual(ids(rows), ["b", "d", "c"], "by the value before, of equals the older one");
      for (const row of rows) {
        assert.deepEqual([row["state"], row["updated_at"]], ["executed", START + 5]);
        assert.deepEqual(plain(row), plain(await engine.get(TENANT, DECISIONS, String(row["id"]))));
      }
      assert.deepEqual(
        rows.map((row) => row["created_at"]),
        [101, 101, 102],
      );
      assert.deepEqual(ids(await taken(engine, step)), ["a"], "fewer when there are fewer");
      assert.deepEqual(await taken(engine, step), []);
      assert.equal((await engine.get(TENANT, DECISIONS, "e"))?.["state"], "failed");
    },
  },
  {
    name: "take: is refused when there is nothing to take, and tells nothing",
    async run({ engine }) {
      await insertAll(engine, { a: {} });
      const step = take({ where: { state: "approved" }, set: { state: "executed" } });
      const result = await engine.commit(TENANT, change([step]));
      assert.deepEqual(result, { committed: false, step: 0, current: undefined });
      assert.equal((await soundTrail(engine)).length, 1);
    },
  },
  {
    name: "take: orders by several columns, up and down, nothing first, text by its bytes",
    async run({ engine }) {
      await insertAll(engine, {
        z: { source_tool: "b", metadata: "Z", raw: bytes("1") },
        nothing: { source_tool: "a", metadata: null, raw: bytes("3") },
        a: { source_tool: "b", metadata: "a", raw: bytes("2") },
        umlaut: { source_tool: "b", metadata: "ä", raw: bytes("0") },
        face: { source_tool: "a", metadata: "\u{1f600}", raw: bytes("4") },
        wide: { source_tool: "a", metadata: "\uff5e", raw: bytes("5") },
      });
      const orders: [Order, string[]][] = [
        [[{ column: "metadata" }], ["nothing", "z", "a", "umlaut", "wide", "face"]],
        [[{ column: "metadata", down: true }], ["face", "wide", "umlaut", "a", "z", "nothing"]],
        [
          [{ column: "source_tool", down: true }, { column: "metadata" }],
          ["z", "a", "umlaut", "nothing", "wide", "face"],
        ],
        [[{ column: "raw" }], ["umlaut", "z", "a", "nothing", "face", "wide"]],
        [[{ column: "source_tool" }], ["nothing", "face", "wide", "z", "a", "umlaut"]],
        [[], ["z", "nothing", "a", "umlaut", "face", "wide"]],
      ];
      for (const [order, expected] of orders) {
        const rows = await taken(engine, take({ order, limit: 10, set: { state: "failed" } }));
        assert.deepEqual(ids(rows), expected);
        for (const [index, id] of expected.entries()) {
          const best = take({ order, limit: index + 1, set: { state: "failed" } });
          assert.equal((await taken(engine, best)).at(-1)?.["id"], id);
        }
      }
    },
  },
  {
    name: "take: a lease that ran out by the store's clock can be taken again, not before",
    async run({ engine, clock }) {
      await insertAll(engine, { a: { updated_at: NOW } });
      const claim = take({
        where: { updated_at: { atMost: NOW } },
        set: { updated_at: { nowPlusMs: 1_000 }, created_at: { plus: 1 } },
      });
      const [first] = await taken(engine, claim);
      assert.deepEqual(await taken(engine, claim), []);
      clock.advance(999);
      assert.deepEqual(await taken(engine, claim), []);
      clock.advance(1);
      const [second] = await taken(engine, claim);
      assert.equal(Number(second?.["created_at"]), Number(first?.["created_at"]) + 1);
      assert.equal(second?.["updated_at"], START + 2_000);
    },
  },
  {
    name: "take: an event is told for each row, in order, or once about the best",
    async run({ engine }) {
      await insertAll(engine, { a: { created_at: 1 }, b: { created_at: 2 }, c: { created_at: 3 } });
      const step = take({ order: [{ column: "created_at", down: true }], limit: 2 });
      const facts = { number: { left: "created_at" } };
      const plan = { ...event({ left: "id" }), session: { left: "session_id" }, facts };
      await engine.commit(TENANT, change([step], [{ ...plan, each: true }]));
      const result = await engine.commit(TENANT, change([step], [plan]));
      assert.ok(result.committed);
      const told = (await soundTrail(engine)).slice(3);
      assert.equal(result.seq, 6);
      assert.deepEqual(
        told.map(({ subject, session, data }) => [subject, session, data]),
        [
          ["c", "session-1", '{"number":3}'],
          ["b", "session-1", '{"number":2}'],
          ["c", "session-1", '{"number":3}'],
        ],
      );
    },
  },
  {
    name: "take: S0-104 what cannot be told is not taken",
    async run({ engine }) {
      await insertAll(engine, { a: {} });
      const untold = change([take({ set: { state: "failed" } })], [event({ left: "no_such" })]);
      await refuses("invalid_input", () => engine.commit(TENANT, untold));
      assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["state"], "pending_tech");
      assert.equal((await soundTrail(engine)).length, 1);
    },
  },
  {
    name: "take: that is not alone, or has no sensible limit, is invalid_input",
    async run({ engine }) {
      await insertAll(engine, { a: {} });
      const set = { state: "failed" };
      const wrong = [
        [take({ set }), insert("b")],
        [insert("b"), take({ set })],
        ...[0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map((limit) => [
          take({ set, limit }),
        ]),
      ];
      for (const steps of wrong) {
        await refuses("invalid_input", () => engine.commit(TENANT, change(steps)));
      }
      assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["state"], "pending_tech");
      assert.equal(await engine.get(TENANT, DECISIONS, "b"), undefined);
    },
  },
  {
    name: "take: never reaches another tenant",
    async run({ engine }) {
      await engine.commit("globex", change([insert("a")]));
      assert.deepEqual(await taken(engine, take({ set: { state: "failed" } })), []);
      assert.equal((await engine.get("globex", DECISIONS, "a"))?.["state"], "pending_tech");
    },
  },
];
