import { expect, test } from "vitest";
import { tellStory } from "../../tests/support/crash-story.ts";
import { memoryStore } from "../store/memory/index.ts";
import { collectEvidence, followEvidence } from "./evidence.ts";
import { recoveryTimes, spreadOf } from "./report.ts";

const story = await tellStory();
const OUTSIDE = { ledger: [], told: [], isAtRest: true };

test("read bit by bit, the evidence is the same as read at once", async () => {
  const store = memoryStore({});
  const { decisions } = store.tenant("acme");
  const reader = followEvidence(store, "acme");
  const draft = (session: string) => ({
    ...story.evidence.decisions[0],
    state: "pending_tech" as const,
    sessionId: session,
    executionProof: undefined,
  });
  for (const session of ["s-1", "s-2", "s-3"]) {
    await decisions.stage(draft(session) as Parameters<typeof decisions.stage>[0]);
    const bitByBit = await reader.read(OUTSIDE);
    expect(bitByBit).toEqual(await collectEvidence(store, "acme", OUTSIDE));
  }
  expect((await reader.read(OUTSIDE)).decisions).toHaveLength(3);
});

test("only the lines of its own tenant are taken from a ledger of all", async () => {
  const [effect] = story.evidence.ledger;
  if (effect === undefined) throw new Error("void: nothing happened");
  const ledger = [effect, { ...effect, key: "acme-2/x" }, { ...effect, key: "other/x" }];
  const evidence = await collectEvidence(memoryStore({}), "acme", { ...OUTSIDE, ledger });
  expect(evidence.ledger).toEqual([effect]);
});

test("a recovery is counted from the end of the lease", () => {
  const { evidence, single } = story;
  expect(recoveryTimes(evidence)).toEqual([]);
  const trail = evidence.trail.flatMap((entry) =>
    entry.subject === single && entry.type === "operation.started"
      ? [entry, { ...entry, type: "operation.taken_over", at: "2026-11-15T06:00:00.650Z" }]
      : [entry],
  );
  expect(recoveryTimes({ ...evidence, trail })).toEqual([250]);
  expect(spreadOf([5, 1, 9, 3])).toEqual({ count: 4, p50: 3, p99: 5, max: 9 });
  expect(spreadOf([])).toEqual({ count: 0, p50: 0, p99: 0, max: 0 });
});
