import type { GateContext } from "../gate/gate-policy.ts";
import {
  type ActiveRun,
  checkAuthorisation,
  checkBinding,
  checkStructure,
  type PlanError,
} from "./check-plan.ts";
import type { Authorisation, GateCaller, GateRun, GateRunner } from "./gate-runner.ts";
import type { DelegationPlan } from "./plan.ts";

export interface ValidateOptions {
  readonly run?: ActiveRun;
  readonly gate?: GateRunner;
  /** Has a say only together with a gate: it lifts findings of the gate and no others. */
  readonly authorisation?: Authorisation;
  /** The process's own unless told. */
  readonly workingDirectory?: string;
  readonly caller: Omit<GateCaller, "traceId">;
}

export interface PlanVerdict {
  readonly allowed: boolean;
  /** Everything that is wrong with the plan, also what does not forbid it. */
  readonly errors: readonly PlanError[];
  /** Undefined without a gate. */
  readonly gate: GateRun | undefined;
}

/**
 * May this plan be handed over? The gate is asked even when it may not, so that the trace is whole. Rejects when the gate
 * does: then nothing is handed over.
 */
export async function validatePlan(
  plan: DelegationPlan,
  options: ValidateOptions,
): Promise<PlanVerdict> {
  const errors = [
    ...checkStructure(plan),
    ...checkBinding(plan),
    ...checkAuthorisation(plan, options.run),
  ];
  const gate = await askGate(plan, options);
  const isForbidden = errors.some(({ severity }) => severity === "hard-deny");
  return { allowed: !isForbidden && gate?.allowed !== false, errors, gate };
}

async function askGate(
  { planId, task, role, traceId }: DelegationPlan,
  options: ValidateOptions,
): Promise<GateRun | undefined> {
  const { gate, authorisation, run, workingDirectory = process.cwd(), caller } = options;
  if (gate === undefined) return undefined;
  const context: GateContext = {
    point: "pre-delegation",
    workingDirectory,
    role,
    // Not the capsule: policies judge what is asked for, and it may hold what is not for the trail.
    payload: { planId, task },
    ...(run === undefined ? {} : { run: run.id, phase: run.phase }),
  };
  const bare = await gate.run(context, { ...caller, ...(traceId === "" ? {} : { traceId }) });
  return authorisation === undefined ? bare : authorisation.evaluate(bare, context);
}
