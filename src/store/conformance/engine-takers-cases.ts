import assert from "node:assert/strict";
import { DECISIONS } from "../decision-rows.ts";
import type { Change, ChangeResult, Engine, Row, Step } from "../engine.ts";
import type { EngineCase } from "./case.ts";
import { TENANT } from "./harness.ts";
import { change, event, insert, remove, soundTrail, take, update } from "./rows.ts";
import { together } from "./samples.ts";

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
  {
    name: "takers: however many take at once, no row is shared, none is left, and each is told who has it",
    async run({ engine }) {
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
    },
  },
  {
    name: "takers: of two handles on the same data none takes what the other has",
    needs: "manyProcesses",
    async run({ engine, again }) {
      assert.ok(again, "a second handle");
      await insertMany(engine, 30);
      const other = (await again()).engine;
      const all = await together(20, (n) =>
        (n % 2 === 0 ? engine : other).commit(TENANT, claim(`worker-${n}`, 2)),
      );
      const rows = all.flatMap(rowsOf);
      assert.deepEqual([rows.length, new Set(rows.map((row) => row["id"])).size], [30, 30]);
      await soundTrail(engine);
    },
  },
  {
    name: "takers: beside inserts, moves and deletes of the same rows, the trail tells it as it happened",
    async run({ engine }) {
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
    },
  },
  {
    name: "takers: that look for different things at once get what they look for",
    async run({ engine }) {
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
    },
  },
];
