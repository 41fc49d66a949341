import { DEFAULT_PERMISSION, isRole } from "../model/delegation.ts";
import type { Finding, FindingSeverity } from "../model/finding.ts";
import type { Phase } from "../model/run.ts";
import type { DelegationPlan } from "./plan.ts";

/** What is wrong with a plan. Always found before anything is handed over. */
export interface PlanError extends Finding {
  readonly point: "pre-delegation";
}

/** The run a delegation would belong to, as far as the checks care. */
export interface ActiveRun {
  readonly id: string;
  readonly phase: Phase;
}

export function planError(severity: FindingSeverity, policy: string, message: string): PlanError {
  return { severity, policy: `delegation.${policy}`, message, point: "pre-delegation" };
}

/** Permission, task, capsule, in this order; all that is wrong, not only the first. */
export function checkStructure(plan: DelegationPlan): readonly PlanError[] {
  const errors: PlanError[] = [];
  if (!isRole(plan.role)) {
    const message = `There is no role ${JSON.stringify(plan.role)}. Use research, doc, code, review or verify.`;
    errors.push(planError("hard-deny", "role", message));
  } else if (plan.writePermission !== DEFAULT_PERMISSION[plan.role]) {
    const message = `The role ${plan.role} has the write permission ${DEFAULT_PERMISSION[plan.role]}, but the plan says ${plan.writePermission}. Leave it out unless you mean it.`;
    errors.push(planError("soft-deny", "permission", message));
  }
  if (isBlank(plan.task)) {
    const message = "The plan has no task. Say in a sentence what the sub-agent has to do.";
    errors.push(planError("hard-deny", "task", message));
  }
  if (isBlank(plan.capsule)) {
    const message =
      "The plan has no capsule. Write down what the sub-agent has to know: it sees nothing else.";
    errors.push(planError("hard-deny", "capsule", message));
  }
  return errors;
}

/** A plan without a promise has no end, and one without a trace has no origin. */
export function checkBinding({ promiseId, traceId }: DelegationPlan): readonly PlanError[] {
  const errors: PlanError[] = [];
  if (isBlank(promiseId)) {
    const message = "The plan names no completion promise. Say what must be true in the end.";
    errors.push(planError("hard-deny", "promise", message));
  }
  if (isBlank(traceId)) {
    const message = "The plan names no gate trace. Have it evaluated by the gate, and use that id.";
    errors.push(planError("hard-deny", "trace", message));
  }
  return errors;
}

/** Code is written in the execute phase of a run and nowhere else; the other roles need neither. */
export function checkAuthorisation(
  { role }: DelegationPlan,
  run: ActiveRun | undefined,
): readonly PlanError[] {
  if (role !== "code") return [];
  if (run === undefined) {
    const message = "Code can be delegated only inside a run, and there is none. Start a run.";
    return [planError("hard-deny", "authorisation", message)];
  }
  if (run.phase === "execute") return [];
  const message = `Code can be delegated only in the phase execute, and the run is in ${run.phase}. Bring the run there first.`;
  return [planError("hard-deny", "authorisation", message)];
}

function isBlank(text: unknown): boolean {
  return typeof text !== "string" || text.trim() === "";
}
