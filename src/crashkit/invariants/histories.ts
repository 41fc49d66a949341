// What the trail tells of each record: the states it went through, in order.

import { MOVES } from "../../model/decision.ts";
import { INTERACTION_OUTCOMES } from "../../model/interaction.ts";
import { OPERATION_MOVES } from "../../model/operation.ts";
import type { Line, Look } from "../look.ts";

/** One move as the trail tells it. `from` is what the entry itself says it was, where it says so. */
export interface Told {
  readonly seq: number;
  readonly at: string;
  readonly from?: string;
  readonly to: string;
  readonly type: string;
}

/** Undefined where an entry was erased: then nobody can tell. */
export function decisionMoves(id: string, look: Look): readonly Told[] | undefined {
  const own = look.linesOf(id).filter(({ type }) => DECISION_TYPES.includes(type));
  if (own.some(({ isErased }) => isErased)) return undefined;
  return own.map(({ seq, at, type, data }) => {
    const from = data["from"];
    const to = String(data["to"]);
    return { seq, at, type, to, ...(typeof from === "string" ? { from } : {}) };
  });
}

const DECISION_TYPES = [
  "decision.staged",
  "decision.reviewed",
  "decision.executed",
  "decision.failed",
];

/** The state a decision was in when the entry with this number was written. */
export function stateBefore(id: string, seq: number, look: Look): string {
  const moves = decisionMoves(id, look);
  if (moves === undefined) return "approved";
  return moves.filter((move) => move.seq < seq).at(-1)?.to ?? "not staged yet";
}

/** Whether everything was stopped when the entry with this number was written. */
export function isStopped(seq: number, look: Look): boolean {
  const turn = look.turns.findLast((line) => line.seq < seq);
  return turn?.type === "switch.stopped";
}

/** Which status an operation's entry leaves it in, and in which it must have been. */
export const OPERATION_EVENTS: Readonly<
  Record<string, { readonly to: string; readonly from: readonly string[] }>
> = {
  "operation.started": { to: "started", from: ["nothing"] },
  "operation.renewed": { to: "started", from: ["started"] },
  "operation.taken_over": { to: "started", from: ["started"] },
  "operation.attempted": { to: "started", from: ["started"] },
  "operation.reopened": { to: "started", from: ["unknown"] },
  "operation.succeeded": { to: "success", from: comesFrom("success") },
  "operation.failed": { to: "failed", from: comesFrom("failed") },
  "operation.lost": { to: "unknown", from: comesFrom("unknown") },
  "operation.brought_back": { to: "success", from: ["success"] },
  "operation.undone": { to: "rolled_back", from: comesFrom("rolled_back") },
};

function comesFrom(to: string): readonly string[] {
  return Object.entries(OPERATION_MOVES)
    .filter(([, targets]) => (targets as readonly string[]).includes(to))
    .map(([from]) => from);
}

export function operationLines(id: string, look: Look): readonly Line[] {
  return look.linesOf(id).filter(({ type }) => type in OPERATION_EVENTS);
}

/** How a question's entry closes it; the outcome is in the data for those that were answered. */
export const CLOSINGS: readonly string[] = [
  "interaction.answered",
  "interaction.superseded",
  "interaction.expired",
  "interaction.canceled",
];

export function closingsOf(id: string, look: Look): readonly Line[] {
  return look.linesOf(id).filter(({ type }) => CLOSINGS.includes(type));
}

export function outcomeStatus(outcome: unknown): string | undefined {
  return typeof outcome === "string" && outcome in INTERACTION_OUTCOMES
    ? INTERACTION_OUTCOMES[outcome as keyof typeof INTERACTION_OUTCOMES]
    : undefined;
}

/** Whether the table has this move; the first state is reached from nothing. */
export function isMove(from: string | undefined, to: string): boolean {
  if (from === undefined) return to === "pending_tech";
  const targets: readonly string[] = MOVES[from as keyof typeof MOVES] ?? [];
  return targets.includes(to);
}
