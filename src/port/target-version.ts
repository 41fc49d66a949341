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
 * Looks before an operation is taken back, and gives what is to be asked afterwards: which of the earlier ones have their
 * targets back as they left them. That two calls are about the same target no input tells, but looking does: both have the
 * same version before, both have the same other version after, and the later one found what the earlier one had left.
 */
export async function watchEarlier(
  operation: Operation,
  earlier: readonly Operation[],
  parts: TargetParts,
): Promise<() => Promise<readonly BroughtBack[]>> {
  const before = operation.stateVersion;
  const here: Operation[] = [];
  for (const one of before === "" ? [] : earlier) {
    if ((await seen(one, parts)) === before) here.push(one);
  }
  return async () => {
    const after = here.length === 0 ? "" : await seen(operation, parts);
    const back: BroughtBack[] = [];
    for (const one of after === "" || after === before ? [] : here) {
      const isSame = (await seen(one, parts)) === after && one.stateVersion !== after;
      if (isSame) back.push({ id: one.id, from: one.stateVersion, to: after });
    }
    return back;
  };
}

/** Empty when nobody can tell: then nothing follows from it. */
async function seen(operation: Operation, parts: TargetParts): Promise<string> {
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
