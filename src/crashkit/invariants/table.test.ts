// Each invariant must be able to fail: evidence of a clean run, with one thing changed.

import { expect, test } from "vitest";
import { type StoryEvidence, tellStory } from "../../../tests/support/crash-story.ts";
import { tableRows } from "../../../tests/support/source-files.ts";
import type { AuditEntry } from "../../model/audit-entry.ts";
import type { LedgerEntry, RunEvidence } from "../evidence.ts";
import { checkInvariants, INVARIANTS } from "./table.ts";

const story = await tellStory();

test("evidence of a clean run breaks no invariant", () => {
  expect(checkInvariants(story.evidence)).toEqual([]);
  expect(story.evidence.ledger.length, "void: nothing happened").toBeGreaterThan(7);
  expect(Object.values(story), "void: a part of the story is missing").not.toContain("");
});

type Forge = (evidence: RunEvidence, told: StoryEvidence) => Partial<RunEvidence>;

/** Violations of each invariant; the sentence is part of the reported problem. */
const FORGERIES: readonly (readonly [id: string, sentence: string, forge: Forge])[] = [
  ["I1", "nothing allowed it", ({ ledger }) => ({ ledger: [...ledger, stranger(ledger)] })],
  ["I1", "no person was asked", () => ({ mayRunAlone: () => false })],
  [
    "I1",
    "there is no decision",
    ({ decisions }, { executed }) => ({ decisions: without(decisions, executed) }),
  ],
  ["I1", "other bytes than were sent", effectOf("single", { inputSha256: "0".repeat(64) })],
  [
    "I1",
    "is not what was shown",
    decisionOf("executed", { diff: { sourceTool: "", raw: new Uint8Array(1), metadata: {} } }),
  ],
  ["I1", "is not that of what was shown", questionOf("executed", { hash: "another" })],
  ["I1", "the question about", questionOf("executed", { outcome: "rejected" })],
  ["I1", "another definition", operationOf("single", { definitionHash: "changed" })],
  ["I1", "names another tool", operationOf("single", { tool: "w.back" })],
  ["I1", "had not succeeded", withoutLine("undone", "operation.succeeded")],
  ["I1", "there was no rule", withoutType("standing_rule.made")],
  ["I1", "had been revoked", insertAfter("standing_rule.made", { type: "standing_rule.revoked" })],
  [
    "I1",
    "had expired",
    ({ trail }, { ruled }) => ({
      trail: trail.map((entry) =>
        entry.subject === ruled ? { ...entry, at: "2027-01-01T00:00:00.000Z" } : entry,
      ),
    }),
  ],
  ["I2", "than are stored", operationOf("single", { input: '{"by":2}' })],
  ["I2", "than the audit log says", lineOf("single", "operation.started", { input_hmac: "0" })],
  ["I2", "than were staged", lineOf("executed", "decision.staged", { raw_hmac: "0" })],
  ["I2", "another hash than was shown", lineOf("executed", "interaction.opened", { hash: "0" })],
  ["I3", "who asked for it", questionOf("executed", { chain: ["Person: Ada"] })],
  [
    "I3",
    "approved by agent:",
    questionOf("executed", { votes: [{ by: "agent:x", factor: "review" }] }),
  ],
  [
    "I3",
    "counts one person twice",
    questionOf("executed", {
      votes: ["person:bo", "Person:BO"].map((by) => ({ by, factor: "review" })),
    }),
  ],
  ["I3", "too few votes", questionOf("executed", { votes: [] })],
  ["I4", "was started while", withoutLine("executed", "decision.reviewed")],
  [
    "I4",
    "had expired",
    ({ previews }, { executed }) => ({
      previews: previews.map((one) =>
        one.decisionId === executed ? { ...one, expiresAt: "2026-11-15T05:00:00.000Z" } : one,
      ),
    }),
  ],
  ["I4", "everything was stopped", withoutType("switch.resumed")],
  ["I5", "without an intent", ({ ledger }) => ({ ledger: [...ledger, stranger(ledger)] })],
  ["I5", "which was never issued", effectOf("single", { fence: 9 })],
  ["I5", "before its intent was stored", effectOf("single", { at: 0 })],
  ["I6", "without a stored outcome", withoutLine("single", "operation.succeeded")],
  [
    "I6",
    "production has no effect",
    ({ ledger }, { free }) => ({ ledger: ledger.filter(({ key }) => key !== `acme/${free}`) }),
  ],
  ["I7", "took effect 2 times", twice("single", "keyed")],
  ["I7", "was tried 2 times", twice("single", "plain")],
  [
    "I7",
    "was used by",
    ({ operations }, { single }) => ({
      operations: [
        ...operations,
        ...operations.filter(({ id }) => id === single).map((one) => ({ ...one, id: "again" })),
      ],
    }),
  ],
  ["I9", "but it is failed", operationOf("single", { status: "failed" })],
  [
    "I9",
    "but it is gone",
    ({ operations }, { free }) => ({ operations: without(operations, free) }),
  ],
  [
    "I9",
    "was reported, but it is gone",
    ({ decisions }, { waiting }) => ({ decisions: without(decisions, waiting) }),
  ],
  ["I9", "it never was approved", withoutLine("executed", "decision.reviewed")],
  [
    "I10",
    "was closed 2 times",
    ({ trail }) => ({
      trail: trail.flatMap((entry) =>
        entry.type === "interaction.answered" ? [entry, entry] : [entry],
      ),
    }),
  ],
  ["I10", "is open again", questionOf("executed", { status: "open" })],
  ["I10", "is expired, but it is executed", questionOf("executed", { outcome: "expired" })],
  [
    "I12",
    "was started again under fence 1",
    insertAfter("operation.started", { type: "operation.taken_over" }),
  ],
  [
    "I12",
    "the newest was 2",
    insertAfter("operation.started", { type: "operation.taken_over", data: '{"fence":2}' }),
  ],
  ["I13", "after 2026", questionOf("executed", { deadline: "2026-11-15T05:00:00.000Z" })],
  [
    "I13",
    "which was over",
    insertAfter("operation.started", { type: "operation.taken_over", data: '{"fence":2}' }),
  ],
  ["I14", "is still open", operationOf("single", { status: "started" })],
  ["I14", "is unknown, and no person is asked", operationOf("single", { status: "unknown" })],
  ["I14", "no process executes it", decisionOf("executed", { state: "approved" })],
  ["I14", "is pending_ml, and no person is asked", questionOf("waiting", { status: "resolved" })],
  [
    "I15",
    "went from",
    lineOf("executed", "decision.executed", { from: "pending_tech", to: "executed" }),
  ],
  [
    "I15",
    "went from approved to pending_ml",
    lineOf("executed", "decision.executed", { from: "approved", to: "pending_ml" }),
  ],
  [
    "I15",
    "was success when operation.failed",
    insertAfter("operation.succeeded", { type: "operation.failed" }),
  ],
  ["I17", "wrong_data", lineOf("executed", "decision.executed", { more: 1 })],
  ["I17", "gap", ({ trail }) => ({ trail: trail.filter(({ seq }) => seq !== 5) })],
  ["I17", "missing_start", ({ trail }) => ({ trail: trail.slice(1) })],
  ["I17", "out_of_order", ({ trail }) => ({ trail: [...trail, ...trail.slice(-1)] })],
  [
    "I17",
    "is of other",
    ({ trail }) => ({ trail: trail.map((entry) => ({ ...entry, tenant: "other" })) }),
  ],
  ["I18", "older than the one before", ({ trail }) => ({ trail: trail.toReversed() })],
  [
    "I18",
    "operation.started) comes before its cause",
    withoutLine("executed", "decision.reviewed"),
  ],
  [
    "I18",
    "operation.succeeded) comes before its cause",
    withoutLine("single", "operation.started"),
  ],
  ["I18", "operation.undone) comes before its cause", withoutLine("undo", "operation.succeeded")],
  [
    "I18",
    "interaction.answered) comes before its cause",
    withoutLine("executed", "interaction.opened"),
  ],
  ["I20", "is stored as failed since", decisionOf("executed", { state: "failed" })],
  ["I20", "since 2026-11-15T07", decisionOf("executed", { updatedAt: "2026-11-15T07:00:00.000Z" })],
  ["I20", "is stored as failed under 1", operationOf("single", { status: "failed" })],
  ["I20", "is stored as success under 2", operationOf("single", { fence: 2 })],
  ["I20", "is stored as open", questionOf("executed", { status: "open" })],
  [
    "I20",
    "it is not stored",
    ({ operations }, { single }) => ({ operations: without(operations, single) }),
  ],
  [
    "I20",
    "the log says not there",
    ({ trail }, { single }) => ({ trail: trail.filter(({ subject }) => subject !== single) }),
  ],
  [
    "I28",
    "2 operations undo",
    ({ operations }, { undo }) => ({
      operations: [
        ...operations,
        ...operations.filter(({ id }) => id === undo).map((one) => ({ ...one, id: `${undo}.2` })),
      ],
    }),
  ],
  ["I28", "was undone 2 times", twice("undo", "keyed")],
  ["I28", "is rolled back by 0 calls", operationOf("single", { status: "rolled_back" })],
  ["I28", "was undone, but is success", operationOf("undone", { status: "success" })],
  ["I28", "but step 0 is not", operationOf("single", { status: "failed" })],
  [
    "I28",
    "neither undone nor reported",
    ({ operations, decisions }, { failed }) => ({
      operations: operations
        .filter(({ undoOf }) => !undoOf.startsWith(failed))
        .map((one) => ({ ...one, status: "success" as const })),
      decisions: decisions.map((one) =>
        one.id === failed ? { ...one, executionError: "refused" } : one,
      ),
    }),
  ],
  [
    "I29",
    "free was started as",
    ({ operations }, { free }) => ({
      operations: [
        ...operations,
        ...operations.filter(({ id }) => id === free).map((one) => ({ ...one, id: "again" })),
      ],
    }),
  ],
  [
    "I29",
    "c-8-0 was asked about as",
    ({ interactions }, { waiting }) => ({
      interactions: [
        ...interactions,
        ...interactions.filter(({ id }) => id === waiting).map((one) => ({ ...one, id: "again" })),
      ],
    }),
  ],
  ["I30", "while everything was stopped", withoutType("switch.resumed")],
];

test.each(FORGERIES)("%s reports: %s", (id, sentence, forge) => {
  const forged = { ...story.evidence, ...forge(story.evidence, story) };
  const found = checkInvariants(forged, [id as `I${number}`]);
  expect(found.map(({ problem }) => problem).join("\n")).toContain(sentence);
  expect(new Set(found.map((one) => one.id))).toEqual(new Set([id]));
});

test.each([
  ["confirm", 1],
  ["ask_user", 1],
  ["connection_lost", 0],
] as const)("I13 finds %s answered after its deadline %i times", (type, times) => {
  const late = questionOf("executed", { type, deadline: "2026-11-15T05:00:00.000Z" });
  const forged = { ...story.evidence, ...late(story.evidence, story) };
  expect(checkInvariants(forged, ["I13"])).toHaveLength(times);
});

test("docs/reference/crashkit.md lists the invariants of the table", () => {
  const listed = tableRows("docs/reference/crashkit.md", "invariant").map((row) => {
    return { id: row["invariant"], text: row["what must hold"] };
  });
  expect(listed).toEqual(INVARIANTS.map(({ id, text }) => ({ id, text })));
});

test("every invariant of the table has a violation here", () => {
  const forged = new Set<string>(FORGERIES.map(([id]) => id));
  expect(INVARIANTS.map(({ id }) => id).filter((id) => !forged.has(id))).toEqual([]);
});

test("erased data is no violation, and running operations need not have ended before rest", () => {
  const trail = story.evidence.trail.map((entry) => ({ ...entry, data: null, salt: null }));
  const erased = checkInvariants({ ...story.evidence, trail }, ["I2", "I15", "I17", "I20"]);
  expect(erased).toEqual([]);
  const operations = story.evidence.operations.map((one) => ({
    ...one,
    status: "started" as const,
  }));
  expect(checkInvariants({ ...story.evidence, operations, isAtRest: false }, ["I14"])).toEqual([]);
});

type Name = Exclude<keyof StoryEvidence, "evidence">;

function stranger(ledger: readonly LedgerEntry[]): LedgerEntry {
  return { ...(ledger[0] as LedgerEntry), key: "acme/nobody" };
}

function without<One extends { readonly id: string }>(all: readonly One[], id: string) {
  return all.filter((one) => one.id !== id);
}

function effectOf(name: Name, change: Partial<LedgerEntry>): Forge {
  return ({ ledger }, told) => ({
    ledger: ledger.map((one) => (one.key === `acme/${told[name]}` ? { ...one, ...change } : one)),
  });
}

function twice(name: Name, kind: LedgerEntry["kind"]): Forge {
  return ({ ledger }, told) => {
    const own = ledger.filter(({ key }) => key === `acme/${told[name]}`);
    const others = ledger.filter((effect) => !own.includes(effect));
    return { ledger: [...others, ...own, ...own].map((one) => ({ ...one, kind })) };
  };
}

function operationOf(name: Name, change: Partial<RunEvidence["operations"][number]>): Forge {
  return ({ operations }, told) => ({
    operations: operations.map((one) => (one.id === told[name] ? { ...one, ...change } : one)),
  });
}

function decisionOf(name: Name, change: Partial<RunEvidence["decisions"][number]>): Forge {
  return ({ decisions }, told) => ({
    decisions: decisions.map((one) => (one.id === told[name] ? { ...one, ...change } : one)),
  });
}

function questionOf(name: Name, change: Partial<RunEvidence["interactions"][number]>): Forge {
  return ({ interactions }, told) => ({
    interactions: interactions.map((one) => (one.id === told[name] ? { ...one, ...change } : one)),
  });
}

function lineOf(name: Name, type: string, data: Readonly<Record<string, unknown>>): Forge {
  return ({ trail }, told) => ({
    trail: trail.map((entry) =>
      entry.subject === told[name] && entry.type === type
        ? { ...entry, data: JSON.stringify({ ...JSON.parse(entry.data ?? "{}"), ...data }) }
        : entry,
    ),
  });
}

function withoutLine(name: Name, type: string): Forge {
  return ({ trail }, told) => ({
    trail: trail.filter((entry) => entry.subject !== told[name] || entry.type !== type),
  });
}

function withoutType(type: string): Forge {
  return ({ trail }) => ({ trail: trail.filter((entry) => entry.type !== type) });
}

/** A second entry of the same record after each of this type. */
function insertAfter(type: string, change: Partial<AuditEntry>): Forge {
  return ({ trail }) => ({
    trail: trail.flatMap((entry) =>
      entry.type === type ? [entry, { ...entry, ...change, seq: entry.seq + 0.5 }] : [entry],
    ),
  });
}
