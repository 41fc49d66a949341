import { lostId } from "../executor/lost-question.ts";
import type { Executed } from "../executor/order.ts";
import type { CallAnswer } from "../model/call.ts";
import type { Operation } from "../model/operation.ts";

/** What came of an order, in the words that callers get. The text is written for the model that reads it. */
export function answerOf(executed: Executed): CallAnswer {
  switch (executed.status) {
    case "done": {
      const { operation, result } = executed;
      return {
        answer: "done",
        text: operation.output,
        operationId: operation.id,
        truncated: operation.truncated,
        storedPath: operation.storedPath,
        ...(result.data === undefined ? {} : { data: result.data }),
        ...(operation.undo === undefined ? {} : { undo: operation.undo }),
      };
    }
    case "failed":
      return {
        answer: "failed",
        text: executed.operation.error || executed.result.text,
        operationId: executed.operation.id,
        ...(executed.result.data === undefined ? {} : { data: executed.result.data }),
      };
    case "unknown":
      return unknown(executed.operation);
    case "overtaken":
      return recorded(executed.operation);
    case "refused":
      return executed.operation === undefined
        ? { answer: "failed", text: REFUSALS[executed.reason] }
        : recorded(executed.operation);
  }
}

const REFUSALS = {
  stopped:
    "Not executed, and it will not run by itself later: everything was stopped by an operator. Ask for it again once work was resumed.",
  not_approved: "Not executed: the decision behind it is not approved any more.",
  expired_or_changed:
    "Not executed: the approval has expired, or is for something else than what would run. Propose it again.",
  rule_ended:
    "Not executed: the standing rule that allowed it has ended. Propose it again, so that a person is asked.",
  claim_lost:
    "Not executed: the claim on the task is over, somebody else may hold it. Stop working on this task.",
  overtaken:
    "Not executed: somebody else is at the calls around this one, to take them back or to go on with them. Look again later.",
  delegation_ended: "Not executed: the delegation behind this has ended. Stop, and report back.",
  restored:
    "Not executed: the store was restored from a backup since this was approved, and it may have happened already. Look first, then propose it again.",
  used_up: "Not executed: this approval was used before.",
  definition_changed:
    "Not executed: the tool was changed since it was allowed. Propose the call again, so that it is looked at anew.",
} as const;

/** Said of a call that is not in effect any more, whatever it answered when it was made. */
export const UNDONE =
  "It was carried out and undone afterwards: nothing of it is in effect. To do it again, ask for it as a new call with a new key.";

/** Somebody else carried it out or is doing so: what they recorded is the answer. */
export function recorded(operation: Operation): CallAnswer {
  const { id: operationId, output: text, truncated, storedPath, undo } = operation;
  switch (operation.status) {
    case "rolled_back":
      return { answer: "failed", text: UNDONE, operationId };
    case "success":
      return {
        answer: "done",
        text,
        operationId,
        truncated,
        storedPath,
        ...(undo === undefined ? {} : { undo }),
      };
    case "failed":
      return { answer: "failed", text: operation.error, operationId };
    case "started":
    case "unknown":
      return unknown(operation);
  }
}

function unknown({ id, error, status, attempt }: Operation): CallAnswer {
  // Recorded as unknown, it was asked about in the same transaction.
  const asked = status === "unknown" ? { interactionId: lostId(id, attempt) } : {};
  const why = error === "" ? "" : ` (${error})`;
  const text = `It is not known whether this happened${why}. Do not repeat it: a person has to look first.`;
  return { answer: "unknown", text, operationId: id, ...asked };
}
