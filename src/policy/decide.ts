import type { Finding, GateAnswer, GatePoint, Grant } from "../model/finding.ts";
import { definedFields } from "../util/defined-fields.ts";
import {
  allow,
  type CallFacts,
  deny,
  isBlocking,
  joinAnswers,
  shown,
  shownError,
} from "./answers.ts";
import { type GatePolicy, type PolicyContext, runPolicies } from "./gate-policy.ts";
import { checkPermission, type PermissionState } from "./permission.ts";
import { seeCall } from "./seen-call.ts";

/** The inputs of the gate besides the call. */
export interface GateState extends PermissionState {
  readonly policies: readonly GatePolicy[];
  readonly grants: readonly Grant[];
  /** The run of the call; by default its session. */
  readonly run?: string;
  readonly phase?: string;
  /** The role of the requesting sub-agent. */
  readonly role?: string;
  readonly workingDirectory?: string;
  /** Whether a person can answer. If not, an ask becomes a denial. */
  readonly canAsk: boolean;
  /** Answers from outside the gate, such as hooks and reverse thinking. */
  readonly others?: readonly NamedAnswer[];
}

interface NamedAnswer extends GateAnswer {
  readonly check: string;
}

/** The answer, its reasons, and the rules it was given under. Plain data that is stored in the log unchanged. */
export interface GateDecision extends GateAnswer {
  /** The answer of each check, in order. */
  readonly trace: readonly NamedAnswer[];
  readonly overridden: readonly Overridden[];
  readonly policyVersion: string;
  readonly policyHash: string;
}

/**
 * The one gate for every call, whatever its entry path. All checks run each time, so that the log shows every answer:
 * facts, permission (unresolved files, rules, class), gate policies before grants, outside answers. Deny beats ask, ask
 * beats allow; silence asks. Finally, an ask without a person to answer becomes a denial.
 *
 * A check that throws denies in its own name. The same facts and state give the same decision: no clock, no randomness,
 * no I/O.
 */
export function decide(facts: CallFacts, state: GateState): GateDecision {
  const overridden: Overridden[] = [];
  const trace: NamedAnswer[] = [
    guarded("facts", () => checkFacts(facts)),
    guarded("permission", () => checkPermission(seeCall(facts), state)),
    guarded("policies", () => checkPolicies(facts, state, overridden)),
    ...(state.others ?? []),
  ];
  const joined = joinAnswers(trace);
  return {
    ...(joined.answer === "ask" && !state.canAsk ? unanswerable(facts.tool, joined) : joined),
    trace,
    overridden,
    policyVersion: state.policy.version,
    policyHash: state.policy.hash,
  };
}

/** Rules expire by this clock; a clock that is not a number would make all of them valid or void. */
function checkFacts({ now, tool }: CallFacts): GateAnswer {
  if (Number.isSafeInteger(now) && typeof tool === "string" && tool !== "") return allow();
  return deny(
    "facts",
    "The gate was given no tool or no time, so the call cannot be judged. Nothing was executed. Tell the operator.",
  );
}

function checkPolicies(facts: CallFacts, state: GateState, overridden: Overridden[]): GateAnswer {
  if (state.policies.length === 0) return allow();
  const isWrite = facts.resources.some((one) => "access" in one && one.access === "write");
  const points: readonly GatePoint[] = isWrite ? ["pre-tool", "pre-write"] : ["pre-tool"];
  const findings: Finding[] = [];
  for (const point of points) {
    const found = runPolicies(state.policies, contextOf(point, facts, state));
    const at = definedFields({ point, now: facts.now, phase: state.phase });
    const split = applyGrants(found, state.grants, at);
    findings.push(...split.standing);
    overridden.push(...split.overridden);
  }
  return { answer: findings.some(isBlocking) ? "deny" : "allow", findings };
}

function contextOf(point: GatePoint, facts: CallFacts, state: GateState): PolicyContext {
  const file = facts.resources.find((resource) => resource.kind === "file");
  const command = facts.resources.find((resource) => resource.kind === "command");
  return definedFields({
    point,
    run: state.run ?? facts.sessionId,
    tool: facts.tool,
    payload: facts,
    path: file?.resolved,
    command: command?.command,
    phase: state.phase,
    role: state.role,
    workingDirectory: state.workingDirectory,
  });
}

function guarded(check: string, work: () => GateAnswer): NamedAnswer {
  try {
    const { answer, findings } = work();
    return { check, answer, findings };
  } catch (error) {
    const message = `The check ${shown(check)} failed (${shownError(error)}), so the call cannot be judged. Nothing was executed. Tell the operator.`;
    return { check, ...deny(check, message) };
  }
}

function unanswerable(tool: string, { findings }: GateAnswer): GateAnswer {
  const denied = deny(
    "no-one-to-ask",
    `Tool ${shown(tool)} needs a person's consent, and there is no person to ask, so it is refused. Nothing was executed. Use a tool or an input that the rules allow.`,
  );
  return { answer: "deny", findings: [...findings, ...denied.findings] };
}

export interface Overridden {
  readonly finding: Finding;
  readonly grant: Grant["id"];
}

/** Splits findings into those that remain and those that a live grant overrides. */
export function applyGrants(
  findings: readonly Finding[],
  grants: readonly Grant[],
  at: { readonly point: GatePoint; readonly phase?: string; readonly now: number },
): { readonly standing: readonly Finding[]; readonly overridden: readonly Overridden[] } {
  const standing: Finding[] = [];
  const overridden: Overridden[] = [];
  for (const finding of findings) {
    const grant = grants.find((one) => overrides(one, finding, at));
    if (grant === undefined) standing.push(finding);
    else overridden.push({ finding, grant: grant.id });
  }
  return { standing, overridden };
}

function overrides(
  grant: Grant,
  finding: Finding,
  at: { readonly point: GatePoint; readonly phase?: string; readonly now: number },
): boolean {
  if (!isBlocking(finding) || !mayOverride(grant, finding)) return false;
  if (grant.revoked === true) return false;
  if (grant.expiresAt !== undefined && !(at.now < grant.expiresAt)) return false;
  if (grant.finding.policy !== finding.policy) return false;
  switch (grant.scope.kind) {
    case "finding":
      return grant.finding.message === finding.message;
    case "point":
      return grant.scope.point === at.point;
    case "phase":
      return grant.scope.phase === at.phase;
  }
}

/** No grant overrides a hard denial, any grant overrides a soft one, and only evidence overrides missing evidence. */
function mayOverride({ grantor }: Grant, { severity }: Finding): boolean {
  if (severity === "soft-deny") return true;
  return severity === "evidence-required" && grantor === "evidence-update";
}
