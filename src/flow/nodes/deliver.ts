import { cutText } from "../../util/error-text.ts";
import { deliverPrompt } from "../prompts.ts";
import type { Run } from "../run.ts";
import { mechanicalSummary } from "../summary.ts";

const LONGEST_PIECE = 48;

/** Closes the run with a summary, sent in small pieces, and forgets what was stored of it. */
export async function deliver(run: Run): Promise<void> {
  const { state, work, parts } = run;
  const { common } = state;
  const { conversation_id: conversationId } = common;
  const facts = mechanicalSummary(common, work);
  const written = await write(run, facts);
  if (written === undefined) await sendPieces(run, facts);
  const summary = written ?? facts;
  const isMechanical = written === undefined;
  await parts.say({ type: "delivered", conversationId, summary, isMechanical });
  common.phase = "done";
  run.outcome = { outcome: "delivered", summary };
  if (run.revision === 0) return;
  try {
    await parts.states?.delete(conversationId, common.trace_id);
  } catch (error) {
    parts.problem({ conversationId, what: "delete", error });
  }
}

/** The model's words, or undefined when there is no model, it failed, or it had nothing to say. */
async function write(run: Run, facts: string): Promise<string | undefined> {
  const { state, work, parts, request } = run;
  const { conversation_id: conversationId } = state.common;
  if (parts.model === undefined) return undefined;
  const sent = { any: false, failed: undefined as unknown };
  const piece = async (text: string) => {
    sent.any = true;
    try {
      await sendPieces(run, text);
    } catch (error) {
      sent.failed = error;
      throw error;
    }
  };
  try {
    const text = await parts.model.stream(deliverPrompt(work, facts), piece, request.signal);
    if (text.trim() !== "") return text;
  } catch (error) {
    // A client that is gone gets no other summary either; it comes back for this one.
    if (sent.failed !== undefined || request.signal?.aborted) throw error;
    parts.problem({ conversationId, what: "summary", error });
  }
  if (sent.any) await parts.say({ type: "restart", conversationId });
  return undefined;
}

async function sendPieces({ parts, state }: Run, text: string): Promise<void> {
  const { conversation_id: conversationId } = state.common;
  for (let at = 0; at < text.length; ) {
    const piece = cutText(text.slice(at), LONGEST_PIECE);
    await parts.say({ type: "piece", conversationId, text: piece });
    at += piece.length;
  }
}
