// T35, G13: thousands of random changes to an export, each one verified against the anchors that existed before it.
// A change that touches anything at or before the last anchor must be found, every time. Changes that touch only what
// came after it cannot all be found; how many slipped through is printed, and where they may do so is the blind window.

import { expect, test } from "vitest";
import { exportLine, readExport } from "../../src/audit/trail.ts";
import { verifyTrail } from "../../src/audit/verify.ts";
import { type AuditEntry, headAfter } from "../../src/model/audit-entry.ts";
import { record } from "../support/record.ts";
import { anchorsFor, chooser, edited, FULL, makeTrail, PUBLIC_KEYS, rehash } from "./fixtures.ts";

const MUTATIONS = FULL ? 10_000 : 1_000;
const SEED = process.env["SEED"] ?? "t35";
const EVERY = 16;

/** Lengths that leave a blind window of 7, 0 and 15 entries. */
const trails = [makeTrail("a", 39), makeTrail("b", 32), makeTrail("c", 31)];
const anchored = [32, 32, 16];
const anchors = await anchorsFor(
  trails
    .flatMap((trail) => trail.filter((entry) => entry.seq % EVERY === 0))
    .sort((x, y) => x.seq - y.seq)
    .map(headAfter),
);

interface Mutant {
  /** The changed export as bytes. */
  readonly file: Buffer;
  /** True when nothing at or before the last anchor was touched. */
  readonly isBlind: boolean;
}
type Choose = ReturnType<typeof chooser>;
type Mutation = (choose: Choose) => Mutant;

const KINDS: Record<string, Mutation> = {
  "bit flip": (choose) => {
    const file = Buffer.from(fileOf(trails));
    const at = choose.int(file.length);
    file[at] = (file[at] as number) ^ (1 << choose.int(8));
    return { file, isBlind: false }; // a flipped bit breaks a hash wherever it is
  },
  edit: (choose) => {
    const name = choose.pick([
      "actor",
      "type",
      "subject",
      "session",
      "at",
      "data",
      "salt",
      "hash",
      "prev",
    ] as const);
    return changeOne(choose, (entry) =>
      edited(entry, { [name]: altered(entry[name] ?? "", choose) }),
    );
  },
  "edit and hash it again": (choose) =>
    changeTrail(choose, (trail, at) =>
      // Its own hash fits, the link of the next one does not; at the very end there is no next one.
      trail.map((entry, i) =>
        i === at
          ? (rehash([...trail.slice(0, at), edited(entry, { actor: "x" })]).at(-1) as AuditEntry)
          : entry,
      ),
    ),
  swap: (choose) =>
    changeTrail(
      choose,
      (trail, at) => {
        const other = (at + 1 + choose.int(trail.length - 1)) % trail.length;
        return trail.map(
          (entry, i) => (i === at ? trail[other] : i === other ? trail[at] : entry) as AuditEntry,
        );
      },
      "always found",
    ),
  insert: (choose) =>
    changeTrail(
      choose,
      (trail, at) => {
        const copy = edited(trail[choose.int(trail.length)] as AuditEntry, { seq: at + 1 });
        return [...trail.slice(0, at), copy, ...trail.slice(at)];
      },
      "always found",
    ),
  "insert and hash again": (choose) =>
    changeTrail(choose, (trail, at) =>
      rehash([
        ...trail.slice(0, at),
        edited(trail[at] as AuditEntry, { actor: "x" }),
        ...trail.slice(at),
      ]),
    ),
  "delete head": (choose) =>
    changeTrail(choose, (trail, at) => trail.slice(at + 1), "always found"),
  "delete middle": (choose) => changeTrail(choose, (trail, at) => trail.filter((_, i) => i !== at)),
  "delete middle and hash again": (choose) =>
    changeTrail(choose, (trail, at) => rehash(trail.filter((_, i) => i !== at))),
  "delete tail": (choose) => changeTrail(choose, (trail, at) => trail.slice(0, at)),
  "delete tenant": (choose) => changeTrail(choose, () => [], "always found"),
  "edit and hash all again": (choose) =>
    changeTrail(choose, (trail, at) =>
      rehash(
        trail.map((entry, i) => (i === at ? edited(entry, { data: '{"to":"approved"}' }) : entry)),
      ),
    ),
  "restore an old file": (choose) => {
    const seq = choose.int(39);
    const old = trails.map((trail) => trail.slice(0, seq));
    return {
      file: fileOf(old),
      isBlind: old.every((trail, i) => trail.length >= (anchored[i] ?? 0)),
    };
  },
};

function fileOf(all: readonly (readonly AuditEntry[])[]): Buffer {
  return Buffer.from(
    all
      .flat()
      .map((entry) => `${exportLine(entry)}\n`)
      .join(""),
  );
}

function changeTrail(
  choose: Choose,
  change: (trail: readonly AuditEntry[], at: number) => readonly AuditEntry[],
  reach: "always found" | "blind at the end" = "blind at the end",
): Mutant {
  const which = choose.int(trails.length);
  const trail = trails[which] as AuditEntry[];
  const at = choose.int(trail.length);
  const changed = trails.map((one, i) => (i === which ? change(one, at) : one));
  return {
    file: fileOf(changed),
    isBlind: reach !== "always found" && at >= (anchored[which] ?? 0),
  };
}

function changeOne(choose: Choose, change: (entry: AuditEntry) => AuditEntry): Mutant {
  const mutate = (trail: readonly AuditEntry[], at: number) =>
    trail.map((entry, i) => (i === at ? change(entry) : entry));
  return changeTrail(choose, mutate, "always found");
}

/** Another text of the same form. */
function altered(text: string, choose: Choose): string {
  const at = choose.int(text.length);
  const char = text.charAt(at) === "0" ? "1" : "0";
  return text.slice(0, at) + char + text.slice(at + 1);
}

function verifyFile(file: Buffer) {
  return verifyTrail(readExport([file]), { anchors, publicKeys: PUBLIC_KEYS });
}

test("the untouched export verifies, with its blind window [T35]", async () => {
  const report = await verifyFile(fileOf(trails));
  expect(report).toMatchObject({
    ok: true,
    entries: 102,
    anchors: 5,
    blindWindow: { entries: 22 },
  });
});

test(`${MUTATIONS} mutations, all found that reach beyond the last anchor [T35]`, async () => {
  const choose = chooser(SEED);
  const kinds = Object.entries(KINDS);
  const untouched = fileOf(trails);
  const counts = new Map(
    kinds.map(([kind]) => [kind, { tried: 0, found: 0, blind: 0, slipped: 0 }]),
  );
  const missed: string[] = [];
  for (let n = 0; n < MUTATIONS; n += 1) {
    const [kind, mutate] = kinds[n % kinds.length] as [string, Mutation];
    const { file, isBlind } = mutate(choose);
    if (file.equals(untouched)) continue;
    const { ok } = await verifyFile(file);
    const count = counts.get(kind)!;
    count.tried += 1;
    if (!ok) count.found += 1;
    if (isBlind) count.blind += 1;
    if (ok && isBlind) count.slipped += 1;
    if (ok && !isBlind) missed.push(`${kind}, mutation ${n} of seed ${SEED}`);
  }
  const total = [...counts.values()].reduce((sum, one) => sum + one.tried, 0);
  console.table(Object.fromEntries(counts));
  const { blindWindow } = await verifyFile(untouched);
  record({
    goal: "T35",
    what: "changed trails",
    figures: {
      mutations: total,
      missed: missed.length,
      "blind window max entries": blindWindow.entries,
    },
    seed: SEED,
  });
  expect(missed).toEqual([]);
  // A run in which little happened proves nothing.
  expect(total).toBeGreaterThan(MUTATIONS * 0.9);
  for (const [kind, count] of counts) expect(count.tried, kind).toBeGreaterThan(MUTATIONS / 26);
});

test("a tail that was cut with its anchors leaves a hole among the anchors [T35]", async () => {
  for (const { tenant } of anchors) {
    const cut = trails.map((trail) =>
      trail.filter((one) => one.tenant !== tenant || one.seq < EVERY),
    );
    const rest = anchors.filter((anchor) => anchor.tenant !== tenant);
    const report = await verifyTrail(cut.flat(), { anchors: rest, publicKeys: PUBLIC_KEYS });
    const wasLast = rest.every((anchor) => anchor.n <= rest.length);
    expect(report.ok, tenant).toBe(wasLast);
  }
});
