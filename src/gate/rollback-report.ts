// What a rollback reports about each operation, and the report as text.

import type { DecisionId } from "../model/decision.ts";
import type { Operation, OperationId } from "../model/operation.ts";
import { oneLine } from "../util/error-text.ts";

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
 * - `undone`: undone by this rollback.
 * - `failed`: the compensation ran and failed, or was denied; a later rollback tries it again.
 * - `conflicted`: the target was changed since; taking it back would destroy that change.
 * - `pending`: the compensation waits for a person's approval; nothing was executed.
 * - `unfinished`: an outcome is not known yet, its own, its compensation's, or that of one it has to wait for.
 * - `irreversible`: there is no call that takes it back; the guide says what a person can do.
 * - `skipped`: nothing to do: it failed, was undone before, or is an undo itself.
 */
type RollbackOutcome = (typeof ROLLBACK_OUTCOMES)[number];

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

/** Those that are neither undone nor skipped: a person has to look at them. Empty when all is well. */
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

const HEADINGS: Readonly<Record<RollbackOutcome, string>> = {
  failed: "Could not be undone",
  conflicted: "Not undone, because the target was changed since",
  unfinished: "Not undone, because an outcome is not known yet",
  pending: "Not undone yet, waiting for approval",
  irreversible: "Cannot be undone by a call",
  undone: "Undone",
  skipped: "Nothing to do",
};

/**
 * A report as plain text, for people and for the model. The first line says whether the rollback is complete, for readers who
 * stop there; what is left to do comes before what is done.
 *
 *     console.log(describeRollback(await session.rollback("person:ada")));
 */
export function describeRollback(report: RollbackReport): string {
  const sections = ROLLBACK_OUTCOMES.filter((outcome) => report[outcome].length > 0).map(
    (outcome) => {
      const entries = report[outcome];
      const lines = entries.flatMap(linesOf);
      return [`${HEADINGS[outcome]} (${entries.length}):`, ...lines].join("\n");
    },
  );
  return [summaryOf(report), ...sections].join("\n\n");
}

function summaryOf(report: RollbackReport): string {
  const done = report.undone.length;
  const open = leftOver(report).length;
  if (open > 0) {
    return `The rollback is not complete: ${count(done)} undone, ${open} left. What is left is still in effect, or may be.`;
  }
  if (done === 0) return "There was nothing to undo; nothing was changed.";
  return `The rollback is complete: ${count(done)} undone.`;
}

function count(number: number): string {
  return number === 1 ? "1 operation was" : `${number} operations were`;
}

function linesOf(entry: RollbackEntry): string[] {
  const { operationId, tool, description, reason, guide, decisionId } = entry;
  const about = description === "" ? "" : `: ${plain(description)}`;
  const lines = [`- ${plain(tool)} (${plain(operationId)})${about}`, `  ${plain(reason)}`];
  if (decisionId !== "") lines.push(`  Decision: ${plain(decisionId)}`);
  if (guide !== "") lines.push(`  By hand: ${plain(guide)}`);
  return lines;
}

/** A guide that is cut short leaves a person in the middle of what it describes. */
const LONGEST = 4_000;

/**
 * Descriptions, guides and errors come from tools. They stay on their line, so that none can write an entry of its own,
 * and what is invisible or turns the direction of reading is shown as its code.
 */
function plain(text: string): string {
  return oneLine(text, LONGEST).replace(/\p{Cf}/gu, (hidden) => {
    const code = hidden.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}
