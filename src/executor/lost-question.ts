import type { InteractionDraft, InteractionId } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import type { Along } from "../store/along.ts";
import { openingOf } from "../store/interaction-steps.ts";
import { LOST_MS } from "../store/lost-call.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { Order } from "./order.ts";

/** A lost connection is a question, not an error: it is opened in the transaction that records the outcome as unknown. */
export function lostQuestion(order: Order, { id, attempt }: Operation, reason: string): Along {
  const { sessionId, callId, actor, chain = [actor] } = order;
  const facts = { id, attempt, sessionId, callId, chain, tool: order.tool.name };
  return lostFrom({ ...facts, input: canonicalJson(order.input) }, reason, actor);
}

/** The same from what is stored of it, for whoever has not the tool. */
export function lostFrom(
  operation: Pick<
    Operation,
    "id" | "attempt" | "tool" | "input" | "sessionId" | "callId" | "chain"
  >,
  reason: string,
  actor: string,
): Along {
  const { id, attempt, tool, input: args_json, sessionId, callId, chain } = operation;
  const draft: InteractionDraft = {
    type: "connection_lost",
    sessionId,
    callId,
    displayText: `It is not known whether ${tool} happened: ${reason}. Look, and say what you found.`,
    hash: sha256Hex(canonicalJson({ v: 1, operation: id, attempt, tool, args_json })),
    chain,
    operationId: id,
    deadlineMs: LOST_MS,
    pendingTool: { tool_name: tool, args_json, summary: reason.toWellFormed() },
  };
  return openingOf(lostId(id, attempt), draft, actor);
}

/** One question per attempt: when it is tried once more and is lost again, that is another question. */
export function lostId(operationId: string, attempt: number): InteractionId {
  return `${operationId}.lost-${attempt}`;
}
