// Each field that is compared must be able to show: records of a clean run, with one field of one record made wrong. What
// people answer to questions, and versions of targets, are in tests/gate/tampered-records.test.ts.

import { expect, test } from "vitest";
import { tellStory } from "../../../tests/support/crash-story.ts";
import type { Decision } from "../../model/decision.ts";
import type { Interaction } from "../../model/interaction.ts";
import type { Operation } from "../../model/operation.ts";
import type { Verdict } from "../../model/verdict.ts";
import { compareRecords } from "../compare-records.ts";
import type { Evidence } from "../evidence.ts";

const { evidence } = await tellStory();

test("the records of a clean run are as the trail tells", () => {
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
  ["way back", () => ({ undo: { tool: OTHER, input: {} } as never })],
];

/** Of how many records it shows when they are changed one by one. */
function shown<Noun extends { readonly id: string }>(
  records: readonly Noun[],
  forge: Forge<Noun>,
  what: string,
  among: (records: readonly Noun[]) => Partial<Evidence>,
): number {
  return records.filter((record) => {
    const forged = records.map((one) => (one === record ? { ...one, ...forge(one) } : one));
    const problems = compareRecords({ ...evidence, ...among(forged) });
    return problems.includes(`the ${what} of ${record.id} is not the one that the trail tells of`);
  }).length;
}

test.each(DECISIONS)("I19 another %s of a decision shows", (what, forge) => {
  const count = shown(evidence.decisions, forge, what, (decisions) => ({ decisions }));
  expect(count).toBeGreaterThan(0);
});

test("I19 another chain of a decision shows, also where nobody was asked and nothing has run", () => {
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

test.each(QUESTIONS)("I19 another %s of a question shows", (what, forge) => {
  const count = shown(evidence.interactions, forge, what, (interactions) => ({ interactions }));
  expect(count).toBeGreaterThan(0);
});

test.each(OPERATIONS)("I19 another %s of an operation shows", (what, forge) => {
  const count = shown(evidence.operations, forge, what, (operations) => ({ operations }));
  expect(count).toBeGreaterThan(0);
});

test("I19 another preview of a decision shows, and one that is gone", () => {
  const changed = evidence.previews.map((preview) => ({ ...preview, nonce: OTHER }));
  for (const previews of [changed, []]) {
    const problems = compareRecords({ ...evidence, previews });
    expect(problems.filter((problem) => problem.startsWith("the preview of"))).not.toEqual([]);
  }
});
