import type { SessionId } from "../model/decision.ts";
import {
  type AgentRole,
  type CompletionPromise,
  DEFAULT_PERMISSION,
  type Delegation,
  isAgentRole,
  type Phase,
  type WritePermission,
} from "../model/delegation.ts";
import type { Finding, FindingSeverity, GatePoint, Grant } from "../model/finding.ts";
import { isBlocking } from "../policy/answers.ts";
import {
  applyGrants,
  type GatePolicy,
  type Overridden,
  type PolicyContext,
  runPolicies,
} from "../policy/decide.ts";
import type { GateLedger } from "../store/grants.ts";
import type { Clock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { Random } from "../util/random.ts";
import type { Capsule, ScopeRequest } from "./scope.ts";

/** What must exist before anything is delegated. */
export interface DelegationPlan {
  readonly planId: string;
  readonly role: AgentRole;
  readonly task: string;
  /** Everything the sub-agent will know: it never sees the conversation it comes from. */
  readonly capsule: string;
  readonly writePermission: WritePermission;
  readonly promiseId: string;
  /** The gate's evaluation of this plan. */
  readonly traceId: string;
}

/** The counterpart for one step of a run's own loop. */
export interface ActionPlan {
  readonly planId: string;
  readonly action: string;
  readonly doneWhen: string;
}

interface PlanSources {
  readonly clock: Clock;
  readonly random: Random;
}

export type PlanDraft = Omit<DelegationPlan, "planId" | "writePermission"> & {
  readonly writePermission?: WritePermission | undefined;
};

/** Keeps everything as given: `validatePlan` checks it, and trimming would hide what it has to see. */
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

/** `plan-1763200000000-00a7`. Two of one millisecond are equal once in 65,536 times: nothing is keyed by it. */
function planId({ clock, random }: PlanSources): string {
  const [high = 0, low = 0] = random.bytes(2);
  return `plan-${clock.now()}-${((high << 8) | low).toString(16).padStart(4, "0")}`;
}

/** A problem of a plan, found before anything is delegated. */
export interface PlanError extends Finding {
  readonly point: "pre-delegation";
}

export function planError(severity: FindingSeverity, policy: string, message: string): PlanError {
  return { severity, policy: `delegation.${policy}`, message, point: "pre-delegation" };
}

/** The run that a delegation would belong to. */
interface ActiveRun {
  readonly id: string;
  readonly phase: Phase;
}

/** Fields that must not be blank, each with its policy and what to do. */
const REQUIRED = {
  task: ["task", "The plan has no task. Say in a sentence what the sub-agent has to do."],
  capsule: [
    "capsule",
    "The plan has no capsule. Write what the sub-agent has to know: it sees nothing else.",
  ],
  promiseId: ["promise", "The plan names no completion promise. Say what must be true in the end."],
  traceId: ["trace", "The plan names no gate trace. Have the gate evaluate it, and use that id."],
} as const satisfies Partial<Record<keyof DelegationPlan, readonly [string, string]>>;

/** All problems, in the order role, required fields, authorisation. */
function errorsOf(plan: DelegationPlan, run: ActiveRun | undefined): readonly PlanError[] {
  const fields = Object.keys(REQUIRED) as (keyof typeof REQUIRED)[];
  const blank = fields.filter((field) => typeof plan[field] !== "string" || !plan[field].trim());
  return [
    ...roleErrors(plan),
    ...blank.map((field) => planError("hard-deny", REQUIRED[field][0], REQUIRED[field][1])),
    ...phaseErrors(plan, run),
  ];
}

function roleErrors({ role, writePermission }: DelegationPlan): readonly PlanError[] {
  if (!isAgentRole(role)) {
    const message = `There is no role ${JSON.stringify(role)}. Use research, doc, code, review or verify.`;
    return [planError("hard-deny", "role", message)];
  }
  const usual = DEFAULT_PERMISSION[role];
  if (writePermission === usual) return [];
  const message = `The role ${role} has the write permission ${usual}, but the plan says ${writePermission}. Leave it out unless you mean it.`;
  return [planError("soft-deny", "permission", message)];
}

/** Code is written in the execute phase of a run and nowhere else; the other roles need neither. */
function phaseErrors({ role }: DelegationPlan, run: ActiveRun | undefined): readonly PlanError[] {
  if (role !== "code" || run?.phase === "execute") return [];
  const message =
    run === undefined
      ? "Code can be delegated only inside a run, and there is none. Start a run."
      : `Code can be delegated only in the phase execute, and the run is in ${run.phase}. Bring the run there first.`;
  return [planError("hard-deny", "authorisation", message)];
}

const HOST: Omit<GateCaller, "traceId"> = { sessionId: "host", actor: "host" };

export interface ValidateOptions {
  readonly run?: ActiveRun | undefined;
  readonly gate?: GateRunner;
  /** Used only together with a gate: it lifts findings of the gate and no others. */
  readonly authorisation?: Authorisation;
  /** Default: the process's own. */
  readonly workingDirectory?: string;
  /** For the ledger of the gate. Default: nobody in particular, `host`. */
  readonly caller?: Omit<GateCaller, "traceId">;
}

export interface PlanVerdict {
  readonly allowed: boolean;
  /** All problems of the plan, including those that do not forbid it. */
  readonly errors: readonly PlanError[];
  /** Undefined without a gate. */
  readonly gate: GateRun | undefined;
}

/**
 * Whether this plan may be delegated. The gate is asked even when it may not, so that the trace is complete. Rejects when
 * the gate does: then nothing is delegated.
 */
export async function validatePlan(
  plan: DelegationPlan,
  options: ValidateOptions = {},
): Promise<PlanVerdict> {
  const errors = errorsOf(plan, options.run);
  const gate = await askGate(plan, options);
  const isForbidden = errors.some(({ severity }) => severity === "hard-deny");
  // Only a plain true is a yes: a gate that answers anything else is broken.
  const isOpen = gate === undefined || gate.allowed === true;
  return { allowed: !isForbidden && isOpen, errors, gate };
}

async function askGate(
  { planId, task, role, traceId }: DelegationPlan,
  { gate, authorisation, run, workingDirectory = process.cwd(), caller = HOST }: ValidateOptions,
): Promise<GateRun | undefined> {
  if (gate === undefined) return undefined;
  const context: PolicyContext = definedFields({
    point: "pre-delegation" as const,
    workingDirectory,
    role,
    // Not the capsule: policies judge the request, and a capsule may hold what must not be logged.
    payload: { planId, task },
    run: run?.id,
    phase: run?.phase,
  });
  const bare = await gate.run(context, { ...caller, traceId: traceId || undefined });
  return authorisation === undefined ? bare : authorisation.evaluate(bare, context);
}

/** Who delegates. */
export interface Parent {
  readonly sessionId: SessionId;
  /** The agent, then its delegators. */
  readonly agents: readonly string[];
  /** The person on whose behalf it acts. */
  readonly owner?: string;
  readonly workingDirectory: string;
}

/** What a parent wants to delegate, and to whom. */
export interface DelegationRequest extends ScopeRequest {
  readonly agent: string;
  readonly role: AgentRole;
  readonly task: string;
  /** Everything the sub-agent will know. */
  readonly capsule: string;
  /** What done means: a new promise, or the id of one that the run has given. */
  readonly promise: CompletionPromise | string;
  readonly writePermission?: WritePermission;
  /** Default: the parent's; otherwise a folder inside the parent's. */
  readonly workingDirectory?: string;
}

/** The result of a request, always as a value. */
export type Delegated =
  | {
      readonly answer: "delegated";
      readonly delegation: Delegation;
      readonly capsule: Capsule;
      /** Its bearer may work and report as the sub-agent. It is shown once and not stored. */
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

/** The result of a delegation, with the ids it is bound to. */
export interface DelegationOutcome {
  readonly delegationId: Delegation["id"];
  readonly planId: string;
  readonly traceId: string;
  readonly promiseId: string;
  readonly state: Delegation["state"];
  readonly promiseMet: boolean;
  /** Names of the missing evidence. */
  readonly missing: readonly string[];
  readonly output: string;
  readonly reason: string;
}

/** The findings of all policies at one point. */
export interface GateRun {
  readonly traceId: string;
  readonly point: GatePoint;
  readonly findings: readonly Finding[];
  /** Findings that a grant has lifted; they are no longer among `findings`. */
  readonly overridden: readonly Overridden[];
  /** No finding blocks it. */
  readonly allowed: boolean;
}

/** For the ledger; policies do not see it. */
export interface GateCaller {
  readonly sessionId: string;
  readonly actor: string;
  /** Default: a new one. */
  readonly traceId?: string | undefined;
}

/** Evaluates policies outside calls. It holds no rules, reads no documents and runs no tools. */
export interface GateRunner {
  run(context: PolicyContext, caller: GateCaller): Promise<GateRun>;
}

/** Lifts findings of a gate run, or does not. Shape: callback, before the run is acted upon. */
export interface Authorisation {
  evaluate(run: GateRun, context: PolicyContext): GateRun | Promise<GateRun>;
}

export interface GateRunnerOptions {
  readonly policies: readonly GatePolicy[];
  /** Undefined: nothing is recorded, as in a dry run. */
  readonly ledger: GateLedger | undefined;
  readonly newTraceId: () => string;
  /** Shape: push; the ledger could not be written. The decision holds all the same. */
  readonly onProblem: (problem: { readonly traceId: string; readonly error: unknown }) => void;
}

export function createGateRunner(options: GateRunnerOptions): GateRunner {
  const { policies, ledger, newTraceId, onProblem } = options;
  return {
    async run(context, { sessionId, actor, traceId = newTraceId() }) {
      const findings = runPolicies(policies, context);
      const allowed = !findings.some(isBlocking);
      const run: GateRun = { traceId, point: context.point, findings, overridden: [], allowed };
      try {
        await ledger?.record({ ...run, sessionId, actor });
      } catch (error) {
        onProblem({ traceId, error });
      }
      return run;
    },
  };
}

/** Grants as the authorisation model: a hard denial is never lifted, the others as `applyGrants` says. */
export function grantAuthorisation(grants: readonly Grant[], now: number): Authorisation {
  return {
    evaluate(run, { point, phase }) {
      const at = definedFields({ point, now, phase });
      const { standing, overridden } = applyGrants(run.findings, grants, at);
      return { ...run, findings: standing, overridden, allowed: !standing.some(isBlocking) };
    },
  };
}
