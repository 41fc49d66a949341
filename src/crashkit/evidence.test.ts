import { expect, test } from "vitest";
import { tellStory } from "../../tests/support/crash-story.ts";
import type { Decision, Verdict } from "../model/decision.ts";
import type { Interaction } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import { memoryStore } from "../store/memory/index.ts";
import { compareRecords } from "./compare-records.ts";
import { collectEvidence, followEvidence, type RunEvidence } from "./evidence.ts";
import { recoveryTimes, spreadOf } from "./report.ts";

const story = await tellStory();
const OUTSIDE = { ledger: [], told: [], isAtRest: true };

test("evidence read incrementally equals evidence read in one go", async () => {
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
    const incremental = await reader.read(OUTSIDE);
    expect(incremental).toEqual(await collectEvidence(store, "acme", OUTSIDE));
  }
  expect((await reader.read(OUTSIDE)).decisions).toHaveLength(3);
});

test("only ledger lines of the tenant are used", async () => {
  const [effect] = story.evidence.ledger;
  if (effect === undefined) throw new Error("void: nothing happened");
  const ledger = [effect, { ...effect, key: "acme-2/x" }, { ...effect, key: "other/x" }];
  const evidence = await collectEvidence(memoryStore({}), "acme", { ...OUTSIDE, ledger });
  expect(evidence.ledger).toEqual([effect]);
});

test("a recovery time is counted from the end of the lease", () => {
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

// Each compared field must be able to fail: records of a clean run, with one field of one record changed. Answers of people
// and versions of targets are in tests/gate/tampered-records.test.ts.

const { evidence } = story;

test("the records of a clean run agree with the audit log", () => {
  expect(compareRecords(evidence)).toEqual([]);
});

type Forge<Noun> = (record: Noun) => Partial<Noun>;
const OTHER = "another one";

const verdicts =
  (over: Partial<Verdict>): Forge<Decision> =>
  ({ techVerdict, bizVerdict }) => ({
    techVerdict: { ...techVerdict, ...over },
    bizVerdict: { ...bizVerdict, ...over },
  });

const DECISIONS: readonly (readonly [what: string, forge: Forge<Decision>])[] = [
  ["session", () => ({ sessionId: OTHER })],
  ["payload", ({ diff }) => ({ diff: { ...diff, raw: new Uint8Array(1) } })],
  ["source tool", ({ diff }) => ({ diff: { ...diff, sourceTool: OTHER } })],
  ["proof", () => ({ executionProof: { done: OTHER } })],
  ["failure", () => ({ executionError: OTHER })],
  ["reviewer", verdicts({ validator: OTHER })],
  ["score", verdicts({ score: 0.123 })],
  ["severity", verdicts({ severity: "block" })],
  ["reason", verdicts({ reason: OTHER })],
  ["policy version", verdicts({ policyVersion: OTHER })],
  ["owner", ({ metadata }) => ({ metadata: { ...metadata, owner: OTHER } })],
  ["origin", ({ origin: _, ...rest }) => ({ ...rest, origin: undefined as never })],
];

const QUESTIONS: readonly (readonly [what: string, forge: Forge<Interaction>])[] = [
  ["session", () => ({ sessionId: OTHER })],
  ["kind", ({ type }) => ({ type: type === "confirm" ? "ask_user" : "confirm" })],
  ["hash", () => ({ hash: OTHER })],
  ["decision", () => ({ decisionId: OTHER })],
  ["operation", () => ({ operationId: OTHER })],
  ["reason", () => ({ reason: OTHER })],
  ["votes", () => ({ votes: [{ by: "person:eve", factor: "" }] })],
  ["text", () => ({ displayText: OTHER })],
  ["chain", () => ({ chain: [OTHER] })],
  ["requirement", ({ requires }) => ({ requires: { ...requires, people: 7 } })],
  ["deadline", () => ({ deadline: "2031-01-01T00:00:00.000Z" })],
  ["call", ({ pendingTool }) => ({ pendingTool: { ...pendingTool, tool: OTHER } as never })],
];

const OPERATIONS: readonly (readonly [what: string, forge: Forge<Operation>])[] = [
  ["session", () => ({ sessionId: OTHER })],
  ["tool", () => ({ tool: OTHER })],
  ["definition", () => ({ definitionHash: OTHER })],
  ["input", () => ({ input: '"another one"' })],
  ["decision", () => ({ decisionId: OTHER })],
  ["step", () => ({ step: 77 })],
  ["target", () => ({ undoOf: OTHER })],
  ["chain", () => ({ chain: [OTHER] })],
  ["output", () => ({ output: OTHER })],
  ["undo", () => ({ undo: { tool: OTHER, input: {} } as never })],
];

/** For how many records the change is found, one by one. */
function shown<Noun extends { readonly id: string }>(
  records: readonly Noun[],
  forge: Forge<Noun>,
  what: string,
  among: (records: readonly Noun[]) => Partial<RunEvidence>,
): number {
  return records.filter((record) => {
    const forged = records.map((one) => (one === record ? { ...one, ...forge(one) } : one));
    const problems = compareRecords({ ...evidence, ...among(forged) });
    return problems.includes(`the ${what} of ${record.id} is not the one in the audit log`);
  }).length;
}

test.each(DECISIONS)("a changed %s of a decision is found [I19]", (what, forge) => {
  const count = shown(evidence.decisions, forge, what, (decisions) => ({ decisions }));
  expect(count).toBeGreaterThan(0);
});

test("a changed chain of a decision is found without questions and operations too [I19]", () => {
  const forge: Forge<Decision> = ({ metadata }) => ({ metadata: { ...metadata, chain: [OTHER] } });
  const alone = (decisions: readonly Decision[]) => ({
    decisions,
    interactions: [],
    operations: [],
  });
  const count = shown(evidence.decisions, forge, "chain", alone);
  const staged = evidence.decisions.filter(({ metadata }) => Array.isArray(metadata["chain"]));
  expect(count).toBe(staged.length);
});

test.each(QUESTIONS)("a changed %s of a question is found [I19]", (what, forge) => {
  const count = shown(evidence.interactions, forge, what, (interactions) => ({ interactions }));
  expect(count).toBeGreaterThan(0);
});

test.each(OPERATIONS)("a changed %s of an operation is found [I19]", (what, forge) => {
  const count = shown(evidence.operations, forge, what, (operations) => ({ operations }));
  expect(count).toBeGreaterThan(0);
});

test("a changed preview of a decision is found, and a missing one [I19]", () => {
  const changed = evidence.previews.map((preview) => ({ ...preview, nonce: OTHER }));
  for (const previews of [changed, []]) {
    const problems = compareRecords({ ...evidence, previews });
    expect(problems.filter((problem) => problem.startsWith("the preview of"))).not.toEqual([]);
  }
});
