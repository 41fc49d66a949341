import { expect, test } from "vitest";
import { createSigner, generateSigningKey, signAnchor } from "../../src/audit/anchor.ts";
import {
  type AnchorerOptions,
  type AnchorProblem,
  createAnchorer,
} from "../../src/audit/anchorer.ts";
import { verifyStore } from "../../src/audit/verify.ts";
import { GENESIS, headAfter } from "../../src/model/audit-entry.ts";
import { newDraft } from "../../src/model/decision.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { manualClock, toIso } from "../../src/util/clock.ts";
import { seededRandom } from "../../src/util/random.ts";
import { manualTimers } from "../support/manual-timers.ts";
import {
  codesOf,
  edited,
  fakeStore,
  makeTrail,
  memorySink,
  PUBLIC_KEYS,
  rehash,
  SIGNER,
  START,
} from "./fixtures.ts";

const publicKeys = PUBLIC_KEYS;

function setUp(options: Partial<AnchorerOptions> = {}, store = fakeStore()) {
  const clock = manualClock(START);
  const timers = manualTimers(clock);
  const sink = memorySink();
  const told: AnchorProblem[] = [];
  const onProblem = (problem: AnchorProblem) => told.push(problem);
  const random = seededRandom("anchorer");
  const anchorer = createAnchorer({
    store,
    signer: SIGNER,
    sink,
    clock,
    timers,
    random,
    onProblem,
    ...options,
  });
  const points = () => sink.anchors.map((anchor) => [anchor.tenant, anchor.seq]);
  const codes = () => told.map((problem) => problem.code);
  /** Until promises have settled that need more than one turn. */
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await timers.advance(0);
  };
  return { clock, timers, sink, store, anchorer, told, codes, points, settle };
}

test("entries without an anchor at the start are anchored immediately", async () => {
  const { settle, points, anchorer } = setUp(
    {},
    fakeStore([makeTrail("a", 3), makeTrail("b", 70)]),
  );
  await settle();
  expect(points()).toEqual([
    ["a", 3],
    ["b", 70],
  ]);
  expect(anchorer.status()).toMatchObject({
    written: 2,
    blindWindow: { entries: 0, sinceMs: 0 },
    problems: [],
  });
  await anchorer.close();
});

test("64 entries are anchored soon, fewer within 10 s", async () => {
  const { settle, points, anchorer, store, timers } = setUp();
  await settle();
  store.add("a", 64);
  await timers.advance(100);
  await settle();
  expect(points()).toEqual([["a", 64]]);
  store.add("a", 63);
  await timers.advance(9_000);
  await settle();
  expect(points()).toEqual([["a", 64]]);
  expect(anchorer.status().blindWindow.entries).toBe(63);
  expect(anchorer.status().blindWindow.sinceMs).toBeGreaterThanOrEqual(9_000);
  await timers.advance(1_000);
  await settle();
  expect(points()).toEqual([
    ["a", 64],
    ["a", 127],
  ]);
  expect(anchorer.status().blindWindow).toEqual({ entries: 0, sinceMs: 0 });
  await anchorer.close();
});

test("entries without a hint are anchored within 10 s as well", async () => {
  const store = fakeStore();
  const { settle, points, anchorer, timers } = setUp(
    { store: { ...store, onCommit: () => () => {} } },
    store,
  );
  await settle();
  await timers.advance(7_777);
  store.add("a", 2);
  await timers.advance(10_000);
  await settle();
  expect(points()).toEqual([["a", 2]]);
  await anchorer.close();
});

test("a burst of hints leads to few checks and one anchor", async () => {
  const store = fakeStore();
  let looks = 0;
  const heads = () => {
    looks += 1;
    return store.heads();
  };
  const { settle, points, anchorer, timers } = setUp({ store: { ...store, heads } }, store);
  await settle();
  for (let n = 0; n < 100; n += 1) {
    store.add("a");
    await timers.advance(1);
  }
  await timers.advance(100);
  await settle();
  expect(looks).toBeLessThan(8);
  expect(points().length).toBeLessThan(4);
  await anchorer.close();
});

test("each anchor follows the one before, and all verify", async () => {
  const { anchorer, store, sink } = setUp();
  for (let n = 0; n < 20; n += 1) {
    store.add(n % 3 === 0 ? "a" : "b", 1 + n);
    await anchorer.flush();
  }
  await anchorer.close();
  const report = await verifyStore(store, { anchors: sink.read(), publicKeys });
  expect(report).toMatchObject({ ok: true, anchors: 20, blindWindow: { entries: 0 } });
});

test("a failing sink is reported, shown in the status and retried; it never stops the anchorer [T36]", async () => {
  const { anchorer, store, sink, timers, settle, codes } = setUp();
  await settle();
  sink.failing = "before";
  store.add("a", 64);
  await timers.advance(5_000);
  await settle();
  expect(new Set(codes())).toEqual(new Set(["sink_failed"]));
  expect(codes().length).toBeLessThan(6);
  expect(anchorer.status()).toMatchObject({
    written: 0,
    blindWindow: { entries: 64 },
    problems: [{ code: "sink_failed" }],
  });
  await expect(anchorer.flush()).rejects.toThrow("no route");
  store.add("a", 5);
  sink.failing = "no";
  await timers.advance(20_000);
  await settle();
  expect(anchorer.status()).toMatchObject({ blindWindow: { entries: 0 }, problems: [] });
  await anchorer.close();
  const report = await verifyStore(store, { anchors: sink.read(), publicKeys });
  expect(report).toMatchObject({ ok: true, blindWindow: { entries: 0 } });
});

test("an unconfirmed anchor is sent again unchanged and counts once [T36]", async () => {
  const { anchorer, store, sink, timers, settle } = setUp();
  await settle();
  sink.failing = "after";
  store.add("a", 64);
  await timers.advance(3_500);
  await settle();
  expect(sink.anchors.length).toBeGreaterThan(1);
  expect(new Set(sink.anchors).size).toBe(1);
  sink.failing = "no";
  store.add("a", 10);
  await timers.advance(20_000);
  await settle();
  await anchorer.close();
  const report = await verifyStore(store, { anchors: sink.read(), publicKeys });
  expect(report).toMatchObject({ ok: true, anchors: 2, blindWindow: { entries: 0 } });
});

test("a hanging sink is reported, and closing does not wait for ever [T36]", async () => {
  const { anchorer, store, sink, timers, settle, codes } = setUp();
  await settle();
  sink.failing = "hangs";
  store.add("a", 64);
  await timers.advance(11_000);
  await settle();
  expect(codes()).toContain("sink_slow");
  expect(anchorer.status().blindWindow).toMatchObject({ entries: 64 });
  expect(anchorer.status().blindWindow.sinceMs).toBeGreaterThan(10_000);
  const closed = anchorer.close();
  await timers.advance(10_000);
  await closed;
});

test("a failing store or signer is reported and retried", async () => {
  let broken = "store";
  const store = fakeStore([makeTrail("a", 5)]);
  const heads = async () =>
    broken === "store" ? Promise.reject(new Error("down")) : store.heads();
  const signer = {
    ...SIGNER,
    sign: async (text: string) =>
      broken === "signer" ? Promise.reject(new Error("no key")) : SIGNER.sign(text),
  };
  const { anchorer, timers, settle, codes, sink } = setUp(
    { store: { ...store, heads }, signer },
    store,
  );
  await settle();
  expect(codes()).toEqual(["store_failed"]);
  broken = "signer";
  await timers.advance(3_000);
  await settle();
  expect(new Set(codes())).toEqual(new Set(["store_failed", "signer_failed"]));
  broken = "";
  await timers.advance(20_000);
  await settle();
  expect(anchorer.status().problems).toEqual([]);
  await anchorer.close();
  expect((await verifyStore(store, { anchors: sink.read(), publicKeys })).ok).toBe(true);
});

test("a throwing listener does not stop the anchorer", async () => {
  const { anchorer, store, sink, timers, settle } = setUp({
    onProblem() {
      throw new Error("listener");
    },
  });
  sink.failing = "before";
  store.add("a", 64);
  await settle();
  sink.failing = "no";
  await timers.advance(20_000);
  await settle();
  expect(sink.anchors).toHaveLength(1);
  await anchorer.close();
});

test("a rewritten, truncated or deleted chain gets no new anchor and is reported once [R27]", async () => {
  const { anchorer, store, sink, settle, codes, timers } = setUp(
    {},
    fakeStore(["a", "b", "c", "d"].map((t) => makeTrail(t, 64))),
  );
  await settle();
  expect(sink.anchors).toHaveLength(4);
  const a = store.trails.get("a")!;
  store.trails.set(
    "a",
    rehash(a.map((one) => (one.seq === 9 ? edited(one, { actor: "x" }) : one))),
  );
  store.trails.set("b", store.trails.get("b")!.slice(0, 50));
  store.trails.delete("c");
  for (let n = 0; n < 5; n += 1) {
    store.add("a", 70);
    await timers.advance(3_000);
    await settle();
  }
  expect(codes().sort()).toEqual(["tenant_missing", "trail_cut", "trail_rewritten"]);
  expect(
    anchorer
      .status()
      .problems.map((problem) => problem.tenant)
      .sort(),
  ).toEqual(["a", "b", "c"]);
  store.add("d", 64);
  await anchorer.flush();
  expect(sink.anchors.slice(4).map((anchor) => anchor.tenant)).toEqual(["d"]);
  await anchorer.close();
  const report = await verifyStore(store, { anchors: sink.read(), publicKeys });
  expect(codesOf(report)).toEqual(["anchor_mismatch", "anchored_tenant_missing", "cut_off"]);
});

test("after a restart it continues after the last anchor, and ignores a forged one", async () => {
  const first = setUp({}, fakeStore([makeTrail("a", 10)]));
  await first.settle();
  await first.anchorer.close();
  const thief = createSigner(generateSigningKey());
  const facts = {
    writer: "z",
    n: 1,
    tenant: "a",
    seq: 1_000,
    hash: GENESIS,
    at: toIso(START),
    prev: GENESIS,
  };
  first.sink.anchors.push(await signAnchor(thief, facts));
  first.store.add("a", 70);
  const again = setUp({ sink: first.sink, random: seededRandom("again") }, first.store);
  await again.settle();
  expect(first.sink.anchors.map((anchor) => anchor.seq)).toEqual([10, 1_000, 80]);
  await again.anchorer.close();
  const report = await verifyStore(first.store, { anchors: first.sink.read(), publicKeys });
  expect(codesOf(report)).toEqual(["anchor_key_unknown"]);
});

test("keys can change: the old one is given as a public key", async () => {
  const first = setUp({}, fakeStore([makeTrail("a", 10)]));
  await first.settle();
  await first.anchorer.close();
  const key = generateSigningKey();
  const again = setUp(
    { sink: first.sink, signer: createSigner(key), publicKeys, random: seededRandom("again") },
    first.store,
  );
  await again.settle();
  expect(first.sink.anchors).toHaveLength(1);
  first.store.add("a", 1);
  await again.anchorer.flush();
  await again.anchorer.close();
  const anchors = first.sink.read();
  const report = await verifyStore(first.store, {
    anchors,
    publicKeys: [...publicKeys, key.publicKey],
  });
  expect(report).toMatchObject({ ok: true, anchors: 2 });
});

test("a clock that jumps back does not delay anchors [G12]", async () => {
  const { anchorer, store, clock, timers, settle, points } = setUp();
  await settle();
  store.add("a", 1);
  await timers.advance(100);
  clock.set(START - 86_400_000);
  await settle();
  // What waits on timers waits by their own time; a new hint is enough to look again.
  store.add("b", 64);
  await timers.advance(86_400_000 + 20_000);
  await settle();
  expect(points().length).toBe(2);
  await anchorer.close();
});

test("closing anchors the rest, may be repeated, and leaves no timer", async () => {
  const { anchorer, store, timers, points, settle } = setUp();
  await settle();
  store.add("a", 3);
  await Promise.all([anchorer.close(), anchorer[Symbol.asyncDispose]()]);
  expect(points()).toEqual([["a", 3]]);
  expect(timers.open).toBe(0);
  store.add("a", 100);
  await timers.advance(60_000);
  expect(points()).toEqual([["a", 3]]);
});

test("concurrent flushes share a round", async () => {
  const { anchorer, store, points, settle } = setUp();
  await settle();
  store.add("a", 3);
  await Promise.all([anchorer.flush(), anchorer.flush(), anchorer.flush()]);
  expect(points()).toEqual([["a", 3]]);
  await anchorer.close();
});

test("a signer whose id does not belong to its key is rejected", () => {
  const signer = { ...SIGNER, keyId: "ed25519:other" };
  expect(() => setUp({ signer })).toThrow(expect.objectContaining({ code: "invalid_input" }));
});

test("it follows a real store", async () => {
  await using store = memoryStore();
  const sink = memorySink();
  await using anchorer = createAnchorer({ store, signer: SIGNER, sink });
  const { decisions } = store.tenant("acme");
  const diff = { sourceTool: "t", raw: new Uint8Array(1), metadata: {} };
  for (let n = 0; n < 10; n += 1) await decisions.stage(newDraft("s", diff, toIso(START)));
  await anchorer.flush();
  const head = await store.tenant("acme").audit.head();
  expect(sink.anchors.at(-1)).toMatchObject({ tenant: "acme", seq: 10, hash: head.hash });
  const [last] = await store.tenant("acme").audit.read({ after: 9, limit: 1 });
  expect(headAfter(last!)).toEqual(head);
});
