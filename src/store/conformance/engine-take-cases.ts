import assert from "node:assert/strict";
import { DECISIONS } from "../../model/decision.ts";
import {
  type Change,
  type ChangeResult,
  type Engine,
  NOW,
  type Row,
  type SortOrder,
  type Step,
  type Values,
} from "../engine.ts";
import { cases, casesFor, type EngineCase, type EngineHarness, TENANT } from "./case.ts";
import {
  change,
  event,
  ids,
  insert,
  plain,
  refuses,
  remove,
  START,
  soundTrail,
  take,
  together,
  update,
  utf8,
} from "./samples.ts";

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
export const engineTakeCases = cases<EngineHarness>((test) => {
  test("take: changes the best rows alike, at most as many as asked for, and hands them out best first", async (harness) => {
    const { engine } = harness;
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
  });
  test("take: is refused when there is nothing to take, and tells nothing", async ({ engine }) => {
    await insertAll(engine, { a: {} });
    const step = take({ where: { state: "approved" }, set: { state: "executed" } });
    const result = await engine.commit(TENANT, change([step]));
    assert.deepEqual(result, { committed: false, step: 0, current: undefined });
    assert.equal((await soundTrail(engine)).length, 1);
  });
  test("take: orders by several columns, up and down, nothing first, text by its bytes", async (harness) => {
    const { engine } = harness;
    await insertAll(engine, {
      z: { source_tool: "b", metadata: "Z", raw: utf8("1") },
      nothing: { source_tool: "a", metadata: null, raw: utf8("3") },
      a: { source_tool: "b", metadata: "a", raw: utf8("2") },
      umlaut: { source_tool: "b", metadata: "ä", raw: utf8("0") },
      face: { source_tool: "a", metadata: "\u{1f600}", raw: utf8("4") },
      wide: { source_tool: "a", metadata: "\uff5e", raw: utf8("5") },
    });
    const orders: [SortOrder, string[]][] = [
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
  });
  test("take: a lease that ran out by the store's clock can be taken again, not before", async (harness) => {
    const { engine, clock } = harness;
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
  });
  test("take: an event is told for each row, in order, or once about the best", async (harness) => {
    const { engine } = harness;
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
  });
  test("take: what cannot be told is not taken [S0-104]", async ({ engine }) => {
    await insertAll(engine, { a: {} });
    const untold = change([take({ set: { state: "failed" } })], [event({ left: "no_such" })]);
    await refuses("invalid_input", () => engine.commit(TENANT, untold));
    assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["state"], "pending_tech");
    assert.equal((await soundTrail(engine)).length, 1);
  });
  test("take: that is not alone, or has no sensible limit, is invalid_input", async (harness) => {
    const { engine } = harness;
    await insertAll(engine, { a: {} });
    const set = { state: "failed" };
    const wrong = [
      [take({ set }), insert("b")],
      [insert("b"), take({ set })],
      ...[0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map((limit) => [take({ set, limit })]),
    ];
    for (const steps of wrong) {
      await refuses("invalid_input", () => engine.commit(TENANT, change(steps)));
    }
    assert.equal((await engine.get(TENANT, DECISIONS, "a"))?.["state"], "pending_tech");
    assert.equal(await engine.get(TENANT, DECISIONS, "b"), undefined);
  });
  test("take: never reaches another tenant", async ({ engine }) => {
    await engine.commit("globex", change([insert("a")]));
    assert.deepEqual(await taken(engine, take({ set: { state: "failed" } })), []);
    assert.equal((await engine.get("globex", DECISIONS, "a"))?.["state"], "pending_tech");
  });
});

const FREE = { state: "approved" };

async function insertMany(engine: Engine, count: number): Promise<void> {
  await together(count, (index) =>
    engine.commit(TENANT, told(insert(`row-${index}`, { ...FREE, created_at: index }))),
  );
}

function claim(who: string, limit = 1) {
  const order = [{ column: "created_at" }];
  return change([take({ where: FREE, order, limit, set: { state: "executed", metadata: who } })]);
}

function told(step: Step): Change {
  return change([step], [{ ...event({ left: "id" }), type: `case.${step.op}` }]);
}

function rowsOf(result: ChangeResult): readonly Row[] {
  return result.committed ? result.rows : [];
}

/** Takes at the same time, among themselves and beside other changes. */
export const engineTakersCases: readonly EngineCase[] = [
  ...cases<EngineHarness>((test) => {
    test("takers: however many take at once, no row is shared, none is left, and each is told who has it", async (harness) => {
      const { engine } = harness;
      await insertMany(engine, 40);
      const all = await together(24, (n) =>
        engine.commit(TENANT, claim(`worker-${n}`, 1 + (n % 3))),
      );
      const rows = all.flatMap(rowsOf);
      assert.equal(rows.length, 40);
      assert.equal(new Set(rows.map((row) => row["id"])).size, 40);
      for (const [n, result] of all.entries()) {
        const own = rowsOf(result);
        assert.ok(own.length <= 1 + (n % 3));
        for (const row of own) {
          const stored = await engine.get(TENANT, DECISIONS, String(row["id"]));
          assert.deepEqual([stored?.["metadata"], row["metadata"]], [`worker-${n}`, `worker-${n}`]);
        }
        const numbers = own.map((row) => Number(row["created_at"]));
        assert.deepEqual(
          numbers,
          numbers.toSorted((a, b) => a - b),
          "best first for each",
        );
      }
      assert.equal((await soundTrail(engine)).length, 80, "one entry for each row that was taken");
    });
  }),
  ...casesFor<EngineHarness>("manyProcesses", (test) => {
    test("takers: of two handles on the same data none takes what the other has", async (harness) => {
      const { engine, again } = harness;
      assert.ok(again, "a second handle");
      await insertMany(engine, 30);
      const other = (await again()).engine;
      const all = await together(20, (n) =>
        (n % 2 === 0 ? engine : other).commit(TENANT, claim(`worker-${n}`, 2)),
      );
      const rows = all.flatMap(rowsOf);
      assert.deepEqual([rows.length, new Set(rows.map((row) => row["id"])).size], [30, 30]);
      await soundTrail(engine);
    });
  }),
  ...cases<EngineHarness>((test) => {
    test("takers: beside inserts, moves and deletes of the same rows, the trail tells it as it happened", async (harness) => {
      const { engine } = harness;
      await insertMany(engine, 30);
      const steps = (n: number): Step => {
        if (n % 5 === 0) return insert(`row-${n + 30}`, { ...FREE, created_at: -n });
        const id = `row-${n % 30}`;
        return n % 2 === 0 ? remove(id, FREE) : update(id, FREE, { state: "failed" });
      };
      await together(90, (n) =>
        engine.commit(TENANT, n % 3 === 0 ? claim(`worker-${n}`) : told(steps(n))),
      );
      const seen = new Map<string, string[]>();
      for (const { subject, type } of await soundTrail(engine)) {
        seen.set(subject, [...(seen.get(subject) ?? []), type]);
      }
      for (const [id, [made, ...ends]] of seen) {
        assert.equal(made, "case.insert", `${id} is there before anything else happens to it`);
        assert.ok(ends.length <= 1, `${id} was free only once`);
      }
    });
    test("takers: that look for different things at once get what they look for", async (harness) => {
      const { engine } = harness;
      await insertMany(engine, 6);
      const claims = ["approved", "executed", "approved", "executed"].map((state, n) => {
        const set = { state: state === "approved" ? "executed" : "failed", metadata: `w${n}` };
        return engine.commit(TENANT, change([take({ where: { state }, limit: 2, set })]));
      });
      await Promise.all(claims);
      // Whichever came first, the trail and the rows agree: a row is moved once per entry.
      const moves = (await soundTrail(engine)).slice(6).map(({ subject }) => subject);
      const rows = await engine.find(TENANT, DECISIONS, { limit: 10 });
      for (const row of rows) {
        const moved = { approved: 0, executed: 1, failed: 2 }[String(row["state"])];
        assert.equal(moves.filter((id) => id === row["id"]).length, moved, String(row["id"]));
      }
    });
  }),
];
