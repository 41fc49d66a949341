import type { GateAnswer } from "../model/finding.ts";
import { allow, ask, deny, joinAnswers } from "./answers.ts";
import type { Access, CallFacts, ResolvedResource } from "./call-facts.ts";
import { DANGEROUS_PATHS, type DangerousPath, dangersOf } from "./dangerous-paths.ts";
import { isWithin, segmentsOf } from "./path-pattern.ts";
import type { CompiledPolicy } from "./policy.ts";
import { allowingRule, otherKinds } from "./rule-answers.ts";
import { shown } from "./shown.ts";

const POLICY = "permission.file";

/** A folder that files may be used in without a rule; write includes read. */
export interface FileRoot {
  readonly path: string;
  readonly access: Access;
}

export interface FileLimits {
  readonly fileRoots: readonly FileRoot[];
  /** Instead of `DANGEROUS_PATHS`, not in addition to it. */
  readonly dangerousPaths?: readonly DangerousPath[];
}

type File = Extract<ResolvedResource, { kind: "file" }>;

/**
 * Class file. Only resolved paths are compared, by whole names. Each file must be let through by itself: by a root that
 * holds it or by a rule; a dangerous path overrules both.
 */
export function checkFile(
  facts: CallFacts,
  { policy, ...limits }: { readonly policy: CompiledPolicy } & FileLimits,
): GateAnswer {
  const files = facts.resources.filter((resource) => resource.kind === "file");
  if (files.length === 0) {
    return ask(
      POLICY,
      `Tool ${shown(facts.tool)} works on files but did not say on which for this input, so a person has to look at it.`,
    );
  }
  return joinAnswers([
    ...files.map((file) => checkOne(file, facts, policy, limits)),
    ...otherKinds(facts, "file", POLICY),
  ]);
}

function checkOne(
  file: File,
  facts: CallFacts,
  policy: CompiledPolicy,
  limits: FileLimits,
): GateAnswer {
  const segments = segmentsOf(file.resolved);
  if (segments === undefined) {
    return deny(POLICY, notResolved(file.path, "its resolved form is not an absolute plain path"));
  }
  const verb = file.access === "write" ? "Writing" : "Reading";
  const dangers = dangersOf(segments, file.access, limits.dangerousPaths ?? DANGEROUS_PATHS).map(
    ({ id, answer, reason }) =>
      answer === "deny"
        ? deny(
            `danger.${id}`,
            `${verb} ${shown(file.resolved)} is refused: ${reason}. Nothing was executed. Use a file elsewhere, or ask a person to do this step.`,
          )
        : ask(
            `danger.${id}`,
            `${verb} ${shown(file.resolved)} needs a person's consent: ${reason}.`,
          ),
  );
  return joinAnswers([...dangers, permitted(file, segments, facts, policy, limits)]);
}

function permitted(
  file: File,
  segments: readonly string[],
  facts: CallFacts,
  policy: CompiledPolicy,
  limits: FileLimits,
): GateAnswer {
  const holds = ({ path, access }: FileRoot) => {
    const folder = segmentsOf(path);
    return (
      folder !== undefined &&
      isWithin(segments, folder) &&
      (access === "write" || file.access === "read")
    );
  };
  if (limits.fileRoots.some(holds)) return allow();
  const subject = { kind: "file", segments, access: file.access } as const;
  if (allowingRule(policy, facts, subject) !== undefined) return allow();
  return ask(
    POLICY,
    `${shown(file.resolved)} lies outside the folders open for ${file.access === "write" ? "writing" : "reading"}, and no rule allows it, so a person has to decide. Stay inside the open folders to avoid the wait.`,
  );
}

export function notResolved(path: string, reason: string): string {
  return `The path ${shown(path)} was refused, because nobody can say where it leads: ${reason}. Nothing was executed. Use an absolute path to a file that can be reached.`;
}
