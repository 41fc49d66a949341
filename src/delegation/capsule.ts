import type { Delegation, DelegationId, Role, Scope } from "../model/delegation.ts";
import type { CompletionPromise } from "../model/promise.ts";

/** Everything a sub-agent is given: no word of the conversation that it comes from. Plain data, to be sent anywhere. */
export interface Capsule {
  /** Its session; empty in a dry run, where there is none. */
  readonly delegationId: DelegationId | "";
  readonly planId: string;
  readonly role: Role;
  readonly task: string;
  readonly context: string;
  readonly promise: CompletionPromise;
  readonly scope: Omit<Scope, "expiresAt"> & Partial<Pick<Scope, "expiresAt">>;
  readonly workingDirectory: string;
}

export function capsuleOf(delegation: Delegation): Capsule {
  const { id, scope, task, capsule, promise, workingDirectory } = delegation;
  const { planId, role } = scope;
  return {
    delegationId: id,
    planId,
    role,
    task,
    context: capsule,
    promise,
    scope,
    workingDirectory,
  };
}

/** The capsule as a text for a model. */
export function describeCapsule({ role, task, context, promise, scope }: Capsule): string {
  const list = (title: string, items: readonly string[]) =>
    items.length === 0 ? [] : [`${title}: ${items.join(", ")}`];
  const needs = promise.evidence.map(({ name, command }) =>
    command === undefined ? name : `${name} (${command})`,
  );
  return [
    `Role: ${role}`,
    `Task: ${task}`,
    `Done when: ${promise.statement}`,
    ...list("Evidence needed", needs),
    `You may write: ${scope.writePermission}`,
    ...list("Files", scope.planFiles),
    ...list("Documents", scope.documents),
    ...list("Artefact", scope.artefact === "" ? [] : [scope.artefact]),
    ...list("Tools", scope.tools),
    `Calls left: ${scope.calls}`,
    "",
    context,
  ].join("\n");
}
