import { expect, test } from "vitest";
import {
  appendEntry,
  chooser,
  fakeStore,
  makeTrail,
  readerOf,
  START,
} from "../../tests/audit/fixtures.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import { isSallyportError } from "../model/errors.ts";
import type { AuditReader } from "../store/store.ts";
import { manualClock } from "../util/clock.ts";
import { manualTimers } from "../util/manual-timers.ts";
import { followTrail } from "./feed.ts";

function setUp() {
  const timers = manualTimers(manualClock(START));
  const abort = new AbortController();
  return { timers, abort, signal: abort.signal };
}

/** Reads on its own until the feed ends. */
function listen(feed: AsyncIterable<AuditEntry>) {
  const seen: number[] = [];
  const done = (async () => {
    for await (const entry of feed) seen.push(entry.seq);
  })();
  return { seen, done };
}

function countReads(reader: AuditReader): AuditReader & { reads: number } {
  const counting = {
    ...reader,
    reads: 0,
    read(range: { after: number; limit: number }) {
      counting.reads += 1;
      return reader.read(range);
    },
  };
  return counting;
}

test("gives all entries after a number, page by page, then ends on abort", async () => {
  const { timers, abort, signal } = setUp();
  const { seen, done } = listen(
    followTrail(readerOf("a", makeTrail("a", 23)), { after: 5, signal, timers, pageSize: 4 }),
  );
  await timers.advance(0);
  await timers.advance(0);
  expect(seen).toEqual(Array.from({ length: 18 }, (_, n) => n + 6));
  abort.abort();
  await done;
  expect(timers.open).toBe(0);
});

test("wakes immediately on a hint, and finds unannounced entries by polling", async () => {
  const { timers, abort, signal } = setUp();
  const store = fakeStore([makeTrail("a", 1)]);
  const { audit } = store.tenant("a");
  const { seen, done } = listen(
    followTrail(audit, { after: 0, signal, timers, onCommit: store.onCommit }),
  );
  await timers.advance(0);
  expect(seen).toEqual([1]);
  store.add("a", 2);
  await timers.advance(0);
  expect(seen).toEqual([1, 2, 3]);
  appendEntry(store.trails.get("a")!, "a"); // without telling anybody
  await timers.advance(249);
  expect(seen).toEqual([1, 2, 3]);
  await timers.advance(1);
  expect(seen).toEqual([1, 2, 3, 4]);
  abort.abort();
  await done;
});

test("a busy neighbour does not make it ask all the time", async () => {
  const { timers, abort, signal } = setUp();
  const store = fakeStore([makeTrail("a", 1)]);
  const { audit } = store.tenant("a");
  const counting = countReads(audit);
  const { done } = listen(
    followTrail(counting, { after: 1, signal, timers, onCommit: store.onCommit }),
  );
  for (let n = 0; n < 1_000; n += 1) {
    store.add("b");
    await timers.advance(1);
  }
  expect(counting.reads).toBeLessThan(120);
  abort.abort();
  await done;
});

test("a slow reader is never ahead of itself: one page at a time is read", async () => {
  const { timers, abort, signal } = setUp();
  const reader = countReads(readerOf("a", makeTrail("a", 100)));
  const feed = followTrail(reader, { after: 0, signal, timers, pageSize: 10 });
  for (let n = 1; n <= 35; n += 1) expect((await feed.next()).value?.seq).toBe(n);
  expect(reader.reads).toBe(4);
  await feed.return(undefined);
  abort.abort();
  expect(timers.open).toBe(0);
});

test("interrupted and resumed at random, it is ordered, unique and without a gap [G18]", async () => {
  const choose = chooser("feed");
  const store = fakeStore();
  store.add("a");
  const { audit } = store.tenant("a");
  const seen: number[] = [];
  let reconnects = 0;
  while (seen.length < 2_000) {
    const { timers, abort, signal } = setUp();
    const feed = followTrail(audit, {
      after: seen.at(-1) ?? 0,
      signal,
      timers,
      onCommit: store.onCommit,
      pageSize: 1 + choose.int(7),
    });
    const many = choose.int(20);
    for (let n = 0; n < many; n += 1) {
      store.add("a", choose.int(3));
      if ((await audit.head()).seq === (seen.at(-1) ?? 0)) break;
      const { value } = await feed.next();
      if (value !== undefined) seen.push(value.seq);
    }
    abort.abort();
    await feed.return(undefined);
    reconnects += 1;
  }
  expect(reconnects).toBeGreaterThan(100);
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, n) => n + 1));
});

test("a gap, a foreign entry or a broken link is damage, not a shorter feed", async () => {
  const trail = makeTrail("a", 10);
  const foreign = makeTrail("b", 10);
  const cases = [
    trail.filter((entry) => entry.seq !== 4),
    trail.map((entry) => (entry.seq === 4 ? foreign[3]! : entry)),
    trail.map((entry) => (entry.seq === 4 ? { ...entry, prev: "0".repeat(64) } : entry)),
  ];
  for (const entries of cases) {
    const { timers, signal } = setUp();
    const { seen, done } = listen(
      followTrail(readerOf("a", entries), { after: 0, signal, timers }),
    );
    await expect(done).rejects.toSatisfy((error) => isSallyportError(error, "damaged_record"));
    expect(seen).toEqual([1, 2, 3]);
  }
});

test("a number beyond the end is refused: the trail was restored to an earlier state", async () => {
  for (const after of [11, -1, 1.5, Number.NaN]) {
    const { timers, signal } = setUp();
    const { done } = listen(
      followTrail(readerOf("a", makeTrail("a", 10)), { after, signal, timers }),
    );
    await expect(done).rejects.toSatisfy((error) => isSallyportError(error, "invalid_input"));
  }
});

test("an aborted signal ends it before the first entry, and stops listening", async () => {
  const { timers, abort, signal } = setUp();
  abort.abort();
  let listeners = 0;
  const onCommit = () => {
    listeners += 1;
    return () => {
      listeners -= 1;
    };
  };
  const { seen, done } = listen(
    followTrail(readerOf("a", makeTrail("a", 3)), { after: 0, signal, timers, onCommit }),
  );
  await done;
  expect(seen).toEqual([]);
  expect(listeners).toBe(0);
});
