import { oneLine } from "../util/error-text.ts";
import {
  leftOver,
  ROLLBACK_OUTCOMES,
  type RollbackEntry,
  type RollbackOutcome,
  type RollbackReport,
} from "./rollback-report.ts";

const HEADINGS: Readonly<Record<RollbackOutcome, string>> = {
  failed: "Could not be taken back",
  conflicted: "Not taken back, because the target was changed since",
  unfinished: "Not taken back, because an outcome is not known yet",
  pending: "Not taken back yet, waiting for approval",
  irreversible: "Cannot be taken back by a call",
  undone: "Taken back",
  skipped: "Nothing to do",
};

/**
 * A report as plain text, for people and for the model. The first line says how it stands, so that whoever reads no further
 * does not take half a rollback for a whole one; what is left to do comes before what is done.
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
    return `The rollback is not complete: ${count(done)} taken back, ${open} left. What is left is still in effect, or may be.`;
  }
  if (done === 0) return "There was nothing to take back; nothing was changed.";
  return `The rollback is complete: ${count(done)} taken back.`;
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
