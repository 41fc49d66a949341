import type { GateAnswer } from "../model/finding.ts";
import { PERMISSION_CLASSES, type PermissionClass } from "../tools/metadata.ts";
import { deny, joinAnswers } from "./answers.ts";
import { type BashLimits, checkBash } from "./bash.ts";
import { checkFile, checkUnresolved, type FileLimits } from "./file.ts";
import { checkGeneric } from "./generic.ts";
import { checkProtected, type ProtectedState } from "./protected-paths.ts";
import { checkReadonly } from "./readonly.ts";
import { restrictingRules } from "./rule-answers.ts";
import type { SeenCall } from "./seen-call.ts";
import { shown } from "./shown.ts";
import { checkWebfetch } from "./webfetch.ts";

/** What the permission check goes by: the compiled rules, and places and commands as data. */
export type PermissionState = FileLimits & BashLimits & ProtectedState;

type Check = (call: SeenCall, state: PermissionState) => GateAnswer;

/** The class alone selects the check. */
const CHECKS: Readonly<Record<PermissionClass, Check>> = {
  bash: checkBash,
  file: checkFile,
  webfetch: checkWebfetch,
  readonly: checkReadonly,
  generic: checkGeneric,
  "": checkGeneric,
};

/**
 * May this call be made? The gate's own files are denied to every class. Rules that deny or ask bind every class; then the class has its say. Deny beats ask, ask beats
 * allow. The same for every way a call can come in, because the facts do not hold the way.
 */
export function checkPermission(call: SeenCall, state: PermissionState): GateAnswer {
  const { permissionClass, tool } = call.facts;
  if (!PERMISSION_CLASSES.includes(permissionClass)) {
    return deny(
      "permission",
      `Tool ${shown(tool)} has the permission class ${shown(String(permissionClass))}, which does not exist, so nobody can check the call. Nothing was executed. Tell the operator.`,
    );
  }
  const said = [
    checkUnresolved(call),
    checkProtected(call, state),
    restrictingRules(state.policy, call),
    CHECKS[permissionClass](call, state),
  ];
  return joinAnswers(said.filter((answer) => answer !== undefined));
}
