import type { CallAnswer } from "../model/call.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction } from "../model/interaction.ts";
import type { Conditions } from "../store/engine.ts";
import { whyClosed } from "../store/interaction-checks.ts";
import { closingStep } from "../store/interaction-steps.ts";
import type { Outcome } from "../store/operations.ts";
import { errorText } from "../util/error-text.ts";
import { answerOf, recorded } from "./answer-of.ts";
import type { FoundOut, PersonsAnswer } from "./inbox.ts";
import { carryOn, orderOf } from "./recover.ts";
import type { Rooms } from "./rooms.ts";

/**
 * A person found out what became of a call. The answer and the outcome are one transaction, so that nothing is repeated on
 * an answer that was not recorded; the decision behind it goes on from there.
 */
export async function settleLost(
  question: Interaction,
  found: PersonsAnswer & FoundOut,
  rooms: Rooms,
): Promise<CallAnswer> {
  const { store } = rooms;
  const { id, operationId } = question;
  const { by, hash, reason = "" } = found;
  const operation = await store.operations.get(operationId);
  const answer = found.happened ? "happened" : found.otherwise;
  const closing = closingStep(
    id,
    { outcome: "answered", by, reason, answer },
    // Handed to somebody else since we looked: then it is theirs. However late it is, what was found out counts.
    { hash, assigned_to: question.assignedTo, ...stillAsked(question) },
  );
  if (isAsked(question) && !found.happened && found.otherwise === "repeat") {
    // Lost again, it is asked about anew, and those who asked for the call are still not the ones to answer.
    const order = { ...(await repeatable(question, rooms)), chain: question.chain, actor: by };
    const executed = await rooms.executor.repeat(order, operation, [closing]);
    if (executed.status === "overtaken") throw await overtaken(question, rooms);
    const done = answerOf(executed);
    if (done.answer !== "unknown") await goOn(operation.decisionId, rooms);
    return done;
  }
  const { fence, undoOf } = operation;
  const outcome = outcomeOf(found, by);
  const settled = await store.operations.settle(operationId, {
    fence,
    outcome,
    actor: by,
    along: [closing],
    // A compensation that happened has taken back what it was for, whoever says so.
    ...(found.happened && undoOf !== "" ? { tookBack: undoOf } : {}),
  });
  if (!settled.settled) throw await overtaken(question, rooms);
  await goOn(operation.decisionId, rooms);
  return recorded(await store.operations.get(operationId));
}

/** Questions from before lost calls stayed open may have expired; nobody has found out since. */
function isAsked({ status, outcome }: Interaction): boolean {
  return status === "open" || outcome === "expired";
}

function stillAsked({ outcome }: Interaction): Conditions {
  return outcome === "expired" ? { status: "canceled", outcome } : { status: "open" };
}

/** Where its tool is gone, or the gate refuses it by now, it cannot be called again; what was found out can still be said. */
async function repeatable({ id, operationId }: Interaction, { store, deciding }: Rooms) {
  try {
    return await orderOf(await store.operations.get(operationId), deciding);
  } catch (error) {
    if (isSallyportError(error)) throw error;
    const hint = `It cannot be repeated here: ${errorText(error)}. Say whether it happened.`;
    throw new SallyportError("illegal_transition", { id, hint }, error);
  }
}

/** What a person says replaces what the tool could not: there is no recipe to take it back. */
function outcomeOf(found: FoundOut, by: string): Outcome {
  if (!found.happened) {
    const error = `It did not happen: ${by} looked.`;
    return { status: "failed", error, output: error };
  }
  return {
    status: "success",
    output: found.output ?? `It happened: ${by} looked.`,
    truncated: false,
    storedPath: "",
    undo: undefined,
    stateVersion: "",
  };
}

async function goOn(decisionId: string, { store, deciding }: Rooms): Promise<void> {
  if (decisionId === "") return;
  const decision = await store.decisions.get(decisionId);
  if (decision.state === "approved") await carryOn(decision, deciding);
}

/** The question as it is now says who was first, or that another hash was seen. */
async function overtaken({ id }: Interaction, { store }: Rooms): Promise<unknown> {
  const now = await store.interactions.get(id);
  if (now.status !== "open") return whyClosed(now);
  const hint = "Look at it again: what you saw is not what is stored, or everything is stopped.";
  return new SallyportError("approval_void", { id, hint });
}
