import type { GateAnswer } from "../model/finding.ts";
import { allow, ask, deny, joinAnswers } from "./answers.ts";
import type { Access } from "./call-facts.ts";
import { DANGEROUS_PATHS, type DangerousPath, dangersOf } from "./dangerous-paths.ts";
import { isWithin, segmentsOf } from "./path-pattern.ts";
import type { CompiledPolicy } from "./policy.ts";
import { allowingRule, otherKinds } from "./rule-answers.ts";
import type { SeenCall, SeenFile } from "./seen-call.ts";
import { shown } from "./shown.ts";

const POLICY = "permission.file";

/** A folder that files may be used in without a rule; write includes read. */
export interface FileRoot {
  readonly path: string;
  readonly access: Access;
}

export interface FileLimits {
  readonly policy: CompiledPolicy;
  readonly fileRoots: readonly FileRoot[];
  /** Instead of `DANGEROUS_PATHS`, not in addition to it. */
  readonly dangerousPaths?: readonly DangerousPath[];
}

/**
 * Class file. Only resolved paths are compared, by whole names. Each file must be let through by itself: by a root that
 * holds it or by a rule; a dangerous path overrules both.
 */
export function checkFile(call: SeenCall, limits: FileLimits): GateAnswer {
  const refused = checkUnresolved(call);
  if (refused !== undefined) return refused;
  if (call.files.length === 0) {
    return ask(
      POLICY,
      `Tool ${shown(call.facts.tool)} works on files but did not say on which for this input, so a person has to look at it.`,
    );
  }
  return joinAnswers([
    ...call.files.flatMap((file) => [...dangers(file, limits), permitted(file, call, limits)]),
    ...otherKinds(call, "file", POLICY),
  ]);
}

/** A path that nobody could resolve is denied whatever the class: what cannot be named cannot be judged. */
export function checkUnresolved({ unresolved }: SeenCall): GateAnswer | undefined {
  if (unresolved.length === 0) return undefined;
  return joinAnswers(
    unresolved.map(({ path, reason }) =>
      deny(
        POLICY,
        `The path ${shown(path)} was refused, because nobody can say where it leads: ${reason}. Nothing was executed. Use an absolute path to a place that can be reached.`,
      ),
    ),
  );
}

function dangers(file: SeenFile, { dangerousPaths = DANGEROUS_PATHS }: FileLimits): GateAnswer[] {
  const what = `${file.access === "write" ? "Writing" : "Reading"} ${shown(file.resolved)}`;
  return dangersOf(file.segments, file.access, dangerousPaths).map(({ id, answer, reason }) =>
    answer === "deny"
      ? deny(
          `danger.${id}`,
          `${what} is refused: ${reason}. Nothing was executed. Use a file elsewhere, or ask a person to do this step.`,
        )
      : ask(`danger.${id}`, `${what} needs a person's consent: ${reason}.`),
  );
}

function permitted(file: SeenFile, { facts }: SeenCall, limits: FileLimits): GateAnswer {
  const { segments, access } = file;
  const isOpen = limits.fileRoots.some((root) => {
    const folder = segmentsOf(root.path);
    const isEnough = root.access === "write" || access === "read";
    return isEnough && folder !== undefined && isWithin(segments, folder);
  });
  if (isOpen || allowingRule(limits.policy, facts, { kind: "file", segments, access })) {
    return allow();
  }
  return ask(
    POLICY,
    `${shown(file.resolved)} lies outside the folders open for ${access === "write" ? "writing" : "reading"}, and no rule allows it, so a person has to decide. Stay inside the open folders to avoid the wait.`,
  );
}
