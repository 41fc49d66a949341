import type { SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import type { Operation } from "../model/operation.ts";
import { MAX_LIST } from "../store/decisions.ts";
import type { OperationStore } from "../store/operations.ts";

/** A whole session or one message of it. */
export interface LogScope {
  readonly sessionId: SessionId;
  readonly messageId?: string;
}

/**
 * Everything a session or a message did, oldest first. Throws payload_too_large when that is more than the store lists at
 * once: the list would be cut at its new end, where a rollback begins. Throws invalid_input for an empty name.
 */
export async function listOperations(
  operations: Pick<OperationStore, "listBySession">,
  scope: LogScope,
): Promise<readonly Operation[]> {
  const { sessionId, messageId } = scope;
  checkName("session id", sessionId);
  // A message id that got lost on the way must not turn one message into the whole session.
  if (Object.hasOwn(scope, "messageId")) checkName("message id", messageId);
  const narrow = messageId === undefined ? {} : { messageId };
  const found = await operations.listBySession(sessionId, narrow);
  if (found.length < MAX_LIST) return found;
  const hint = "Ask for one message, or one call, at a time; the newest first.";
  throw new SallyportError("payload_too_large", { what: "operations", length: found.length, hint });
}
