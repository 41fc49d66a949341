import type { CallFacts } from "../gate/call-facts.ts";
import type { GatePolicy } from "../gate/gate-policy.ts";
import { shown } from "../gate/shown.ts";
import type { Finding } from "../model/finding.ts";
import type { Run } from "../model/run.ts";
import { currentArtefact, isInside } from "./scope.ts";
import { VERIFY_TOOLS } from "./verify-names.ts";
import { nameOf, type Target, writtenTargets } from "./written-targets.ts";

/**
 * Binds everybody in a run, its lead included: production is written only in the phase execute and only where the plan says;
 * documents and the artefact of the phase may be written at any time; evidence comes only through its tools. Of a command or
 * an address nobody can say what it changes: that is a soft denial, which a person may lift.
 */
export function phasePolicy(run: Run): GatePolicy {
  return {
    name: "run.phase",
    points: ["pre-tool"],
    check({ payload }) {
      const facts = payload as CallFacts;
      if (VERIFY_TOOLS.includes(facts.tool)) return closed(run);
      return writtenTargets(facts).flatMap((target) => [
        ...closed(run),
        ...judged(run, target, facts),
      ]);
    },
  };
}

function closed({ status }: Run): readonly Finding[] {
  if (status !== "stopped") return [];
  return [finding("hard-deny", "The run was stopped.", "Start another one.")];
}

function judged(run: Run, target: Target, { tool }: CallFacts): readonly Finding[] {
  const { phase, documents, planFiles, evidenceFolder } = run;
  const what = `${shown(tool)} would write ${shown(nameOf(target))}`;
  if (target.kind === "unknown") {
    const why = `${what}, and nobody can say whether that is part of the plan.`;
    return [finding("soft-deny", why, "Use a tool that names what it writes, or ask for a grant.")];
  }
  if (target.kind === "file") {
    if (evidenceFolder !== "" && isInside(target.path, [evidenceFolder])) {
      return [
        finding("hard-deny", `${what}, which holds evidence.`, "Use the verify-result tool."),
      ];
    }
    const isDocument = documents !== "" && isInside(target.path, [documents]);
    if (isDocument || target.path === currentArtefact(run)) return [];
  }
  if (phase !== "execute") {
    const why = `${what}, but the run is in the phase ${phase}, and production is written only in execute.`;
    return [finding("hard-deny", why, "Bring the run there first.")];
  }
  if (planFiles.includes(nameOf(target))) return [];
  return [finding("hard-deny", `${what}, which the plan does not list.`, "Revise the plan first.")];
}

function finding(severity: Finding["severity"], why: string, instead: string): Finding {
  return { severity, policy: "run.phase", message: `${why} Nothing was executed. ${instead}` };
}
