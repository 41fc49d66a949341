// G13, I19, T30: spoiled anchors and a spoiled task file. No rollback gets past an anchor that is left, and nothing crashes.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { anchorLine, fileAnchorSink } from "../../src/audit/anchor.ts";
import { verifyTrail } from "../../src/audit/verify.ts";
import { headAfter } from "../../src/model/audit-entry.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import { isTaskStatus, type Task } from "../../src/model/task.ts";
import type { TaskStore } from "../../src/store/tasks.ts";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { markdownTaskStore } from "../../src/tasks/markdown-task-store.ts";
import { anchorsFor, makeTrail, PUBLIC_KEYS } from "../audit/fixtures.ts";
import { createDice } from "../support/dice.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { fuzzSeed } from "./seed.ts";
import { LINE_SPOILERS } from "./spoil-bytes.ts";

const PER_KIND = scaled({ test: 40, proof: 200, full: 500 * Object.keys(LINE_SPOILERS).length });
const folder = mkdtempSync(path.join(tmpdir(), "sallyport-text-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("spoiled anchors: what an anchor that is left has seen cannot be cut off unnoticed [G13 I19 T35]", async () => {
  const seed = fuzzSeed();
  const dice = createDice(seed);
  const trail = makeTrail("acme", 48);
  const anchors = await anchorsFor(trail.filter(({ seq }) => seq % 4 === 0).map(headAfter));
  const whole = anchors.map((anchor) => `${anchorLine(anchor)}\n`);
  const file = path.join(folder, "anchors.jsonl");
  const counts = {
    mutations: 0,
    "cut off": 0,
    noticed: 0,
    "beyond the last anchor": 0,
    unnoticed: 0,
  };
  const spoilers = Object.entries(LINE_SPOILERS);
  const slipped: string[] = [];
  for (let nth = 0; nth < PER_KIND; nth += 1) {
    const [name, spoil] = spoilers[nth % spoilers.length] ?? dice.pick(spoilers);
    const old = Buffer.from(whole.slice(0, 1 + dice.below(whole.length)).join(""));
    const spoiled = spoil(Buffer.from(whole.join("")), dice, old);
    writeFileSync(file, spoiled);
    // The store is replaced by an older copy; the remaining anchors show how far it had come.
    const kept = dice.below(trail.length + 1);
    const text = spoiled.toString("utf8");
    const isLeft = anchors.some(({ seq }, at) => seq > kept && text.includes(whole[at] ?? ""));
    const { ok } = await verifyTrail(trail.slice(0, kept), {
      anchors: fileAnchorSink({ file }).read(),
      publicKeys: PUBLIC_KEYS,
    });
    counts.mutations += 1;
    if (isLeft) counts["cut off"] += 1;
    else counts["beyond the last anchor"] += 1;
    if (!ok) counts.noticed += 1;
    if (isLeft && ok) {
      counts.unnoticed += 1;
      slipped.push(`${name}, ${kept} entries left`);
    }
  }
  record({ goal: "G13", what: "spoiled anchors and an old store", figures: counts, seed });
  expect(slipped).toEqual([]);
  expect(counts["cut off"], "void: hardly any rollback").toBeGreaterThan(PER_KIND / 5);
}, 3_600_000);

test("a spoiled task file is refused with a code, or read and written without losing what was read [G13 T30]", async () => {
  const seed = fuzzSeed();
  const dice = createDice(seed);
  const good = path.join(folder, "good.md");
  const list = createTaskList({ store: markdownTaskStore({ path: good }) });
  for (let nth = 0; nth < 10; nth += 1) {
    const { id } = await list.add({ subject: `task ${nth}`, description: `lines\n- [x] ${nth}` });
    if (nth % 4 === 0) await list.claim({ id, claimer: "worker:a", leaseMs: 60_000 });
    // Given back: pending, with the fence of a claim that is over.
    if (nth % 4 === 2) {
      const { fence = 0 } = await list.claim({ id, claimer: "worker:a", leaseMs: 60_000 });
      await list.release({ id, fence });
    }
    if (nth % 5 === 1)
      await list.complete({ id, fence: "any", result: "done\n---\nstatus: failed" });
    if (nth === 4) writeFileSync(path.join(folder, "old.md"), readFileSync(good));
  }
  const bytes = readFileSync(good);
  const old = readFileSync(path.join(folder, "old.md"));
  const counts = { mutations: 0, refused: 0, read: 0, lost: 0 };
  const faults: string[] = [];
  const spoilers = Object.entries(LINE_SPOILERS);
  for (let nth = 0; nth < PER_KIND; nth += 1) {
    const [name, spoil] = spoilers[nth % spoilers.length] ?? dice.pick(spoilers);
    const file = path.join(folder, `${nth}.md`);
    writeFileSync(file, spoil(bytes, dice, old));
    const store = markdownTaskStore({ path: file });
    counts.mutations += 1;
    try {
      const before = await store.list();
      faults.push(...before.flatMap(wrongWith));
      const added = await createTaskList({ store }).add({ subject: "one more" });
      const after = await store.list();
      counts.read += 1;
      faults.push(...(await notFenced(store)));
      const lost = before.filter(
        ({ id, version }) => !after.some((one) => one.id === id && one.version === version),
      );
      counts.lost += lost.length;
      if (!after.some(({ id }) => id === added.id)) faults.push(`${name}: the new one is missing`);
    } catch (error) {
      if (!isSallyportError(error)) throw new Error(`${name}, FUZZ_SEED=${seed}`, { cause: error });
      counts.refused += 1;
    }
    rmSync(file);
  }
  record({ goal: "G13", what: "spoiled task file", figures: counts, seed });
  expect(faults).toEqual([]);
  expect(counts.lost).toBe(0);
  expect(
    Math.min(counts.read, counts.refused),
    "void: one of the two never happened",
  ).toBeGreaterThan(0);
}, 3_600_000);

/** What no edit may bring into a task that is handed out. */
function wrongWith({ id, status, version }: Task): string[] {
  const isRight = isTaskStatus(status) && Number.isSafeInteger(version) && version > 0;
  return isRight ? [] : [`task ${id} was handed out as ${status}, ${version}`];
}

/** I12: even if a version was lost or set back, the next claim gets a fence that was never used. */
async function notFenced(store: TaskStore): Promise<string[]> {
  const free = (await store.list()).find(({ status, fence }) => status === "pending" && fence);
  if (free === undefined) return [];
  const claimed = await createTaskList({ store }).claim({ id: free.id, claimer: "worker:b" });
  const grew = (claimed.fence ?? 0) > (free.fence ?? 0);
  return grew ? [] : [`task ${free.id} was claimed under fence ${claimed.fence} again`];
}
