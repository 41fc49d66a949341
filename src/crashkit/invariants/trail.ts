// The trail as such: a chain, in the order in which things were caused.

import { ChainCheck } from "../../audit/verify-chain.ts";
import { ProblemList } from "../../audit/verify-report.ts";
import type { Invariant } from "../evidence.ts";
import { BEGINS, type Line, type Look, lookAt } from "../look.ts";
import { decisionMoves, isStopped } from "./histories.ts";

export const I17: Invariant = {
  id: "I17",
  text: "The chain verifies from its first entry to its last: no gap, no number twice, one line per tenant.",
  check({ tenant, trail }) {
    const problems = new ProblemList();
    const chain = new ChainCheck(tenant, problems);
    for (const entry of trail) chain.take(entry);
    const foreign = trail.filter((entry) => entry.tenant !== tenant);
    return [
      ...problems.kept.map(({ code, seq }) => `entry ${seq}: ${code}`),
      ...foreign.map(({ seq, tenant: other }) => `entry ${seq} is of ${other}`),
    ];
  },
};

export const I18: Invariant = {
  id: "I18",
  text: "No entry stands before its cause, and time does not run backwards.",
  check(evidence) {
    const look = lookAt(evidence);
    let before = "";
    return look.lines.flatMap((line) => {
      const isEarlier = line.at < before;
      before = line.at;
      const cause = CAUSES[line.type]?.(line, look);
      const problems: string[] = [];
      if (isEarlier) problems.push(`entry ${line.seq} is older than the one before it`);
      if (cause === false)
        problems.push(`entry ${line.seq} (${line.type}) stands before its cause`);
      return problems;
    });
  },
};

/** Whether what must come first did so. */
const CAUSES: Readonly<Record<string, (line: Line, look: Look) => boolean>> = {
  "operation.started": ({ seq, data }, look) => {
    const decision = String(data["decision"] ?? "");
    const undoOf = String(data["undo_of"] ?? "");
    const wasApproved =
      decision === "" ||
      (decisionMoves(decision, look) ?? APPROVED).some(
        (move) => move.to === "approved" && move.seq < seq,
      );
    return wasApproved && (undoOf === "" || isBefore(seq, undoOf, ["operation.succeeded"], look));
  },
  "operation.succeeded": ({ seq, subject }, look) => isBefore(seq, subject, BEGINS, look),
  "operation.failed": ({ seq, subject }, look) => isBefore(seq, subject, BEGINS, look),
  "operation.lost": ({ seq, subject }, look) => isBefore(seq, subject, BEGINS, look),
  "operation.undone": ({ seq, data }, look) => {
    const by = data["by"];
    return typeof by !== "string" || isBefore(seq, by, ["operation.succeeded"], look);
  },
  "interaction.answered": ({ seq, subject }, look) =>
    isBefore(seq, subject, ["interaction.opened"], look),
  "decision.previewed": ({ seq, subject }, look) =>
    isBefore(seq, subject, ["decision.reviewed"], look),
};

/** Stands for a history that was erased. */
const APPROVED = [{ seq: 0, at: "", to: "approved", type: "decision.reviewed" }];

function isBefore(seq: number, subject: string, types: readonly string[], look: Look): boolean {
  return look.linesOf(subject).some((line) => line.seq < seq && types.includes(line.type));
}

export const I30: Invariant = {
  id: "I30",
  text: "After the kill switch nothing begins until it is turned back.",
  check(evidence) {
    const look = lookAt(evidence);
    return look.lines
      .filter(({ type, seq }) => BEGINS.includes(type) && isStopped(seq, look))
      .map(({ subject, type }) => `${type} of ${subject} while everything was stopped`);
  },
};
