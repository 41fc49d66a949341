import type { AuditObserver } from "../audit/observer.ts";
import type { Executor } from "../executor/executor.ts";
import { SallyportError } from "../model/errors.ts";
import type { Operation } from "../model/operation.ts";
import { parseJson } from "../model/parse-json.ts";
import type { UndoAnswer, UndoDispatch } from "../operations/take-back.ts";
import type { ToolCall } from "../tools/tool.ts";
import { errorText } from "../util/error-text.ts";
import { answerOf } from "./answer-of.ts";
import { type Caller, type JudgeParts, judgeCall } from "./judge-call.ts";

/**
 * Makes a compensation like any other call: same gate, own operation, own entries. Who asked for the rollback has consented
 * to what would otherwise be asked; a denial stays a denial.
 */
export function undoDispatcher(
  parts: JudgeParts,
  executor: Executor,
  place: Pick<Caller, "tenant" | "workingDirectory">,
  observer: Pick<AuditObserver, "refused">,
): UndoDispatch {
  return async ({ operation, undo, undoOperationId, by }): Promise<UndoAnswer> => {
    const { sessionId } = operation;
    const caller: Caller = { ...place, sessionId, chain: [by] };
    const request = { callId: undoOperationId, tool: undo.tool, input: undo.input };
    const judged = await judgeCall(request, caller, parts);
    if (judged.verdict === "failed" || judged.verdict === "deny") {
      const outcome = judged.verdict === "deny" ? "denied" : "failed";
      observer.refused({ ...request, turn: operation.turn, sessionId, outcome });
      return { answer: outcome, text: judged.text };
    }
    const changed = await changedSince(operation, parts, place);
    if (changed !== undefined) return { answer: "conflicted", text: changed };
    const executed = await executor.run({
      operationId: undoOperationId,
      tool: judged.tool,
      definitionHash: judged.definition,
      input: judged.input,
      sessionId,
      messageId: operation.messageId,
      callId: undoOperationId,
      turn: operation.turn,
      step: 0,
      workingDirectory: place.workingDirectory,
      undoOf: operation.id,
      actor: by,
    });
    if (executed.status === "overtaken")
      return { answer: "used_up", operation: executed.operation };
    if (executed.status === "refused" && executed.operation !== undefined) {
      return { answer: "used_up", operation: executed.operation };
    }
    const { answer, text } = answerOf(executed);
    if (answer === "pending")
      throw new SallyportError("illegal_transition", { id: undoOperationId });
    return { answer, text };
  };
}

/** A sentence when somebody changed the target after the operation, undefined when not or when nobody can tell. */
async function changedSince(
  operation: Operation,
  { registry }: JudgeParts,
  { tenant, workingDirectory }: Pick<Caller, "tenant" | "workingDirectory">,
): Promise<string | undefined> {
  const tool = registry.get(operation.tool);
  if (tool?.stateVersion === undefined || operation.stateVersion === "") return undefined;
  const call: ToolCall = {
    callId: operation.callId,
    input: parseJson(operation.input),
    context: {
      tenant,
      sessionId: operation.sessionId,
      signal: AbortSignal.timeout(60_000),
      workingDirectory,
      progress: () => {},
      idempotencyKey: "",
      fence: 0,
    },
  };
  try {
    if ((await tool.stateVersion(call)) === operation.stateVersion) return undefined;
    return "Somebody changed the target since. Look at it before you take this back by hand.";
  } catch (error) {
    return `It could not be seen whether the target was changed since: ${errorText(error)}`;
  }
}
