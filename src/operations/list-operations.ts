import type { SessionId } from "../model/decision.ts";
import { checkName } from "../model/names.ts";
import type { Operation } from "../model/operation.ts";
import type { Narrow, OperationStore } from "../store/operations.ts";

/** A whole session or one message of it. */
export interface LogScope {
  readonly sessionId: SessionId;
  readonly messageId?: string;
}

/** Everything a session or a message did, oldest first, however much it is. Throws invalid_input for an empty name. */
export async function listOperations(
  operations: Pick<OperationStore, "listBySession">,
  scope: LogScope,
  narrow: Pick<Narrow, "without"> = {},
): Promise<readonly Operation[]> {
  const { sessionId, messageId } = scope;
  checkName("session id", sessionId);
  // A message id that got lost on the way must not turn one message into the whole session.
  if (Object.hasOwn(scope, "messageId")) checkName("message id", messageId);
  const part = messageId === undefined ? narrow : { ...narrow, messageId };
  return operations.listBySession(sessionId, part);
}
