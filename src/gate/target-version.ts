import type { SessionId } from "../model/decision.ts";
import type { AlsoChanged, Operation } from "../model/operation.ts";
import { parseJson } from "../model/parse-json.ts";
import type { BroughtBack } from "../store/operations.ts";
import type { TenantStore } from "../store/store.ts";
import { metadataOf } from "../tools/safety.ts";
import type { Tool } from "../tools/tool.ts";
import { errorText } from "../util/error-text.ts";
import type { WatchedCall } from "./execute.ts";
import type { JudgeParts } from "./judge.ts";
import { whileLooking } from "./show.ts";

interface TargetParts extends Pick<JudgeParts, "registry" | "timers"> {
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

/** Each costs two looks at its target. */
const MOST = 20;
/** The newest operations of a session among which they are looked for. */
const PAGE = 100;

/** Undefined for a call that has no version of its own or only reads: nothing could be made of the looks. */
export function watchSession(
  sessionId: SessionId,
  tool: Tool,
  parts: TargetParts & { readonly store: Pick<TenantStore, "operations"> },
): (() => Promise<WatchedCall>) | undefined {
  if (tool.stateVersion === undefined || metadataOf(tool).effect === "read") return undefined;
  return async () => {
    const { operations } = await parts.store.operations.listNewest(sessionId, { limit: PAGE });
    const inEffect = operations.filter(({ status, undoOf }) => status === "success" && !undoOf);
    const earlier = inEffect.filter((one) => canBeWatched(one, parts)).slice(0, MOST);
    const before = await versionsOf(earlier, parts);
    // What somebody else changed is theirs from then on, whatever this call does to it.
    const known = earlier.filter((one) => knownVersions(one, inEffect).includes(before(one)));
    return async () => {
      const after = await versionsOf(known, parts);
      const moved = known.filter((one) => after(one) !== "" && after(one) !== before(one));
      return moved.map((one): AlsoChanged => ({ id: one.id, version: after(one) }));
    };
  };
}

function canBeWatched({ undo, stateVersion, tool }: Operation, { registry }: TargetParts): boolean {
  const hasUndo = undo !== undefined && !undo.irreversible;
  return hasUndo && stateVersion !== "" && registry.get(tool)?.stateVersion !== undefined;
}

/** As it left its target itself, or as the newest call that changed the target as well has left it. Newest come first. */
function knownVersions(
  { id, stateVersion }: Operation,
  inEffect: readonly Operation[],
): readonly string[] {
  for (const { undo } of inEffect) {
    const changed = undo?.alsoChanged?.find((one) => one.id === id);
    if (changed !== undefined) return [changed.version, stateVersion];
  }
  return [stateVersion];
}

async function versionsOf(
  operations: readonly Operation[],
  parts: TargetParts,
): Promise<(operation: Operation) => string> {
  const versions = await Promise.all(operations.map((one) => seen(one, parts)));
  const byId = new Map(operations.map(({ id }, index) => [id, versions[index] ?? ""]));
  return ({ id }) => byId.get(id) ?? "";
}
