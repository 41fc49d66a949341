// Mistakes that a fault review planted and that no test noticed; each has a line in proof/planted/store-faults-bugs.ts.

import { expect, test } from "vitest";
import { followTrail } from "../../src/audit/trail.ts";
import { makeTrail, readerOf } from "../audit/fixtures.ts";
import { createGated, faultyStore } from "../gate/lost-outcomes-world.ts";
import { bearer, openHttp, raw } from "../http/http-world.ts";

test("keys that are equal only after Unicode normalisation are two keys [B10]", async () => {
  const { session, effects } = createGated({ kind: "plain" });
  const pay = (key: string) =>
    session.call({ callId: `c-${key.length}`, key, tool: "bank.pay", input: { cents: 5 } });
  const [composed, decomposed] = ["caf\u00e9", "cafe\u0301"];
  expect((await pay(composed)).answer).toBe("done");
  expect((await pay(decomposed)).answer).toBe("done");
  expect(effects).toHaveLength(2);
});

test("a recovery names what a failure of the store left behind [B08]", async () => {
  const faults = faultyStore();
  const { session, gate } = createGated({ kind: "plain", faults, leaseMs: 50 });
  faults.failNext("operation.succeeded", 1_000);
  const { answer } = await session.call({ callId: "c", tool: "bank.pay", input: { cents: 5 } });
  expect(answer).toBe("unknown");
  await new Promise((resolve) => setTimeout(resolve, 60));
  faults.failNext("operation.taken_over", 1_000);
  const { left, operations } = await gate.recover();
  expect(operations).toEqual([]);
  expect(left).toMatchObject([{ id: expect.any(String), reason: expect.any(String) }]);
});

test("a feed notices entries that were rewritten between two pages [B14]", async () => {
  const [before, after] = [makeTrail("a", 4), makeTrail("a", 8)];
  const rewritten = after.map((entry, index) =>
    index === 4 ? { ...entry, prev: "0".repeat(64) } : entry,
  );
  const reader = readerOf("a", [...before, ...rewritten.slice(4)]);
  const stop = new AbortController();
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { seq } of followTrail(reader, {
      after: 0,
      signal: stop.signal,
      pageSize: 4,
    })) {
      seen.push(seq);
    }
  })();
  // A feed that has noticed nothing waits for the next entry for ever.
  const giveUp = setTimeout(() => stop.abort(), 10_000);
  await expect(reading).rejects.toMatchObject({ code: "damaged_record" });
  clearTimeout(giveUp);
  expect(seen).toEqual([1, 2, 3, 4]);
});

test("a conflict that asks to look again is kept for its idempotency key [B12]", async () => {
  const world = await openHttp();
  const operator = await world.client("acme", "operator");
  const task = await operator.tasks.add({ subject: "one" });
  const holder = await world.client("acme", "agent", "agent:first");
  const { fence } = await holder.tasks.claim({ id: task.id });
  const token = await world.token("acme", "agent", "agent:second");
  const claim = () =>
    raw(`${world.server.url}/v1/tasks/${task.id}/claim`, {
      method: "POST",
      headers: { ...bearer(token), "idempotency-key": "k-1" },
      body: JSON.stringify({}),
    });
  const first = await claim();
  expect(first.status).toBe(409);
  expect(JSON.parse(first.text)).toMatchObject({ retry: "after_reread" });
  await holder.tasks.release({ id: task.id, fence });
  const again = await claim();
  expect(again.status).toBe(409);
  expect(again.headers["idempotency-replayed"]).toBe("true");
});
