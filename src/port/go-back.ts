import type { CallAnswer } from "../model/call.ts";
import type { Decision } from "../model/decision.ts";
import { isSallyportError } from "../model/errors.ts";
import type { Along } from "../store/along.ts";
import { failedMove } from "../store/decision-moves.ts";
import { NOW } from "../store/engine.ts";
import { notBegun } from "../store/give-up.ts";
import { INTERACTIONS } from "../store/interaction-rows.ts";
import { definitionHash } from "../tools/definition-hash.ts";
import { chainOf, claimOf, decodeAction, editorsOf } from "./action.ts";
import { propose } from "./propose.ts";
import type { Rooms } from "./rooms.ts";

/**
 * What was approved is no longer what would run: the world moved, or the tool was changed by a deploy. Nothing runs and
 * nothing is lost; the same calls are asked about anew, with the difference, and the old decision points to the new one.
 * Undefined when somebody has begun it, or closed it, in the meantime: then nobody is asked again.
 */
export async function goBack(
  decision: Decision,
  difference: string,
  rooms: Rooms,
): Promise<CallAnswer | undefined> {
  const { id, sessionId } = decision;
  const claim = claimOf(decision);
  const reason = `Not executed: ${difference}`;
  const calls = decodeAction(decision);
  const gone = calls.find(({ tool }) => rooms.deciding.registry.get(tool) === undefined);
  if (gone !== undefined) {
    // Nothing to ask about here. Where the tool is, the decision can still be carried out.
    return { answer: "failed", text: `${reason} A process that has "${gone.tool}" can go on.` };
  }
  const proposed = await propose(
    {
      calls: calls.map((call) => {
        const tool = rooms.deciding.registry.get(call.tool);
        return tool === undefined ? call : { ...call, definition: definitionHash(tool) };
      }),
      keys: [],
      sessionId,
      chain: chainOf(decision),
      owner: String(decision.metadata["owner"] ?? ""),
      messageId: String(decision.metadata["messageId"] ?? ""),
      ...(claim === undefined ? {} : { claim }),
      editors: editorsOf(decision),
      facts: { cameBackFrom: id, difference },
      along: (successor) => [
        failedMove(id, `${reason} It went back to review as decision ${successor}.`, "executor"),
        pointer(id, successor),
        { step: notBegun(`${id}.0`) },
      ],
    },
    rooms,
  ).catch(begunMeanwhile);
  if (proposed === undefined) return undefined;
  if (!proposed.proposed) {
    const text = `${reason} Looked at anew, the review said no: ${proposed.reason}`;
    const giving = { reason: text, actor: "executor", unlessBegun: `${id}.0` };
    const isOurs = await rooms.store.approvals.giveUp(id, giving);
    return isOurs ? { answer: "failed", text } : undefined;
  }
  const { interaction } = proposed;
  const text = `${reason} It went back to review as decision ${interaction.id}. Go on with something else, or ask later.`;
  return { answer: "pending", text, decisionId: interaction.id, interactionId: interaction.id };
}

function begunMeanwhile(error: unknown): undefined {
  if (!isSallyportError(error, "concurrent_modification")) throw error;
}

/** So that whoever asks for the old one is led to the new one. */
function pointer(id: string, successor: string): Along {
  return {
    step: {
      op: "update",
      table: INTERACTIONS,
      id,
      where: { superseded_by: "" },
      set: { superseded_by: successor, version: { plus: 1 }, updated_at: NOW },
    },
  };
}
