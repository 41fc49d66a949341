import type { CallAnswer } from "../model/call.ts";
import type { Decision, DecisionId } from "../model/decision.ts";
import { isSallyportError } from "../model/errors.ts";
import type { Along } from "../store/along.ts";
import { failedMove } from "../store/decision-moves.ts";
import { NOW } from "../store/engine.ts";
import { notBegun } from "../store/give-up.ts";
import { INTERACTIONS } from "../store/interaction-rows.ts";
import { definitionHash } from "../tools/definition-hash.ts";
import {
  chainOf,
  claimOf,
  decodeAction,
  editorsOf,
  messageIdOf,
  ownerOf,
  type PlannedCall,
  plannedPlaces,
} from "./action.ts";
import { judgeCall } from "./judge-call.ts";
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
  const judged = await judgedAnew(decision, calls, rooms);
  if ("text" in judged) return giveUp(id, `${reason} ${judged.text}`, rooms);
  const proposed = await propose(
    {
      calls: judged.calls,
      keys: [],
      sessionId,
      chain: chainOf(decision),
      owner: ownerOf(decision),
      messageId: messageIdOf(decision),
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
    return giveUp(id, text, rooms);
  }
  const { interaction } = proposed;
  const text = `${reason} It went back to review as decision ${interaction.id}. Go on with something else, or ask later.`;
  return { answer: "pending", text, decisionId: interaction.id, interactionId: interaction.id };
}

/** With the tools and the places of now: those are what the next reviewer is asked about. The gate's no stays a no. */
async function judgedAnew(
  decision: Decision,
  planned: readonly PlannedCall[],
  { judging, store, deciding }: Rooms,
): Promise<{ readonly calls: readonly PlannedCall[] } | { readonly text: string }> {
  const { sessionId } = decision;
  const calls: PlannedCall[] = [];
  for (const { places = [], ...call } of planned) {
    const tool = deciding.registry.get(call.tool);
    const definition = tool === undefined ? call.definition : definitionHash(tool);
    if (places.length === 0) {
      calls.push({ ...call, definition });
      continue;
    }
    const { workingDirectory } = call;
    const caller = { tenant: store.tenant, sessionId, chain: chainOf(decision), workingDirectory };
    const judged = await judgeCall(call, caller, judging, "approved");
    if (judged.verdict === "deny") return { text: judged.text };
    const now = judged.verdict === "failed" ? places : judged.places;
    calls.push({ ...call, definition, ...plannedPlaces(now) });
  }
  return { calls };
}

async function giveUp(
  id: DecisionId,
  text: string,
  { store }: Rooms,
): Promise<CallAnswer | undefined> {
  const giving = { reason: text, actor: "executor", unlessBegun: `${id}.0` };
  const isOurs = await store.approvals.giveUp(id, giving);
  return isOurs ? { answer: "failed", text } : undefined;
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
