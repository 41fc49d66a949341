import { isSallyportError } from "../model/errors.ts";
import { isName } from "../model/names.ts";
import type { Operation, OperationId } from "../model/operation.ts";
import type { OperationStore } from "../store/operations.ts";
import { sha256Hex } from "../util/hash.ts";

/** After so many failures nobody should expect the next one to help. */
export const UNDO_TRIES_MAX = 100;

/** The next try at taking one operation back, or the earlier one that stands in its way. */
export type UndoAttempt =
  | { readonly state: "free"; readonly undoOperationId: OperationId; readonly number: number }
  | { readonly state: "taken"; readonly by: Operation }
  | { readonly state: "exhausted" };

/**
 * The id of a try is made from what it takes back, so that everybody who wants to take it back, in any process, before or
 * after a crash, asks the store for the same id, and the store lets one of them have it.
 */
export function undoIdOf(id: OperationId, number: number): OperationId {
  const suffix = number === 1 ? "" : `.${number}`;
  const name = `undo.${id}${suffix}`;
  return isName(name) ? name : `undo.${sha256Hex(id)}${suffix}`;
}

/**
 * Number n + 1 is used only when n failed, and a failure is final: so at most one try is alive or has succeeded. One that
 * belongs to another operation is passed over: a second try at `a` and a first one at `a.2` have the same id.
 */
export async function nextAttempt(
  operations: Pick<OperationStore, "get">,
  id: OperationId,
  from = 1,
): Promise<UndoAttempt> {
  for (let number = from; number <= UNDO_TRIES_MAX; number += 1) {
    const undoOperationId = undoIdOf(id, number);
    const found = await lookUp(operations, undoOperationId);
    if (found === undefined) return { state: "free", undoOperationId, number };
    if (found.undoOf === id && found.status !== "failed") return { state: "taken", by: found };
  }
  return { state: "exhausted" };
}

/** Undefined when there is none. */
export async function lookUp(
  operations: Pick<OperationStore, "get">,
  id: OperationId,
): Promise<Operation | undefined> {
  try {
    return await operations.get(id);
  } catch (error) {
    if (isSallyportError(error, "not_found")) return undefined;
    throw error;
  }
}
