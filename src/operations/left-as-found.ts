import type { Operation } from "../model/operation.ts";

/** The operations that may be as they left their targets once this one is undone. Pure; the given ones come oldest first. */
export function sharesTarget(
  operation: Operation,
  all: readonly Operation[],
): readonly Operation[] {
  const changed = new Set(operation.undo?.alsoChanged?.map(({ id }) => id));
  const linked = all.filter(({ id }) => changed.has(id));
  return [...linked, ...leftAsFound(operation, all).filter(({ id }) => !changed.has(id))];
}

/** The later operations that changed the target of this one as well: before them it must not be undone. */
export function changedBy({ id }: Operation, all: readonly Operation[]): readonly Operation[] {
  return all.filter(({ undo }) => undo?.alsoChanged?.some((one) => one.id === id));
}

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
