import type { SessionId } from "../model/decision.ts";
import {
  DEFAULT_PERMISSION,
  type Delegation,
  isRole,
  type Role,
  type WritePermission,
} from "../model/delegation.ts";
import type { Finding, FindingSeverity } from "../model/finding.ts";
import type { CompletionPromise } from "../model/promise.ts";
import type { Phase } from "../model/run.ts";
import type { PolicyContext } from "../policy/gate-policy.ts";
import type { Clock } from "../util/clock.ts";
import type { Random } from "../util/random.ts";
import type { Authorisation, GateCaller, GateRun, GateRunner } from "./gate-runner.ts";
import type { Capsule, ScopeRequest } from "./scope.ts";

/** What has to be there before anything is handed to a sub-agent. */
export interface DelegationPlan {
  readonly planId: string;
  readonly role: Role;
  readonly task: string;
  /** All that the sub-agent will know: it never sees the conversation it comes from. */
  readonly capsule: string;
  readonly writePermission: WritePermission;
  readonly promiseId: string;
  /** The gate's evaluation of this very plan. */
  readonly traceId: string;
}

/** The counterpart for one step of a run's own loop. */
export interface ActionPlan {
  readonly planId: string;
  readonly action: string;
  readonly doneWhen: string;
}

export interface PlanSources {
  readonly clock: Clock;
  readonly random: Random;
}

export type PlanDraft = Omit<DelegationPlan, "planId" | "writePermission"> & {
  readonly writePermission?: WritePermission;
};

/** Keeps everything as given: checking is the business of `validatePlan`, and trimming would hide what it has to see. */
export function createPlan(draft: PlanDraft, sources: PlanSources): DelegationPlan {
  const { role, task, capsule, promiseId, traceId } = draft;
  const { writePermission = DEFAULT_PERMISSION[role] } = draft;
  return { planId: planId(sources), role, task, capsule, writePermission, promiseId, traceId };
}

export function createActionPlan(
  draft: Omit<ActionPlan, "planId">,
  sources: PlanSources,
): ActionPlan {
  return { planId: planId(sources), ...draft };
}

/** `plan-1763200000000-00a7`. Two of one millisecond may be equal, once in 65,536: nothing is keyed by it. */
function planId({ clock, random }: PlanSources): string {
  const [high = 0, low = 0] = random.bytes(2);
  return `plan-${clock.now()}-${((high << 8) | low).toString(16).padStart(4, "0")}`;
}

/** What is wrong with a plan. Always found before anything is handed over. */
export interface PlanError extends Finding {
  readonly point: "pre-delegation";
}

/** The run a delegation would belong to, as far as the checks care. */
interface ActiveRun {
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
  const context: PolicyContext = {
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

/** Who delegates. */
export interface Parent {
  readonly sessionId: SessionId;
  /** The agent, then whoever delegated to it. */
  readonly agents: readonly string[];
  /** The person on whose behalf it acts. */
  readonly owner?: string;
  readonly workingDirectory: string;
}

/** What somebody wants to hand over, and to whom. */
export interface DelegationRequest extends ScopeRequest {
  readonly agent: string;
  readonly role: Role;
  readonly task: string;
  /** All that the sub-agent will know. */
  readonly capsule: string;
  /** What done means: a new promise, or the id of one that the run has given. */
  readonly promise: CompletionPromise | string;
  readonly writePermission?: WritePermission;
  /** The parent's when left out; otherwise a folder inside the parent's. */
  readonly workingDirectory?: string;
}

/** What became of a request, always as a value. */
export type Delegated =
  | {
      readonly answer: "delegated";
      readonly delegation: Delegation;
      readonly capsule: Capsule;
      /** Whoever has it may work and report as the sub-agent. It is shown once and not stored. */
      readonly token: string;
      readonly verdict: PlanVerdict;
    }
  /** Nothing was started or written. */
  | {
      readonly answer: "dry_run";
      readonly capsule: Capsule;
      readonly text: string;
      readonly verdict: PlanVerdict;
    }
  | { readonly answer: "denied"; readonly text: string; readonly verdict: PlanVerdict };

/** What a delegation led to, with everything it is bound to. */
export interface DelegationOutcome {
  readonly delegationId: Delegation["id"];
  readonly planId: string;
  readonly traceId: string;
  readonly promiseId: string;
  readonly state: Delegation["state"];
  readonly promiseMet: boolean;
  /** Names of the evidence that is missing. */
  readonly missing: readonly string[];
  readonly output: string;
  readonly reason: string;
}
