import type { CallFacts } from "../gate/call-facts.ts";
import type { GateContext, GatePolicy } from "../gate/gate-policy.ts";
import { shown } from "../gate/shown.ts";
import type { Scope, WritePermission } from "../model/delegation.ts";
import type { Finding } from "../model/finding.ts";
import { fromIso } from "../util/clock.ts";
import { coversTool, isInside } from "./scope.ts";
import { VERIFY_TOOLS } from "./verify-names.ts";
import { nameOf, type Target, writtenTargets } from "./written-targets.ts";

/** What is true at this moment and not of the scope. */
export interface ScopeNow {
  /** The artefact of the phase the run is in; undefined without a run. */
  readonly artefact: string | undefined;
}

type MayWrite = (target: Target, tool: string, scope: Scope, now: ScopeNow) => boolean;

/** One line per permission; a target that nobody can name is in none of them. */
const MAY_WRITE: Readonly<Record<WritePermission, MayWrite>> = {
  none: () => false,
  "documents-and-artefact": (target, _tool, { documents, artefact }, now) => {
    if (target.kind !== "file") return false;
    if (isInside(target.path, documents)) return true;
    // The run has gone on since: the artefact of another phase is not the current one.
    const isCurrent = now.artefact === undefined || now.artefact === artefact;
    return artefact !== "" && target.path === artefact && isCurrent;
  },
  "plan-approved-files": (target, _tool, { planFiles }) =>
    target.kind !== "unknown" && planFiles.includes(nameOf(target)),
  "evidence-through-tool": (_target, tool) => VERIFY_TOOLS.includes(tool),
};

/** What to do instead, for whoever reads the refusal. */
const INSTEAD: Readonly<Record<WritePermission, string>> = {
  none: "You may not write at all: report what you have found.",
  "documents-and-artefact": "Write only documents and the artefact of the current phase.",
  "plan-approved-files": "Write only files that the plan lists, or report what else is needed.",
  "evidence-through-tool": "Leave evidence with the verify-result tool, and write nothing else.",
};

/**
 * Holds a sub-agent to its scope, call by call. All its findings are hard denials, so no grant lifts them: whoever wants more
 * makes a new plan. Pure; the same for every way in which a call can come.
 */
export function scopePolicy(scope: Scope, now: ScopeNow): GatePolicy {
  return {
    name: "delegation.scope",
    points: ["pre-tool"],
    check({ payload }: GateContext): readonly Finding[] {
      const facts = payload as CallFacts;
      const refusals = [
        ...overdue(scope, facts),
        ...foreignTool(scope, facts),
        ...foreignWrites(scope, facts, now),
      ];
      return refusals.map((message) => ({
        severity: "hard-deny",
        policy: "delegation.scope",
        message: `${message} Nothing was executed.`,
      }));
    },
  };
}

function overdue({ expiresAt }: Scope, { now }: CallFacts): readonly string[] {
  return now <= fromIso(expiresAt) ? [] : ["The time of this delegation is over."];
}

function foreignTool({ tools }: Scope, { tool }: CallFacts): readonly string[] {
  if (coversTool(tools, tool)) return [];
  return [`The tool ${shown(tool)} is not among those of this delegation.`];
}

function foreignWrites(scope: Scope, facts: CallFacts, now: ScopeNow): readonly string[] {
  const { role, writePermission } = scope;
  return writtenTargets(facts)
    .filter((target) => !MAY_WRITE[writePermission](target, facts.tool, scope, now))
    .map(
      (target) =>
        `The role ${role} has the write permission ${writePermission}, and ${shown(facts.tool)} would write ${shown(nameOf(target))}. ${INSTEAD[writePermission]}`,
    );
}
