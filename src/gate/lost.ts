import type { CallAnswer } from "../model/call.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import type { Conditions } from "../store/engine.ts";
import { closingStep, whyClosed } from "../store/interaction-rows.ts";
import type { Outcome } from "../store/operations.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { answerOf, recorded } from "./answers.ts";
import { repeatOrder } from "./attempt.ts";
import type { GateContext } from "./context.ts";
import type { FoundOut, PersonsAnswer } from "./inbox.ts";
import { pastFirstWrite } from "./propose.ts";
import { carryOn, orderOf } from "./recover.ts";
import { type FoundUndo, undoFrom } from "./settle.ts";

/**
 * A person found out what became of a call. The answer and the outcome are one transaction, so that nothing is repeated on
 * an answer that was not recorded; the decision behind it continues from there.
 */
export async function settleLost(
  context: GateContext,
  question: Interaction,
  found: PersonsAnswer & FoundOut,
): Promise<CallAnswer> {
  const { store } = context;
  const { id, operationId } = question;
  const { by, hash, reason = "" } = found;
  const operation = await store.operations.get(operationId);
  const answer = found.happened ? "happened" : found.otherwise;
  const closing = closingStep(
    id,
    { outcome: "answered", by, reason, answer },
    // Not if it was reassigned meanwhile. What was found out counts however late it is.
    { hash, assigned_to: question.assignedTo, ...stillAsked(question) },
  );
  if (isAsked(question) && !found.happened && found.otherwise === "repeat") {
    // Lost again, it is asked about again, and the requesters still may not answer.
    const chain = operation.undoOf === "" ? question.chain : operation.chain;
    const order = { ...(await repeatable(context, question)), chain, actor: by };
    const executed = await repeatOrder(context, order, operation, [closing]);
    if (executed.status === "overtaken") throw await overtaken(context, question);
    const done = answerOf(executed);
    if (done.answer === "unknown") return done;
    return pastFirstWrite(id, SETTLED, async () => {
      await continueDecision(context, operation.decisionId);
      return done;
    });
  }
  const { fence, undoOf } = operation;
  const outcome = outcomeOf(found, by, await foundUndo(context, operation, found));
  const settled = await store.operations.settle(operationId, {
    fence,
    outcome,
    actor: by,
    along: [closing],
    // An undo that happened has undone its operation, whoever reports it.
    ...(found.happened && undoOf !== "" ? { tookBack: undoOf } : {}),
  });
  if (!settled.settled) throw await overtaken(context, question);
  return pastFirstWrite(id, SETTLED, async () => {
    await continueDecision(context, operation.decisionId);
    return recorded(await store.operations.get(operationId));
  });
}

const SETTLED =
  "What you found out is stored. The next recovery goes on with the decision behind it.";

/** Undefined when the person gave nothing to make one from. */
async function foundUndo(
  context: GateContext,
  operation: Operation,
  found: FoundOut,
): Promise<FoundUndo | undefined> {
  if (!found.happened || found.resultData === undefined) return undefined;
  const made = operation.undoOf === "" ? await make(found.resultData) : "Nothing undoes an undo.";
  if (typeof made !== "string") return made;
  const hint = `No undo can be made from it: ${made} Leave it out to say only that it happened.`;
  throw new SallyportError("invalid_input", { what: "resultData", id: operation.id, hint });

  async function make(data: JsonValue): Promise<FoundUndo | string> {
    try {
      return await undoFrom(context, await orderOf(context, operation), operation, data);
    } catch (error) {
      if (isSallyportError(error)) throw error;
      return `${errorText(error)}.`;
    }
  }
}

/** Older versions let these questions expire; those can still be answered. */
function isAsked({ status, outcome }: Interaction): boolean {
  return status === "open" || outcome === "expired";
}

function stillAsked({ outcome }: Interaction): Conditions {
  return outcome === "expired" ? { status: "canceled", outcome } : { status: "open" };
}

/** Where its tool is missing, or the gate refuses it by now, it cannot be called again; the finding can still be reported. */
async function repeatable(context: GateContext, { id, operationId }: Interaction) {
  try {
    return await orderOf(context, await context.store.operations.get(operationId));
  } catch (error) {
    if (isSallyportError(error)) throw error;
    const hint = `It cannot be repeated here: ${errorText(error)}. Say whether it happened.`;
    throw new SallyportError("illegal_transition", { id, hint }, error);
  }
}

/** A person reports what the tool could not. */
function outcomeOf(found: FoundOut, by: string, made: FoundUndo | undefined): Outcome {
  if (!found.happened) {
    const error = `It did not happen: ${by} looked.`;
    return { status: "failed", error, output: error };
  }
  return {
    status: "success",
    output: found.output ?? `It happened: ${by} looked.`,
    truncated: false,
    storedPath: "",
    undo: made?.undo,
    stateVersion: made?.stateVersion ?? "",
  };
}

async function continueDecision(context: GateContext, decisionId: string): Promise<void> {
  if (decisionId === "") return;
  const decision = await context.store.decisions.get(decisionId);
  if (decision.state === "approved") await carryOn(context, decision);
}

/** The question as it is now says who was first, or that another hash was seen. */
async function overtaken({ store }: GateContext, { id }: Interaction): Promise<unknown> {
  const now = await store.interactions.get(id);
  if (now.status !== "open") return whyClosed(now);
  const hint = "Look at it again: what you saw is not what is stored, or everything is stopped.";
  return new SallyportError("approval_void", { id, hint });
}
