import type { AuditObserver } from "../audit/observer.ts";
import type { Executor } from "../executor/executor.ts";
import { SallyportError } from "../model/errors.ts";
import { foldName } from "../model/names.ts";
import type { UndoAnswer, UndoDispatch } from "../operations/take-back.ts";
import { notGoneOn } from "../store/give-up.ts";
import type { RefusalLog } from "../store/refusals.ts";
import { answerOf } from "./answer-of.ts";
import { type Caller, type JudgeParts, judgeCall } from "./judge-call.ts";
import { goesThroughLink } from "./linked-path.ts";
import { changedSince, watchEarlier } from "./target-version.ts";

export interface UndoParts {
  readonly judging: JudgeParts;
  readonly executor: Executor;
  readonly observer: Pick<AuditObserver, "refused">;
  readonly refusals: RefusalLog;
  readonly tenant: string;
  /** Whoever asked for the calls cannot consent to what would otherwise be asked. */
  readonly chain: readonly string[];
}

/**
 * Makes a compensation like any other call: same gate, own operation, own entries. The person who asked for the rollback has
 * consented to what would otherwise be asked; a denial stays a denial.
 */
export function undoDispatcher(parts: UndoParts): UndoDispatch {
  const { judging, executor, observer, refusals, tenant, chain } = parts;
  const looking = { registry: judging.registry, timers: judging.timers, tenant };
  return async ({ operation, undo, earlier, undoOperationId, by }): Promise<UndoAnswer> => {
    const { sessionId, turn, workingDirectory, decisionId, step } = operation;
    const request = { callId: undoOperationId, tool: undo.tool, input: undo.input };
    const caller: Caller = { tenant, workingDirectory, sessionId, chain: [by] };
    const judged = await judgeCall(request, caller, judging, "undo");
    const refuse = async (outcome: "denied" | "failed", text: string): Promise<UndoAnswer> => {
      const data = { tool: undo.tool, verdict: judged.verdict, undo_of: operation.id };
      await refusals.record({ callId: undoOperationId, sessionId, actor: by, data });
      observer.refused({ ...request, turn, sessionId, outcome });
      return { answer: outcome, text };
    };
    if (judged.verdict === "failed") return refuse("failed", judged.text);
    if (judged.verdict === "deny") return refuse("denied", judged.text);
    if (judged.verdict === "ask" && chain.map(foldName).includes(foldName(by))) {
      return refuse("denied", NEEDS_A_PERSON);
    }
    // The undo was written down with the place that was changed. A link that leads elsewhere by now is nobody's consent.
    const { resources } = judged.facts;
    if (judged.verdict === "ask" && (await goesThroughLink(resources, workingDirectory))) {
      return { answer: "conflicted", text: LINKED };
    }
    const changed = await changedSince(operation, looking);
    if (changed !== undefined) return { answer: "conflicted", text: changed };
    const broughtBack = await watchEarlier(operation, earlier, looking);
    const executed = await executor.run({
      operationId: undoOperationId,
      tool: judged.tool,
      definitionHash: judged.definition,
      input: judged.input,
      sessionId,
      messageId: operation.messageId,
      callId: undoOperationId,
      turn,
      step: 0,
      workingDirectory,
      places: judged.places,
      undoOf: operation.id,
      broughtBack,
      ...(decisionId === "" ? {} : { holds: [notGoneOn(`${decisionId}.${step + 1}`)] }),
      chain: [by, ...operation.chain],
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

const LINKED =
  "A link was put in the way of the path since, so nothing was changed. Look at it before you undo this by hand.";

const NEEDS_A_PERSON =
  "Taking this back needs a person's consent, and the one who asked for it made the call. Let a person ask for the rollback.";
