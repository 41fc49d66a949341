import type { Operation } from "../model/operation.ts";
import { parseJson } from "../model/parse-json.ts";
import type { BroughtBack } from "../store/operations.ts";
import { errorText } from "../util/error-text.ts";
import type { JudgeParts } from "./judge-call.ts";
import { whileLooking } from "./looking-call.ts";

export interface TargetParts extends Pick<JudgeParts, "registry" | "timers"> {
  readonly tenant: string;
}

/** A sentence when somebody changed the target after the operation, undefined when not or when nobody can tell. */
export async function changedSince(
  operation: Operation,
  parts: TargetParts,
): Promise<string | undefined> {
  if (operation.stateVersion === "") return undefined;
  try {
    const version = await versionOf(operation, parts);
    if (version === undefined || version === operation.stateVersion) return undefined;
    return "Somebody changed the target since. Look at it before you take this back by hand.";
  } catch (error) {
    return `It could not be seen whether the target was changed since: ${errorText(error)}`;
  }
}

/**
 * Looks before an operation is undone, and gives what is to be asked afterwards: which of the earlier ones have their
 * targets back as they left them. Two kinds of earlier ones are known to share a record with it:
 * - those in `alsoChanged`, which were looked at when it ran. Their target must be as it left it then, or as an undo since has
 *   left it.
 * - those whose target is the very same: both have the same version before, both have the same other version after, and the
 *   later one found what the earlier one had left.
 */
export async function watchEarlier(
  operation: Operation,
  earlier: readonly Operation[],
  parts: TargetParts,
): Promise<() => Promise<readonly BroughtBack[]>> {
  const before = operation.stateVersion;
  const changed = new Map(operation.undo?.alsoChanged?.map(({ id, version }) => [id, version]));
  const here: { one: Operation; isSame: boolean }[] = [];
  for (const one of before === "" ? [] : earlier) {
    const now = await seen(one, parts);
    const left = changed.get(one.id);
    const isAsLeft = left !== undefined && now !== "" && [left, one.stateVersion].includes(now);
    const isSame = now === before && one.stateVersion === operation.undo?.versionBefore;
    if (isAsLeft || isSame) here.push({ one, isSame: !isAsLeft });
  }
  return async () => {
    const after = here.length === 0 ? "" : await seen(operation, parts);
    const back: BroughtBack[] = [];
    for (const { one, isSame } of after === "" || after === before ? [] : here) {
      const to = await seen(one, parts);
      const isBack = to !== "" && to !== one.stateVersion && (!isSame || to === after);
      if (isBack) back.push({ id: one.id, from: one.stateVersion, to });
    }
    return back;
  };
}

/** Empty when nobody can tell: then nothing follows from it. */
export async function seen(operation: Operation, parts: TargetParts): Promise<string> {
  try {
    return (await versionOf(operation, parts)) ?? "";
  } catch {
    return "";
  }
}

/** Undefined when its tool is gone or knows no versions. */
async function versionOf(
  { tool: name, sessionId, callId, workingDirectory, input }: Operation,
  { registry, timers, tenant }: TargetParts,
): Promise<string | undefined> {
  const tool = registry.get(name);
  if (tool?.stateVersion === undefined) return undefined;
  const facts = {
    tenant,
    sessionId,
    callId,
    input: parseJson(input),
    workingDirectory,
    places: undefined,
  };
  return whileLooking(facts, timers, async (call) => tool.stateVersion?.(call));
}
