import type { Finding, GateAnswer } from "../model/finding.ts";
import { allow, deny, isBlocking, joinAnswers } from "./answers.ts";
import type { CallFacts } from "./call-facts.ts";
import { type GateContext, type GatePoint, type GatePolicy, runPolicies } from "./gate-policy.ts";
import { applyGrants, type Grant, type Overridden } from "./grants.ts";
import { checkPermission, type PermissionState } from "./permission.ts";
import { seeCall } from "./seen-call.ts";
import { shown, shownError } from "./shown.ts";

/** Everything the gate goes by besides the call. */
export interface GateState extends PermissionState {
  readonly policies: readonly GatePolicy[];
  readonly grants: readonly Grant[];
  /** The run that the call belongs to; its session when nothing is said. */
  readonly run?: string;
  readonly phase?: string;
  /** Of the sub-agent that asks. */
  readonly role?: string;
  readonly workingDirectory?: string;
  /** Somebody is there to answer; without anybody an ask is a denial. */
  readonly canAsk: boolean;
  /** Answers from outside the gate that have a say as well, such as hooks and reverse thinking. */
  readonly others?: readonly NamedAnswer[];
}

export interface NamedAnswer extends GateAnswer {
  readonly check: string;
}

/** The answer, what led to it, and under which rules it was given. Plain data: it goes into the trail as it is. */
export interface GateDecision extends GateAnswer {
  /** What each check said, in the order in which they were asked. */
  readonly trace: readonly NamedAnswer[];
  readonly overridden: readonly Overridden[];
  readonly policyVersion: string;
  readonly policyHash: string;
}

/**
 * The one gate for every call, however it comes in. In this order, and all of them each time, so that the trail shows
 * everything that was said: facts (do they make sense), permission (unresolved files, rules, class), gate policies before grants, answers from
 * outside. Deny beats ask, ask beats allow; silence asks. Last, an ask that nobody can answer becomes a denial.
 *
 * A check that throws has denied in its own name. Same facts and state, same decision: no clock, no chance, no I/O.
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

/** Rules expire by this clock, and a clock that is no number would make every one of them valid or void. */
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
    const { phase } = state;
    const at = { point, now: facts.now, ...(phase === undefined ? {} : { phase }) };
    const split = applyGrants(found, state.grants, at);
    findings.push(...split.standing);
    overridden.push(...split.overridden);
  }
  return { answer: findings.some(isBlocking) ? "deny" : "allow", findings };
}

function contextOf(point: GatePoint, facts: CallFacts, state: GateState): GateContext {
  const file = facts.resources.find((resource) => resource.kind === "file");
  const command = facts.resources.find((resource) => resource.kind === "command");
  return {
    point,
    run: state.run ?? facts.sessionId,
    tool: facts.tool,
    payload: facts,
    ...(file === undefined ? {} : { path: file.resolved }),
    ...(command === undefined ? {} : { command: command.command }),
    ...(state.phase === undefined ? {} : { phase: state.phase }),
    ...(state.role === undefined ? {} : { role: state.role }),
    ...(state.workingDirectory === undefined ? {} : { workingDirectory: state.workingDirectory }),
  };
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
    `Tool ${shown(tool)} needs a person's consent, and nobody is there to be asked, so it is refused. Nothing was executed. Use a tool or an input that the rules allow.`,
  );
  return { answer: "deny", findings: [...findings, ...denied.findings] };
}
