// G13, I17, I19, I20: files changed by a disk, a copy or a person. Each read returns the original or reports the damage.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fileAnchorSink } from "../../src/audit/anchor.ts";
import { verifyStore } from "../../src/audit/verify.ts";
import { compareRecords } from "../../src/crashkit/compare-records.ts";
import { collectEvidence, type RunEvidence } from "../../src/crashkit/evidence.ts";

import { checkInvariants, OF_THE_STORE } from "../../src/crashkit/invariants/table.ts";
import type { Decision } from "../../src/model/decision.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import type { Interaction } from "../../src/model/interaction.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { createDice } from "../support/dice.ts";
import { TENANT } from "../support/port-world.ts";
import { record } from "../support/record.ts";
import { SCALE, scaled } from "../support/scale.ts";
import { fuzzSeed } from "./seed.ts";
import { SPOILERS } from "./spoil-bytes.ts";
import { makeStoreFiles, type StoreFiles } from "./store-files.ts";

/** For each kind of file; with `full`, for each way to spoil it. */
const PER_KIND = scaled({ test: 40, proof: 200, full: 500 * Object.keys(SPOILERS).length });
const OUTSIDE = { ledger: [], told: [], isAtRest: false } as const;

// In memory where there is such a place: what is spoiled was written long ago.
const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const folder = mkdtempSync(path.join(base, "sallyport-files-"));
let files: StoreFiles;
let good: RunEvidence;
let count = 0;

beforeAll(async () => {
  files = await makeStoreFiles(folder);
  const { read } = await look({ "": files.database }, files.anchors);
  if (read === undefined) throw new Error("the good store cannot be read");
  good = read;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Looked {
  /** What a reader gets, undefined when it is refused. */
  readonly read: RunEvidence | undefined;
  /** The reported reason why this store is not to be trusted; empty when there is none. */
  readonly noticed: readonly string[];
}

/** Opens the store as anybody would, reads everything, and verifies it. What is thrown without a code comes out. */
async function look(parts: Readonly<Record<string, Buffer>>, anchors: Buffer): Promise<Looked> {
  count += 1;
  const file = path.join(folder, `${count}.db`);
  for (const [end, bytes] of Object.entries(parts)) writeFileSync(`${file}${end}`, bytes);
  const noticed: string[] = [];
  let store: Store | undefined;
  let read: RunEvidence | undefined;
  try {
    store = sqliteStore({ file, patienceMs: 50 });
    const report = await verifyStore(store, {
      anchors: anchorsIn(anchors),
      publicKeys: files.publicKeys,
    });
    noticed.push(...report.problems.map((problem) => JSON.stringify(problem)));
    read = await collectEvidence(store, TENANT, OUTSIDE);
    noticed.push(...checkInvariants(read, OF_THE_STORE).map(({ problem }) => problem));
    noticed.push(...compareRecords(read));
  } catch (error) {
    // Of a trail that was found to be broken, nothing more can be said.
    if (!isSallyportError(error) && noticed.length === 0) throw error;
    noticed.push(String(error));
    read = undefined;
  } finally {
    await store?.close().catch((error: unknown) => {
      if (!isSallyportError(error)) throw error;
    });
    for (const end of ["", "-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
  }
  return { read, noticed };
}

function anchorsIn(bytes: Buffer) {
  const file = path.join(folder, `${count}-anchors.jsonl`);
  writeFileSync(file, bytes);
  return fileAnchorSink({ file }).read();
}

/** What would run, what is shown about it, who asked, who decided, and what became of it. */
const FACTS = {
  decisions: ["id", "sessionId", "state", "updatedAt", "executionProof"],
  previews: ["decisionId", "actionHash", "dryRun", "stateVersion", "safetyClass", "requires"],
  operations: [
    "id",
    "sessionId",
    "tool",
    "definitionHash",
    "input",
    "status",
    "fence",
    "output",
    "undo",
    "stateVersion",
  ],
  interactions: [
    "id",
    "type",
    "status",
    "sessionId",
    "hash",
    "decisionId",
    "displayText",
    "answer",
    "votes",
  ],
  trail: ["seq", "type", "subject", "session", "actor", "at", "data", "hash"],
} as const;

/** Where what was read differs from what was written; empty when it does not. */
function changesIn(read: RunEvidence): string[] {
  const nouns = Object.keys(FACTS) as (keyof typeof FACTS)[];
  return nouns.flatMap((noun) => {
    const before = good[noun].map((record) => factsOf(noun, record));
    const after = read[noun].map((record) => factsOf(noun, record));
    if (before.length !== after.length) return [`${noun}: ${after.length} of ${before.length}`];
    return before.flatMap((one, index) => differences(`${noun} ${index}`, one, after[index] ?? {}));
  });
}

function factsOf(noun: keyof typeof FACTS, record: object): Record<string, unknown> {
  const all = record as Record<string, unknown>;
  const named = Object.fromEntries(FACTS[noun].map((name) => [name, all[name]]));
  const { diff, pendingTool, type } = all as Partial<Decision & Interaction>;
  if (noun === "decisions") return { ...named, raw: diff?.raw, tool: diff?.sourceTool };
  if (noun === "interactions" && type === "confirm") {
    return { ...named, pendingTool, chain: all["chain"], requires: all["requires"] };
  }
  return named;
}

function differences(where: string, before: object, after: object): string[] {
  const values = after as Record<string, unknown>;
  return Object.entries(before)
    .filter(([name, value]) => !isDeepStrictEqual(value, values[name]))
    .map(([name]) => `${where} ${name}`);
}

/** Spoils one file again and again; whatever is read and differs must have been noticed. */
async function spoilAll(
  what: string,
  bytes: Buffer,
  old: Buffer,
  lookAt: (changed: Buffer) => Promise<Looked>,
): Promise<void> {
  const seed = fuzzSeed();
  const dice = createDice(`${seed} ${what}`);
  const counts = { mutations: 0, refused: 0, noticed: 0, "as it was": 0, "served as good": 0 };
  const slipped: string[] = [];
  const spoilers = Object.entries(SPOILERS);
  for (let nth = 0; nth < PER_KIND; nth += 1) {
    const [name, spoil] = spoilers[nth % spoilers.length] ?? dice.pick(spoilers);
    const changed = spoil(bytes, dice, old);
    const { read, noticed } = await lookAt(changed).catch((error: unknown) => {
      throw new Error(`${name} on ${what}, FUZZ_SEED=${seed}`, { cause: error });
    });
    counts.mutations += 1;
    const changes = read === undefined ? [] : changesIn(read);
    if (read === undefined) counts.refused += 1;
    else if (noticed.length > 0) counts.noticed += 1;
    else if (changes.length === 0) counts["as it was"] += 1;
    else {
      counts["served as good"] += 1;
      slipped.push(`${name}: ${changes.slice(0, 4).join(", ")}`);
    }
  }
  record({ goal: "G13", what: `spoiled ${what}`, figures: counts, seed });
  if (SCALE !== "test") console.info(`spoiled ${what}:`, counts);
  expect(slipped).toEqual([]);
  expect(counts.mutations, "void: too few mutations").toBeGreaterThanOrEqual(PER_KIND);
  expect(counts.refused + counts.noticed, "void: hardly anything was hit").toBeGreaterThan(
    PER_KIND / 5,
  );
}

test("a spoiled database file is refused or noticed, or says what it said [G13 I19 I20]", async () => {
  await spoilAll("database", files.database, files.old, (changed) =>
    look({ "": changed }, files.anchors),
  );
}, 3_600_000);

test("a spoiled write-ahead log is refused or noticed, or says what it said [G13 I19]", async () => {
  await spoilAll(
    "write-ahead log",
    files.wal,
    files.wal.subarray(0, files.wal.length / 2),
    (changed) => look({ "": files.main, "-wal": changed }, files.anchors),
  );
}, 3_600_000);
