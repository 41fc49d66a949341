import type { Finding } from "../model/finding.ts";
import { type GatePoint, type Grant, USER_GRANT_MS } from "../model/grant.ts";
import { isBlocking } from "./answers.ts";

export { type Grant, grantId, USER_GRANT_MS } from "../model/grant.ts";

/** When a grant lapses by default: a user's after half an hour, the others when they are revoked. */
export function defaultExpiry(grantor: Grant["grantor"], now: number): number | undefined {
  return grantor === "user" ? now + USER_GRANT_MS : undefined;
}

export interface Overridden {
  readonly finding: Finding;
  readonly grant: Grant["id"];
}

/** Splits findings into those that stand and those that a live grant overrides. */
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

/** A hard denial never, a soft one by any grant, missing evidence only by evidence. */
function mayOverride({ grantor }: Grant, { severity }: Finding): boolean {
  if (severity === "soft-deny") return true;
  return severity === "evidence-required" && grantor === "evidence-update";
}
