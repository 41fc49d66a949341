// What a writer of the database can do to the audit log, and what an auditor with the anchors sees.

import { describe, expect, test } from "vitest";
import { verifyStore, verifyTrail } from "../../src/audit/verify.ts";
import { type AuditEntry, headAfter } from "../../src/model/audit-entry.ts";
import {
  anchorsFor,
  codesOf,
  edited,
  fakeStore,
  makeTrail,
  PUBLIC_KEYS,
  rehash,
} from "./fixtures.ts";

const N = 100;
const trail = makeTrail("acme", N);
const other = makeTrail("globex", 70);
const publicKeys = PUBLIC_KEYS;

/** Anchored after 64 and at the end, as an anchorer does that was closed properly. */
async function anchors() {
  return anchorsFor([headOf(trail, 64), headOf(other, 64), headOf(trail, N), headOf(other, 70)]);
}

function headOf(entries: readonly AuditEntry[], seq: number) {
  return headAfter(entries[seq - 1] as AuditEntry);
}

/** Both ways of verifying must agree. */
async function verify(acme: readonly AuditEntry[], globex: readonly AuditEntry[] = other) {
  const report = await verifyTrail([...acme, ...globex], { anchors: await anchors(), publicKeys });
  const store = fakeStore([acme, globex].filter((entries) => entries.length > 0));
  const stored = await verifyStore(store, { anchors: await anchors(), publicKeys, pageSize: 7 });
  expect(stored.ok, JSON.stringify(stored.problems)).toBe(report.ok);
  return report;
}

test("an unchanged chain verifies, and the report says how far", async () => {
  const report = await verify(trail);
  expect(report).toMatchObject({
    ok: true,
    entries: 170,
    anchors: 4,
    problems: [],
    problemCount: 0,
  });
  expect(report.tenants).toEqual([
    {
      tenant: "acme",
      entries: N,
      head: headOf(trail, N),
      erased: 0,
      anchoredSeq: N,
      unanchored: 0,
    },
    {
      tenant: "globex",
      entries: 70,
      head: headOf(other, 70),
      erased: 0,
      anchoredSeq: 70,
      unanchored: 0,
    },
  ]);
  expect(report.blindWindow).toEqual({ entries: 0 });
});

test("the last k entries deleted, for every k [R21]", async () => {
  for (let k = 1; k <= N; k += 1) {
    const report = await verify(trail.slice(0, N - k));
    expect(report.ok, `k=${k}`).toBe(false);
    expect(codesOf(report)).toEqual([k === N ? "anchored_tenant_missing" : "cut_off"]);
  }
});

test("the last k entries rewritten with the same count, for every k [R22]", async () => {
  for (let k = 1; k <= N; k += 1) {
    const forged = rehash(
      trail.map((one, i) => (i < N - k ? one : edited(one, { actor: "human:boss" }))),
    );
    expect(forged).toHaveLength(N);
    expect(forged.slice(0, N - k)).toEqual(trail.slice(0, N - k));
    const report = await verify(forged);
    expect(codesOf(report), `k=${k}`).toEqual(["anchor_mismatch"]);
  }
});

test("a whole tenant's chain deleted [R23]", async () => {
  expect(codesOf(await verify(trail, []))).toEqual(["anchored_tenant_missing"]);
  expect(codesOf(await verify([]))).toEqual(["anchored_tenant_missing"]);
});

test("everything deleted, an empty chain with an anchor above zero [R24]", async () => {
  const report = await verify([], []);
  expect(report.ok).toBe(false);
  expect(report.problems.map((problem) => problem.tenant)).toEqual(["acme", "globex"]);
  expect(report.entries).toBe(0);
});

test("head, middle and tail cut out, at every place [R25]", async () => {
  for (let cut = 1; cut < N; cut += 1) {
    expect(codesOf(await verify(trail.slice(cut))), `head ${cut}`).toEqual(["missing_start"]);
    const middle = trail.filter((one) => one.seq !== cut);
    expect((await verify(middle)).ok, `middle ${cut}`).toBe(false);
    expect(codesOf(await verify(trail.slice(0, cut))), `tail ${cut}`).toEqual(["cut_off"]);
  }
});

describe("everything hashed again after an edit [R27]", () => {
  const forged = rehash(
    trail.map((one) => (one.seq === 3 ? edited(one, { actor: "human:boss" }) : one)),
  );

  test("without anchors it verifies, and the report says that no entry is anchored", async () => {
    const report = await verifyTrail(forged);
    expect(report.ok).toBe(true);
    expect(report.blindWindow).toMatchObject({ entries: N, since: trail[0]?.at });
  });

  test("with anchors it is found, at each anchor", async () => {
    const report = await verify(forged);
    expect(report.problems.map((problem) => [problem.code, problem.seq])).toEqual([
      ["anchor_mismatch", 64],
      ["anchor_mismatch", N],
    ]);
  });
});

test("erased data is counted, and the chain still verifies [T42]", async () => {
  const erased = trail.map((one) =>
    one.seq % 10 === 0 ? edited(one, { data: null, salt: null }) : one,
  );
  const report = await verify(erased);
  expect(report.ok).toBe(true);
  expect(report.tenants[0]).toMatchObject({ erased: 10, entries: N });
  const half = trail.map((one) => (one.seq === 9 ? edited(one, { salt: null }) : one));
  expect(codesOf(await verify(half))).toEqual(["half_erased"]);
});

test("a decreasing time is found even in a valid chain", async () => {
  const forged = rehash(
    trail.map((one) => (one.seq === 90 ? edited(one, { at: trail[5]!.at }) : one)),
  );
  expect(codesOf(await verifyTrail(forged))).toEqual(["time_backwards"]);
});

test("the first hundred problems are kept and all are counted", async () => {
  const ruined = makeTrail("acme", 300).map((one) => edited(one, { actor: "x" }));
  const report = await verifyTrail(ruined);
  expect(report.problems).toHaveLength(100);
  expect(report.problemCount).toBe(300);
});
