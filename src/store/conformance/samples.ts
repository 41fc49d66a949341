import assert from "node:assert/strict";
import { type Decision, type DecisionState, type Diff, newDraft } from "../../model/decision.ts";
import { type ErrorCode, isSallyportError, SallyportError } from "../../model/errors.ts";
import type { Verdict } from "../../model/verdict.ts";
import type { DecisionHarness } from "./case.ts";

/** Data that the cases share. Time stands here until a case moves the clock. */
export const START = Date.parse("2026-11-15T06:00:00.000Z");
export const NOWHERE = "no-such-id";

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function sampleDiff(over: Partial<Diff> = {}): Diff {
  return { sourceTool: "crm.update", raw: bytes("payload"), metadata: { tenant: "acme" }, ...over };
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
