import type { Operation, RecordedUndo } from "../model/operation.ts";
import type { RollbackFinding } from "./rollback-report.ts";

/**
 * What to do about operations whose outcome nobody knows yet: `stop` leaves everything as it is until somebody knows,
 * `go_on` takes the others back around them.
 */
export type WhenUnfinished = "stop" | "go_on";

/** One operation of a rollback: either its compensation is dispatched, or it is only listed. */
export type PlanStep =
  | { readonly action: "dispatch"; readonly operation: Operation; readonly undo: RecordedUndo }
  | { readonly action: "list"; readonly operation: Operation; readonly finding: RollbackFinding };

/**
 * The order of a rollback and what becomes of each operation, newest first, each exactly once. Pure. The given ones come
 * oldest first, as the store lists them. What to dispatch is read from the undo record alone: a description is for people,
 * and what a tool declares about itself today says nothing about what one call did.
 */
export function planRollback(
  operations: readonly Operation[],
  whenUnfinished: WhenUnfinished = "stop",
): readonly PlanStep[] {
  const steps = operations.toReversed().map(stepOf);
  const open = operations.filter(isUnfinished);
  if (open.length === 0 || whenUnfinished === "go_on") return steps;
  // Before anything has happened, not at the open one's turn: half a rollback is harder to understand than none.
  const reason =
    `Not tried: the outcome of ${namesOf(open)} is not known, and it may rest on this one. ` +
    `Find out what became of it, then roll back again, or ask for a rollback around it.`;
  return steps.map((step) =>
    step.action === "dispatch" ? list(step.operation, "unfinished", reason) : step,
  );
}

function stepOf(operation: Operation): PlanStep {
  // First of all, whatever its status: taking back what took something back would go round in circles.
  if (operation.undoOf !== "") {
    const reason = `It takes ${operation.undoOf} back itself (${operation.status}); a rollback leaves those alone.`;
    return list(operation, "skipped", reason);
  }
  switch (operation.status) {
    case "failed":
      return operation.undo === undefined
        ? list(operation, "skipped", "It failed, so there is nothing to take back.")
        : stepOfSuccess(operation);
    case "rolled_back":
      return list(operation, "skipped", "It was taken back before.");
    case "started":
      return list(operation, "unfinished", "It is still running, or was cut off while it ran.");
    case "unknown":
      return list(
        operation,
        "unfinished",
        "Its outcome was lost: it may or may not have happened.",
      );
    case "success":
      return stepOfSuccess(operation);
  }
}

function stepOfSuccess(operation: Operation): PlanStep {
  const { undo, effect } = operation;
  if (undo === undefined && effect === "read") {
    return list(operation, "skipped", "It only read, so there is nothing to take back.");
  }
  if (undo === undefined) {
    return list(operation, "irreversible", "No way to take it back was recorded.");
  }
  // A record that names no tool cannot be dispatched, whatever it says about itself.
  if (undo.irreversible || undo.tool === "") {
    return list(operation, "irreversible", "It cannot be taken back by a call.");
  }
  return { action: "dispatch", operation, undo };
}

/** Operations that take back are looked at together with what they take back, not here. */
function isUnfinished({ status, undoOf }: Operation): boolean {
  return undoOf === "" && (status === "started" || status === "unknown");
}

function list(
  operation: Operation,
  outcome: RollbackFinding["outcome"],
  reason: string,
): PlanStep & { action: "list" } {
  return { action: "list", operation, finding: { outcome, reason } };
}

const NAMES_MAX = 3;

function namesOf(open: readonly Operation[]): string {
  const names = open.slice(0, NAMES_MAX).map(({ id, tool }) => `${id} (${tool})`);
  const more = open.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${more} more` : "");
}
