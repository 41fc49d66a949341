import type { DecisionId, DecisionState } from "../model/decision.ts";
import { type Coverage, covers, type RuledCall } from "./standing-rule.ts";

/** A stored decision, with its payload read as calls. */
export interface DecidedCalls {
  readonly id: DecisionId;
  readonly state: DecisionState;
  /** Who said no and why, for the two rejected states. */
  readonly saidNo?: { readonly by: string; readonly reason: string };
  readonly calls: readonly Omit<RuledCall, "askers" | "now" | "safetyClass">[];
}

/** What a rule would have done. The decisions are named, so that whoever makes the rule can look at them first. */
export interface Replay {
  readonly looked: number;
  /** It would have approved them, and so did people. */
  readonly agreed: readonly DecisionId[];
  /** It would have approved what a person or the business review rejected. */
  readonly rejected: readonly Objection[];
  /** It would have let through what the technical review stopped before anybody was asked. */
  readonly stopped: readonly Objection[];
  /** It would have approved them, and nobody has decided yet. */
  readonly open: readonly DecisionId[];
  /** Like it in all but the definition of the tool, so nothing follows from them. */
  readonly otherDefinition: number;
  /** The same in a sentence. */
  readonly text: string;
}

export interface Objection {
  readonly id: DecisionId;
  readonly by: string;
  readonly reason: string;
}

type Kind = "agreed" | "rejected" | "stopped" | "open";

const KINDS = {
  pending_tech: "open",
  pending_ml: "open",
  approved: "agreed",
  executed: "agreed",
  failed: "agreed",
  rejected_tech: "stopped",
  rejected_ml: "rejected",
} as const satisfies Record<DecisionState, Kind>;

/**
 * What a rule that is about to be made would have done over what was decided before. A decision counts when the rule
 * covers every one of its calls, since only then nobody would have been asked.
 */
export function replayRule(rule: Coverage, decisions: readonly DecidedCalls[]): Replay {
  const covered: Record<Kind, DecidedCalls[]> = { agreed: [], rejected: [], stopped: [], open: [] };
  let otherDefinition = 0;
  for (const decision of decisions) {
    const { calls, state } = decision;
    const definitions = new Set(calls.map((call) => call.definitionHash));
    const loose = calls.map((call) => ({ ...call, definitionHash: rule.definitionHash }));
    if (!coversAll(rule, loose)) continue;
    if (definitions.size > 1 || !definitions.has(rule.definitionHash)) otherDefinition += 1;
    else covered[KINDS[state]].push(decision);
  }
  const { agreed, rejected, stopped, open } = covered;
  const found = {
    looked: decisions.length,
    agreed: agreed.map(({ id }) => id),
    rejected: rejected.map(objection),
    stopped: stopped.map(objection),
    open: open.map(({ id }) => id),
    otherDefinition,
  };
  return { ...found, text: textOf(found) };
}

function coversAll(rule: Coverage, calls: DecidedCalls["calls"]): boolean {
  try {
    return calls.length > 0 && calls.every((call) => covers(rule, call));
  } catch {
    // What cannot be read would have been asked about.
    return false;
  }
}

function objection({ id, saidNo }: DecidedCalls): Objection {
  return { id, by: saidNo?.by ?? "", reason: saidNo?.reason ?? "" };
}

function textOf({
  looked,
  agreed,
  rejected,
  stopped,
  open,
  otherDefinition,
}: Omit<Replay, "text">) {
  const all = agreed.length + rejected.length + stopped.length + open.length;
  const parts = [`Of ${looked} decisions it would have approved ${all}`];
  if (rejected.length > 0) parts.push(`${rejected.length} of which were rejected`);
  if (stopped.length > 0) parts.push(`${stopped.length} of which the technical review stopped`);
  if (open.length > 0) parts.push(`${open.length} of which are not decided yet`);
  const others = `${otherDefinition} more were of another definition of the tool.`;
  return `${parts.join(", ")}.${otherDefinition > 0 ? ` ${others}` : ""}`;
}
