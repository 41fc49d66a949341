import type { Finding, GatePoint } from "../model/finding.ts";
import { deepFreeze } from "../util/json.ts";
import { mergeFindings, shown, shownError } from "./answers.ts";

/** The input of a policy. Only the fields that apply at the point are set. */
export interface PolicyContext {
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

/** A pure function from context to findings, called whenever the answer is needed. Shape: callback, synchronous. */
export interface GatePolicy {
  readonly name: string;
  /** Empty means every point. */
  readonly points: readonly GatePoint[];
  check(context: PolicyContext): readonly Finding[];
}

/**
 * Runs every policy of a point. Each finding carries the name of its policy. A policy that throws, returns something
 * other than findings or tries to change the context yields a hard denial in its own name, so a broken policy cannot
 * let a call pass.
 */
export function runPolicies(
  policies: readonly GatePolicy[],
  context: PolicyContext,
): readonly Finding[] {
  const asked = policies.filter(
    ({ points }) => points.length === 0 || points.includes(context.point),
  );
  if (asked.length === 0) return [];
  // A frozen copy: a policy must not change what the next policy or the call sees.
  const frozen = deepFreeze(structuredClone(context));
  return mergeFindings(asked.flatMap((policy) => runPolicy(policy, frozen)));
}

function runPolicy(policy: GatePolicy, context: PolicyContext): readonly Finding[] {
  try {
    return policy.check(context).map(({ severity, message }) => {
      if (typeof severity !== "string" || typeof message !== "string") {
        throw new TypeError("a finding needs a severity and a message");
      }
      return { severity, message, policy: policy.name };
    });
  } catch (error) {
    const message = `The policy ${shown(policy.name)} failed (${shownError(error)}), so its findings are unknown. Nothing was executed. Tell the operator.`;
    return [{ severity: "hard-deny", policy: policy.name, message }];
  }
}
