import { expect, test } from "vitest";
import {
  anchorHash,
  createSigner,
  generateSigningKey,
  signAnchor,
} from "../../src/audit/anchor.ts";
import { verifyStore, verifyTrail } from "../../src/audit/verify.ts";
import { type AuditEntry, headAfter } from "../../src/model/audit-entry.ts";
import { newDraft } from "../../src/model/decision.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { toIso } from "../../src/util/clock.ts";
import {
  anchorsFor,
  codesOf,
  edited,
  fakeStore,
  makeTrail,
  PUBLIC_KEYS,
  rehash,
  SIGNER,
  START,
} from "./fixtures.ts";

const publicKeys = PUBLIC_KEYS;
const a = makeTrail("a", 130);
const b = makeTrail("b", 40);
const at = (entries: readonly AuditEntry[], seq: number) =>
  headAfter(entries[seq - 1] as AuditEntry);

test("entries of several tenants may be interleaved", async () => {
  const mixed = [...a, ...b].sort((x, y) => x.seq - y.seq);
  expect(await verifyTrail(mixed)).toMatchObject({ ok: true, entries: 170 });
});

test("the blind window is what comes after the last anchor of each tenant", async () => {
  const anchors = await anchorsFor([at(a, 64), at(b, 32), at(a, 128)]);
  const now = START + 200_000;
  const report = await verifyTrail([...a, ...b], { anchors, publicKeys, now });
  expect(report.ok).toBe(true);
  expect(report.tenants.map((one) => [one.anchoredSeq, one.unanchored])).toEqual([
    [128, 2],
    [32, 8],
  ]);
  expect(report.blindWindow).toEqual({
    entries: 10,
    since: toIso(START + 32_000),
    sinceMs: 168_000,
  });
});

test("a broken stream is a problem in the report, and the entries before it are checked", async () => {
  async function* broken() {
    yield* a.slice(0, 10);
    throw new Error("connection reset");
  }
  const report = await verifyTrail(broken());
  expect(codesOf(report)).toEqual(["unreadable"]);
  expect(report.problems[0]?.message).toContain("connection reset");
  expect(report.entries).toBe(10);
});

test("anchors that cannot be read are a problem", async () => {
  async function* broken() {
    yield* await anchorsFor([at(a, 64)]);
    throw new Error("permission denied");
  }
  const report = await verifyTrail(a, { anchors: broken(), publicKeys });
  expect(codesOf(report)).toEqual(["anchors_unreadable"]);
});

test("a lone surrogate in a field is a problem, not a crash", async () => {
  const invalid = a.map((one) => (one.seq === 3 ? edited(one, { data: '"\ud800"' }) : one));
  expect(codesOf(await verifyTrail(invalid))).toEqual(["wrong_hash"]);
});

test("only the named tenants are checked, and each must exist", async () => {
  const anchors = await anchorsFor([at(a, 64), at(b, 32)]);
  const report = await verifyTrail([...a, ...b], { anchors, publicKeys, tenants: ["a"] });
  expect(report).toMatchObject({ ok: true, entries: 130 });
  expect(report.tenants).toHaveLength(1);
  const missing = await verifyTrail(a, { tenants: ["a", "c"] });
  expect(missing.problems).toMatchObject([{ code: "tenant_missing", tenant: "c" }]);
});

test("from a trusted head only newer entries are checked [G20]", async () => {
  const from = [at(a, 100)];
  const report = await verifyTrail(a.slice(100), { from });
  expect(report).toMatchObject({ ok: true, entries: 30 });
  expect(report.tenants[0]?.head).toEqual(at(a, 130));
  expect((await verifyTrail(a, { from })).entries).toBe(30);
  expect(codesOf(await verifyTrail(a.slice(101), { from }))).toEqual(["gap"]);
  const forged = rehash(a.map((one) => (one.seq === 5 ? edited(one, { actor: "x" }) : one)));
  expect(codesOf(await verifyTrail(forged, { from }))).toEqual(["broken_link", "wrong_checkpoint"]);
  const anchors = await anchorsFor([at(a, 64), at(a, 100), at(a, 128)]);
  expect((await verifyTrail(a.slice(100), { from, anchors, publicKeys })).ok).toBe(true);
  const stored = await verifyStore(fakeStore([a]), { from, anchors, publicKeys });
  expect(stored).toMatchObject({ ok: true, entries: 30 });
  const cut = await verifyStore(fakeStore([a.slice(0, 99)]), { from });
  expect(codesOf(cut)).toContain("wrong_checkpoint");
});

test("a store whose head disagrees with its entries is reported", async () => {
  const store = { ...fakeStore([a]), heads: async () => [at(a, 130), { ...at(b, 40) }] };
  expect((await verifyStore(store)).problems).toMatchObject([
    { code: "head_mismatch", tenant: "b" },
  ]);
  const failing = { ...fakeStore([a]), heads: async () => Promise.reject(new Error("down")) };
  expect(codesOf(await verifyStore(failing))).toEqual(["unreadable"]);
});

test("a tenant that only anchors know is looked for in the store", async () => {
  const store = { ...fakeStore([a, b]), heads: async () => [at(a, 130)] };
  const anchors = await anchorsFor([at(b, 32)]);
  const report = await verifyStore(store, { anchors, publicKeys });
  expect(report).toMatchObject({ ok: true, entries: 170 });
});

test("onProgress is awaited", async () => {
  const seen: number[] = [];
  const long = makeTrail("a", 20_000);
  await verifyTrail(long, {
    onProgress: async ({ entries }) => {
      await null;
      seen.push(entries);
    },
  });
  expect(seen).toEqual([10_000, 20_000]);
});

test("anchors count only when signed with a known key", async () => {
  const anchors = await anchorsFor([at(a, 64), at(a, 128)]);
  const unknown = await verifyTrail(a, { anchors });
  expect(codesOf(unknown)).toEqual(["anchor_key_unknown"]);
  expect(unknown).toMatchObject({ anchors: 0, blindWindow: { entries: 130 } });
  const other = generateSigningKey();
  const both = await verifyTrail(a, { anchors, publicKeys: [other.publicKey, ...publicKeys] });
  expect(both.ok).toBe(true);
});

test("a forged or edited anchor is reported and not trusted", async () => {
  const anchors = await anchorsFor([at(a, 64), at(a, 128)]);
  const last = anchors[1]!;
  const edits = [
    { seq: 129 },
    { hash: "0".repeat(64) },
    { at: toIso(START) },
    { tenant: "c" },
    { n: 3 },
  ];
  for (const edit of edits) {
    const report = await verifyTrail(a, {
      anchors: [anchors[0]!, { ...last, ...edit }],
      publicKeys,
    });
    expect(codesOf(report), JSON.stringify(edit)).toEqual(["anchor_signature"]);
    expect(report.anchors).toBe(1);
  }
  const thief = createSigner(generateSigningKey());
  const { sig, keyId, v, ...facts } = last;
  const stolen = { ...(await signAnchor(thief, facts)), keyId };
  const report = await verifyTrail(a, { anchors: [anchors[0]!, stolen], publicKeys });
  expect(codesOf(report)).toEqual(["anchor_signature"]);
});

test("a removed anchor leaves a hole; a duplicate counts once", async () => {
  const anchors = await anchorsFor([at(a, 64), at(b, 32), at(a, 128)]);
  const [one, two, three] = anchors as [
    (typeof anchors)[0],
    (typeof anchors)[0],
    (typeof anchors)[0],
  ];
  const trail = [...a, ...b];
  expect(codesOf(await verifyTrail(trail, { anchors: [one, three], publicKeys }))).toEqual([
    "anchor_hole",
  ]);
  expect(codesOf(await verifyTrail(trail, { anchors: [two, three], publicKeys }))).toEqual([
    "anchor_hole",
  ]);
  expect(codesOf(await verifyTrail(trail, { anchors: [two, one, three], publicKeys }))).toEqual([
    "anchor_hole",
  ]);
  const twice = await verifyTrail(trail, { anchors: [one, two, two, three, one], publicKeys });
  expect(twice).toMatchObject({ ok: true, anchors: 3 });
});

test("with two writers that link to each other any removed line is detected", async () => {
  const facts = { at: toIso(START), tenant: "a" };
  const lines: Awaited<ReturnType<typeof signAnchor>>[] = [];
  const add = async (writer: string, n: number, seq: number, prev: string) => {
    const { hash } = at(a, seq);
    lines.push(await signAnchor(SIGNER, { ...facts, writer, n, seq, hash, prev }));
    return anchorHash(lines.at(-1)!);
  };
  const one = await add("x", 1, 10, "0".repeat(64));
  const two = await add("y", 1, 20, one);
  await add("x", 2, 30, two);
  const four = await add("y", 2, 35, two); // both followed line two
  await add("x", 3, 40, four);
  await add("y", 3, 45, four);
  expect((await verifyTrail(a, { anchors: lines, publicKeys })).ok).toBe(true);
  for (let cut = 0; cut < lines.length - 2; cut += 1) {
    const anchors = lines.filter((_, index) => index !== cut);
    expect(codesOf(await verifyTrail(a, { anchors, publicKeys })), `line ${cut + 1}`).toEqual([
      "anchor_hole",
    ]);
  }
  // One writer's end cut off, the counts stay whole: only the other writer's links tell.
  const withoutEnd = lines.filter((line) => line.writer !== "y" || line.n < 2);
  const cutEnd = await verifyTrail(a, { anchors: withoutEnd, publicKeys });
  expect(cutEnd.problems).toMatchObject([{ code: "anchor_hole", seq: 40 }]);
});

test("an invalid key throws", async () => {
  const error = await verifyTrail(a, { publicKeys: ["nonsense"] }).catch(
    (thrown: unknown) => thrown,
  );
  expect(isSallyportError(error, "invalid_input")).toBe(true);
});

test("a real store verifies after real decisions", async () => {
  await using store = memoryStore();
  for (const tenant of ["a", "b"]) {
    const { decisions } = store.tenant(tenant);
    const diff = {
      sourceTool: "t",
      raw: new Uint8Array([1]),
      metadata: { password: "hunter2-hunter2" },
    };
    const { id } = await decisions.stage(newDraft("s", diff, toIso(START)));
    await decisions.updateTechVerdict(id, {
      approved: true,
      score: 1,
      reason: "",
      severity: "",
      validator: "v",
      policyVersion: "1",
    });
  }
  const report = await verifyStore(store);
  expect(report).toMatchObject({ ok: true, entries: 4 });
  const [entry] = await store.tenant("a").audit.read({ after: 0, limit: 1 });
  expect(entry?.data).not.toContain("hunter2");
});
