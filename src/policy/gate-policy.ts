import type { Finding, GatePoint } from "../model/finding.ts";

import { mergeFindings, shown, shownError } from "./answers.ts";

export { GATE_POINTS, type GatePoint } from "../model/finding.ts";

/** What a policy gets to see. Only what fits the point is filled. */
export interface GateContext {
  readonly point: GatePoint;
  readonly workingDirectory?: string;
  readonly run?: string;
  readonly tool?: string;
  readonly path?: string;
  readonly command?: string;
  readonly role?: string;
  readonly phase?: string;
  readonly payload?: unknown;
}

/** Context in, findings out: pure, and asked again whenever the answer is needed. Shape: callback, answering at once. */
export interface GatePolicy {
  readonly name: string;
  /** Empty means every point. */
  readonly points: readonly GatePoint[];
  check(context: GateContext): readonly Finding[];
}

/**
 * Asks every policy of a point. Each finding bears the name of the policy that made it. One that throws, answers
 * something else than findings or tries to change the context yields a hard denial in its own name, so a broken policy
 * cannot wave things through.
 */
export function runPolicies(
  policies: readonly GatePolicy[],
  context: GateContext,
): readonly Finding[] {
  const asked = policies.filter(
    ({ points }) => points.length === 0 || points.includes(context.point),
  );
  if (asked.length === 0) return [];
  // A copy that cannot be changed: what a policy writes must reach neither the next one nor the call.
  const frozen = deepFreeze(structuredClone(context));
  return mergeFindings(asked.flatMap((policy) => runPolicy(policy, frozen)));
}

function runPolicy(policy: GatePolicy, context: GateContext): readonly Finding[] {
  try {
    return policy.check(context).map(({ severity, message }) => {
      if (typeof severity !== "string" || typeof message !== "string") {
        throw new TypeError("a finding needs a severity and a message");
      }
      return { severity, message, policy: policy.name };
    });
  } catch (error) {
    const message = `The policy ${shown(policy.name)} failed (${shownError(error)}), and what it would have said is not known. Nothing was executed. Tell the operator.`;
    return [{ severity: "hard-deny", policy: policy.name, message }];
  }
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
  return value;
}
