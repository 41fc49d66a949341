import assert from "node:assert/strict";
import { type AuditEntry, dataHash, entryHash, GENESIS } from "../../model/audit-entry.ts";
import type { Verdict } from "../../model/decision.ts";
import {
  DECISIONS,
  type Decision,
  type DecisionState,
  type Diff,
  newDraft,
} from "../../model/decision.ts";
import { type ErrorCode, isSallyportError, SallyportError } from "../../model/errors.ts";
import {
  type Change,
  type Conditions,
  type Engine,
  type EventPlan,
  NOW,
  type Row,
  type Step,
  type Values,
} from "../engine.ts";
import type { Intent, Outcome } from "../operations.ts";
import { type DecisionHarness, TENANT } from "./case.ts";

/** Data that the cases share. Time stands here until a case moves the clock. */
export const START = Date.parse("2026-11-15T06:00:00.000Z");
export const NOWHERE = "no-such-id";

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function sampleDiff(over: Partial<Diff> = {}): Diff {
  return { sourceTool: "crm.update", raw: utf8("payload"), metadata: { tenant: "acme" }, ...over };
}

export function sampleDraft(over: Partial<Decision> = {}, diff: Partial<Diff> = {}): Decision {
  return { ...newDraft("session-1", sampleDiff(diff), "2000-01-01T00:00:00.000Z"), ...over };
}

export function sampleVerdict(over: Partial<Verdict> = {}): Verdict {
  return {
    approved: true,
    score: 0.9,
    reason: "fits the plan",
    severity: "warn",
    validator: "reviewer",
    policyVersion: "p1",
    ...over,
  };
}

export const YES = sampleVerdict();
export const NO = sampleVerdict({ approved: false, severity: "block", reason: "not allowed" });

/** The moves that lead to each state from a fresh draft. */
const WAYS: Readonly<Record<DecisionState, readonly DecisionState[]>> = {
  pending_tech: [],
  rejected_tech: ["rejected_tech"],
  pending_ml: ["pending_ml"],
  rejected_ml: ["pending_ml", "rejected_ml"],
  approved: ["pending_ml", "approved"],
  executed: ["pending_ml", "approved", "executed"],
  failed: ["pending_ml", "approved", "failed"],
};

/** A fresh decision, led to `state` through the store's own calls. */
export async function stagedIn(
  state: DecisionState,
  { decisions }: Pick<DecisionHarness, "decisions">,
  draft: Decision = sampleDraft(),
): Promise<Decision> {
  let decision = await decisions.stage(draft);
  for (const next of WAYS[state]) decision = await moved(decisions, decision.id, next);
  assert.equal(decision.state, state);
  return decision;
}

function moved(
  decisions: DecisionHarness["decisions"],
  id: string,
  to: DecisionState,
): Promise<Decision> {
  if (to === "executed") return decisions.markExecuted(id, { receipt: 1 });
  if (to === "failed") return decisions.markFailed(id, "the bank said no");
  if (to === "pending_ml" || to === "rejected_tech") {
    return decisions.updateTechVerdict(id, to === "pending_ml" ? YES : NO);
  }
  return decisions.updateBizVerdict(id, to === "approved" ? YES : NO);
}

/** Waits for a refusal with this code; anything else, and a yes above all, fails the case. */
export async function refuses(
  code: ErrorCode,
  call: () => Promise<unknown>,
  what = "the call",
): Promise<SallyportError> {
  let error: unknown;
  try {
    await call();
  } catch (caught) {
    error = caught;
  }
  assert.notEqual(error, undefined, `${what} should have been refused with ${code}`);
  if (!isSallyportError(error, code) || !(error instanceof SallyportError)) {
    assert.fail(`${what} should have been refused with ${code}, but it threw: ${String(error)}`);
  }
  assert.equal(error.code, code);
  return error;
}

/** `count` calls asked for at once. */
export function together<Result>(
  count: number,
  call: (index: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => call(index)));
}

export const BY = { actor: "person:ada" };
export const LEASE = 30_000;

export function intent(over: Partial<Intent> = {}): Intent {
  return {
    id: "op-1",
    sessionId: "session-1",
    messageId: "m-1",
    callId: "c-1",
    turn: 1,
    tool: "billing.refund",
    effect: "external",
    definitionHash: "d".repeat(64),
    input: '{"cents":1}',
    workingDirectory: "/srv/site",
    step: 0,
    undoOf: "",
    approval: undefined,
    leaseMs: LEASE,
    actor: "executor",
    ...over,
  };
}

export function success(over: Partial<Outcome & { status: "success" }> = {}): Outcome {
  return {
    status: "success",
    output: "done \u0000 \ud800",
    truncated: false,
    storedPath: "",
    undo: undefined,
    stateVersion: "v2",
    ...over,
  };
}

/**
 * The decisions table serves as the example, because it is there in every engine and has every kind of column. The rows
 * do not have to make sense as decisions: an engine only compares and writes.
 */
export function insert(id: string, over: Values = {}): Step {
  return { op: "insert", table: DECISIONS, id, row: { ...ROW, ...over } };
}

/** Every column of the table, as null. */
export const EMPTY_ROW: Readonly<Record<string, null>> = Object.fromEntries(
  Object.keys(DECISIONS.columns).map((column) => [column, null]),
);

const ROW: Values = {
  ...EMPTY_ROW,
  session_id: "session-1",
  state: "pending_tech",
  source_tool: "crm.update",
  raw: utf8("payload"),
  diff_metadata: "{}",
  asked: 0,
  created_at: NOW,
  updated_at: NOW,
};

export function update(id: string, where: (Step & { op: "update" })["where"], set: Values): Step {
  return { op: "update", table: DECISIONS, id, where, set };
}

export function remove(id: string, where: Conditions = {}): Step {
  return { op: "delete", table: DECISIONS, id, where };
}

/** Takes the oldest one, unless it says otherwise. */
export function take(over: Partial<Omit<Step & { op: "take" }, "op" | "table">> = {}): Step {
  const usual = { where: {}, order: [], limit: 1, set: { source_tool: "taken" } };
  return { op: "take", table: DECISIONS, ...usual, ...over };
}

export function event(subject: EventPlan["subject"], data: EventPlan["data"] = {}): EventPlan {
  return { type: "case.ran", subject, session: "session-1", actor: "case", data };
}

/** A change with one event for its first record (or for each that it takes), unless it says otherwise. */
export function change(
  steps: readonly Step[],
  events: Change["events"] = steps.slice(0, 1).map(eventOf),
): Change {
  return { steps, events };
}

function eventOf(step: Step): EventPlan {
  return step.op === "take" ? { ...event({ left: "id" }), each: true } : event(step.id);
}

/** Writes what has to go through and gives the rows it left behind. */
export async function written(
  engine: Engine,
  steps: readonly Step[],
  tenant: string = TENANT,
): Promise<{ rows: readonly Row[]; at: number; seq: number }> {
  const result = await engine.commit(tenant, change(steps));
  assert.ok(result.committed, "the change should have been committed");
  assert.equal(result.rows.length, steps.length, "one row per step");
  return result;
}

export function ids(records: readonly { readonly id?: unknown }[]): readonly unknown[] {
  return records.map(({ id }) => id);
}

export function committed(results: readonly { readonly committed: boolean }[]): boolean[] {
  return results.map((result) => result.committed);
}

/** A row in a form that can be compared: drivers differ in the classes they use for bytes and rows. */
export function plain(row: Row | undefined): Record<string, unknown> | undefined {
  if (row === undefined) return undefined;
  const cells = Object.entries(row).map(([column, cell]) => [
    column,
    cell instanceof Uint8Array ? `bytes:${Buffer.from(cell).toString("hex")}` : cell,
  ]);
  return Object.fromEntries(cells);
}

/** The whole trail of a tenant, after checking that it is one unbroken chain from the first entry to the head. */
export async function soundTrail(
  engine: Engine,
  tenant: string = TENANT,
): Promise<readonly AuditEntry[]> {
  const entries = await engine.entries(tenant, { after: 0, limit: 100_000 });
  let prev = GENESIS;
  let at = "";
  for (const [index, entry] of entries.entries()) {
    const nr = `entry ${index + 1}`;
    assert.equal(entry.seq, index + 1, `${nr}: numbers are contiguous`);
    assert.equal(entry.tenant, tenant, `${nr}: belongs to its tenant`);
    assert.equal(entry.prev, prev, `${nr}: follows the one before`);
    assert.ok(entry.salt !== null && entry.data !== null, `${nr}: nothing was erased`);
    assert.equal(entry.dataHash, dataHash(entry.salt, entry.data), `${nr}: data hash`);
    assert.equal(entry.hash, entryHash(entry), `${nr}: hash`);
    assert.ok(entry.at >= at, `${nr}: time does not run backwards`);
    prev = entry.hash;
    at = entry.at;
  }
  const head = await engine.head(tenant);
  assert.equal(head.seq, entries.length, "the head counts the entries");
  assert.equal(head.hash, prev, "the head is the last entry");
  if (entries.length > 0) assert.equal(head.at, at, "the head has the time of the last entry");
  return entries;
}
