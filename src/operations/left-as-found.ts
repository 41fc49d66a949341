import type { Operation } from "../model/operation.ts";

/** Each costs two looks at its target, and versions that are counted are alike for many targets. */
const MOST = 20;

/**
 * The operations that have left the target as this one found it, as far as versions tell; the nearest first. Pure. The
 * given ones come oldest first. Taking this one back may bring those back to what they left: see `BroughtBack`.
 */
export function leftAsFound(operation: Operation, all: readonly Operation[]): readonly Operation[] {
  const found = operation.undo?.versionBefore ?? "";
  if (found === "") return [];
  const own = all.findIndex(({ id }) => id === operation.id);
  return all
    .slice(0, Math.max(own, 0))
    .filter((one) => one.status === "success" && one.undoOf === "" && one.stateVersion === found)
    .reverse()
    .slice(0, MOST);
}
