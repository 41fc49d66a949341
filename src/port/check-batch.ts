import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { InteractionId } from "../model/interaction.ts";
import type { JsonValue } from "../util/json.ts";
import { decodeAction } from "./action.ts";
import { classesOf } from "./preview.ts";
import { reviewOf } from "./propose.ts";
import type { Rooms } from "./rooms.ts";

/** One yes for many is a yes that nobody reads closely: only for calls of one tool that can be taken back (T2). */
export async function checkBatch(
  list: readonly { readonly id: InteractionId }[],
  veto: readonly InteractionId[],
  by: string,
  rooms: Rooms,
): Promise<void> {
  const tools = new Set<string>();
  const final: InteractionId[] = [];
  let mayBatch = true;
  for (const { id } of list.filter((item) => !veto.includes(item.id))) {
    const facts = await factsOf(id, rooms);
    // What is gone or of another kind is refused by itself, with its own reason.
    if (facts === undefined) continue;
    for (const tool of facts.tools) tools.add(tool);
    if (facts.isFinal) final.push(id);
    mayBatch &&= facts.mayBatch;
  }
  if (mayBatch || (tools.size <= 1 && final.length === 0)) return;
  const hint =
    final.length > 0
      ? `What cannot be undone is approved one by one: ${final.slice(0, 5).join(", ")}. Nothing was decided.`
      : `Only calls of one tool are approved together, and these are of ${tools.size}. Nothing was decided.`;
  throw new SallyportError("not_allowed", { by, hint });
}

const NOT_SHOWN = { unavailable: "it was not shown" };

async function factsOf(id: InteractionId, rooms: Rooms) {
  const question = await rooms.store.interactions.peek(id);
  if (question === undefined || question.type !== "confirm") return undefined;
  const decision = await rooms.store.decisions.get(question.decisionId);
  try {
    const calls = decodeAction(decision);
    const shown = (await rooms.store.approvals.shown(decision.id))?.preview.dryRun;
    const dryRuns = Array.isArray(shown)
      ? (shown as readonly JsonValue[])
      : calls.map(() => NOT_SHOWN);
    const review = reviewOf(decision, rooms, dryRuns);
    return {
      tools: calls.map(({ tool }) => tool),
      isFinal: classesOf(calls, rooms.deciding.registry, dryRuns).includes("irreversible"),
      mayBatch: review.possible && review.review.mayBatch === true,
    };
  } catch (error) {
    if (!isSallyportError(error, "damaged_record")) throw error;
    // Staged from outside: nobody here knows what it does.
    return { tools: [decision.diff.sourceTool], isFinal: true, mayBatch: false };
  }
}
