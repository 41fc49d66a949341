import type { DecisionId } from "../model/decision.ts";
import type { Operation, OperationId } from "../model/operation.ts";

/** In the order in which a person wants to read them: what is left to do comes before what is settled. */
export const ROLLBACK_OUTCOMES = [
  "failed",
  "conflicted",
  "unfinished",
  "pending",
  "irreversible",
  "undone",
  "skipped",
] as const;

/**
 * - `undone`: taken back by this rollback.
 * - `failed`: the compensation ran and failed, or was denied; a later rollback tries it again.
 * - `conflicted`: the target was changed since; taking it back would destroy that change.
 * - `pending`: the compensation waits for a person's approval; nothing was executed.
 * - `unfinished`: an outcome is not known yet, its own, its compensation's, or that of one it has to wait for.
 * - `irreversible`: there is no call that takes it back; the guide says what a person can do.
 * - `skipped`: nothing to do: it failed, was taken back before, or takes something back itself.
 */
export type RollbackOutcome = (typeof ROLLBACK_OUTCOMES)[number];

export interface RollbackEntry {
  readonly operationId: OperationId;
  readonly tool: string;
  /** For people. */
  readonly description: string;
  readonly reason: string;
  /** What a person can do by hand; empty where nothing is left to do. */
  readonly guide: string;
  /** The compensation, empty when none was tried. */
  readonly undoOperationId: OperationId | "";
  /** The approval it waits for, empty otherwise. */
  readonly decisionId: DecisionId | "";
}

/** Every operation of the scope exactly once, newest first within each list. */
export type RollbackReport = Readonly<Record<RollbackOutcome, readonly RollbackEntry[]>>;

/** What was found out about one operation. */
export interface RollbackFinding {
  readonly outcome: RollbackOutcome;
  readonly reason: string;
  readonly undoOperationId?: OperationId;
  readonly decisionId?: DecisionId;
}

export function reportOf(
  findings: readonly { readonly operation: Operation; readonly finding: RollbackFinding }[],
): RollbackReport {
  const listOf = (outcome: RollbackOutcome) =>
    findings.filter(({ finding }) => finding.outcome === outcome).map(entryOf);
  return {
    failed: listOf("failed"),
    conflicted: listOf("conflicted"),
    unfinished: listOf("unfinished"),
    pending: listOf("pending"),
    irreversible: listOf("irreversible"),
    undone: listOf("undone"),
    skipped: listOf("skipped"),
  };
}

/** Those that are neither taken back nor in need of it: somebody has to look at them. Empty when all is well. */
export function leftOver(report: RollbackReport): readonly RollbackEntry[] {
  const { undone, skipped, ...open } = report;
  return Object.values(open).flat();
}

const NO_GUIDE = "Look at what the call did and take it back by hand where that is needed.";

function entryOf({
  operation,
  finding,
}: {
  readonly operation: Operation;
  readonly finding: RollbackFinding;
}): RollbackEntry {
  const { outcome, reason, undoOperationId = "", decisionId = "" } = finding;
  const isSettled = outcome === "undone" || outcome === "skipped";
  return {
    operationId: operation.id,
    tool: operation.tool,
    description: operation.undo?.description ?? "",
    reason,
    guide: isSettled ? "" : operation.undo?.manualGuide || NO_GUIDE,
    undoOperationId,
    decisionId,
  };
}
