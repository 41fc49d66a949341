import { expect, onTestFinished, test } from "vitest";
import type { AuditEntry } from "../model/audit-entry.ts";
import { memoryStore } from "../store/memory/index.ts";
import { systemTimers } from "../util/timers.ts";
import { createFeeds } from "./feeds.ts";

const BY = { actor: "test" };
/** More than any test writes. */
const MOST = 20_000;

function numbers({ value }: IteratorResult<readonly AuditEntry[], unknown>): readonly number[] {
  return (value as readonly AuditEntry[]).map(({ seq }) => seq);
}

function opened() {
  const store = memoryStore();
  const feeds = createFeeds(store, systemTimers);
  onTestFinished(() => feeds.close());
  const write = (count: number, tenant = "acme") =>
    Promise.all(Array.from({ length: count }, () => store.tenant(tenant).killSwitch.stop("x", BY)));
  const turn = () => new Promise((resolve) => setTimeout(resolve, 1));
  /** Everything that one listener is given, until it has seen `until`. */
  async function listen(after: number, until: () => number, tenant = "acme"): Promise<number[]> {
    const stop = new AbortController();
    const seen: number[] = [];
    for await (const page of feeds.pages(tenant, { after, signal: stop.signal, heartbeatMs: 50 })) {
      seen.push(...page.map(({ seq }) => seq));
      if (seen.length > MOST) throw new Error("the same entries come again and again");
      if ((seen.at(-1) ?? after) >= until()) stop.abort();
    }
    return seen;
  }
  return { store, feeds, write, turn, listen };
}

test("feed: twenty listeners from different positions each get every entry once and in order", async () => {
  const { write, turn, listen, feeds } = opened();
  await write(30);
  let end = Number.POSITIVE_INFINITY;
  const starts = Array.from({ length: 20 }, (_, n) => n);
  const listening = starts.map((after) => listen(after, () => end));
  for (let i = 0; i < 40; i += 1) {
    await write(i % 7);
    await turn();
  }
  end = 30 + Array.from({ length: 40 }, (_, i) => i % 7).reduce((a, b) => a + b, 0);
  await write(1);
  for (const [after, seen] of (await Promise.all(listening)).entries()) {
    expect(seen).toEqual(seen.map((_, index) => after + 1 + index));
    expect(seen.at(-1)).toBeGreaterThanOrEqual(end);
  }
  expect(feeds.listeners).toBe(0);
});

test("feed: a listener that fell far behind continues from the store without a gap", async () => {
  const { write, listen, turn, feeds } = opened();
  await write(1);
  const stop = new AbortController();
  const slow = feeds.pages("acme", { after: 0, signal: stop.signal, heartbeatMs: 50 });
  expect(numbers(await slow.next())).toEqual([1]);
  const quick = listen(1, () => 6_001);
  for (let i = 0; i < 60; i += 1) {
    await write(100);
    await turn();
  }
  const seen = [1];
  for await (const page of slow) {
    seen.push(...page.map(({ seq }) => seq));
    if (seen.length >= 6_001) stop.abort();
  }
  expect(seen).toEqual(Array.from({ length: 6_001 }, (_, index) => index + 1));
  expect(await quick).toHaveLength(6_000);
});

test("feed: a listener that arrives right after the last one left gets new entries", async () => {
  const { write, turn, feeds } = opened();
  for (let round = 0; round < 20; round += 1) {
    const { seq: after } = await write(1).then(() => ({ seq: round + 1 }));
    const stop = new AbortController();
    const pages = feeds.pages("acme", {
      after: after - 1,
      signal: stop.signal,
      heartbeatMs: 1_000,
    });
    expect(numbers(await pages.next())).toEqual([after]);
    if (round % 2 === 0) await turn();
    await pages.return(undefined);
  }
});

test("feed: a number beyond the end is refused, and tenants are separate", async () => {
  const { write, feeds, listen } = opened();
  await write(3);
  await write(5, "bolt");
  const terms = { signal: new AbortController().signal, heartbeatMs: 50 };
  await expect(feeds.pages("acme", { ...terms, after: 4 }).next()).rejects.toThrow(/invalid_input/);
  expect(await listen(0, () => 5, "bolt")).toEqual([1, 2, 3, 4, 5]);
});

test("feed: closing ends every listener", async () => {
  const { write, feeds } = opened();
  await write(1);
  const terms = { after: 1, signal: new AbortController().signal, heartbeatMs: 60_000 };
  const waiting = Array.from({ length: 5 }, () => feeds.pages("acme", terms).next());
  await new Promise((resolve) => setTimeout(resolve, 10));
  feeds.close();
  expect((await Promise.all(waiting)).every(({ done }) => done === true)).toBe(true);
});
