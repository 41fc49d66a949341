import type { WatchedCall } from "../executor/order.ts";
import type { SessionId } from "../model/decision.ts";
import type { AlsoChanged, Operation } from "../model/operation.ts";
import type { TenantStore } from "../store/store.ts";
import { metadataOf } from "../tools/metadata.ts";
import type { Tool } from "../tools/tool.ts";
import { seen, type TargetParts } from "./target-version.ts";

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
