import type { Finding, GatePoint, Grant } from "../model/finding.ts";
import { isBlocking } from "../policy/answers.ts";
import { applyGrants, type Overridden } from "../policy/decide.ts";
import { type GatePolicy, type PolicyContext, runPolicies } from "../policy/gate-policy.ts";

import type { GateLedger } from "../store/gate-ledger.ts";

/** The sum of what all policies said at one point. */
export interface GateRun {
  readonly traceId: string;
  readonly point: GatePoint;
  readonly findings: readonly Finding[];
  /** Findings that a grant has lifted; they are not among `findings` any more. */
  readonly overridden: readonly Overridden[];
  /** No finding stops it. */
  readonly allowed: boolean;
}

/** Who and where, for the ledger; policies do not see it. */
export interface GateCaller {
  readonly sessionId: string;
  readonly actor: string;
  /** Made when left out. */
  readonly traceId?: string;
}

/** The one that evaluates policies beside calls. It holds no rules, reads no documents and runs no tools. */
export interface GateRunner {
  run(context: PolicyContext, caller: GateCaller): Promise<GateRun>;
}

/** Lifts findings of a gate run, or does not. Shape: callback, before the run is acted upon. */
export interface Authorisation {
  evaluate(run: GateRun, context: PolicyContext): GateRun | Promise<GateRun>;
}

export interface GateRunnerOptions {
  readonly policies: readonly GatePolicy[];
  /** Undefined: nothing is written down, as in a dry run. */
  readonly ledger: GateLedger | undefined;
  readonly newTraceId: () => string;
  /** Shape: push; the ledger could not be written. What was decided stands all the same. */
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

/** Grants as the authorisation model: a hard denial never falls, the others as `applyGrants` says. */
export function grantAuthorisation(grants: readonly Grant[], now: number): Authorisation {
  return {
    evaluate(run, { point, phase }) {
      const at = { point, now, ...(phase === undefined ? {} : { phase }) };
      const { standing, overridden } = applyGrants(run.findings, grants, at);
      return { ...run, findings: standing, overridden, allowed: !standing.some(isBlocking) };
    },
  };
}
