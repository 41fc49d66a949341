import type { RunEvidence } from "../../src/crashkit/evidence.ts";
import type { Decision } from "../../src/model/decision.ts";

/** Where everything that was proposed has ended. */
export interface Account {
  proposed: number;
  rejected: number;
  expired: number;
  denied: number;
  done: number;
  failed: number;
  unknown: number;
  pending: number;
}

/** Proposed = rejected + expired + denied + done + failed + unknown + pending, or something was lost. */
export function accountOf(evidence: RunEvidence): {
  account: Account;
  problems: readonly string[];
} {
  const account: Account = {
    proposed: evidence.decisions.length,
    rejected: 0,
    expired: 0,
    denied: 0,
    done: 0,
    failed: 0,
    unknown: 0,
    pending: 0,
  };
  const problems: string[] = [];
  for (const decision of evidence.decisions) {
    const end = endOf(decision, evidence);
    if (end === undefined) problems.push(`${decision.id} is ${decision.state} and nowhere`);
    else account[end] += 1;
  }
  const staged = evidence.trail.filter(({ type }) => type === "decision.staged").length;
  if (staged !== account.proposed) {
    problems.push(`${staged} decisions were proposed, ${account.proposed} are there`);
  }
  return { account, problems };
}

function endOf(
  { id, state, bizVerdict }: Decision,
  { operations, interactions }: RunEvidence,
): Exclude<keyof Account, "proposed"> | undefined {
  const question = interactions.find((one) => one.id === id);
  switch (state) {
    case "executed":
      return "done";
    case "failed":
      return "failed";
    case "rejected_tech":
      return "denied";
    case "rejected_ml":
      if (bizVerdict.validator === "deadline") return "expired";
      return question === undefined ? "denied" : "rejected";
    case "approved": {
      const own = operations.filter(({ decisionId }) => decisionId === id).map((one) => one.id);
      const all = operations.filter(
        ({ id: op, undoOf }) => own.includes(op) || own.includes(undoOf),
      );
      return all.some(({ status }) => status === "unknown") ? "unknown" : undefined;
    }
    case "pending_tech":
    case "pending_ml":
      return question?.status === "open" ? "pending" : undefined;
  }
}
