import { isAboutPlan } from "../plan-question.ts";
import type { FlowEvent, Run } from "../run.ts";

/** Tells the client what the run waits for, and ends it on this connection. The state was saved by the node before. */
export async function interrupt(run: Run): Promise<void> {
  const { pending, common } = run.state;
  if (pending === undefined) return;
  const interaction = { ...pending };
  const type = isAboutPlan(pending) ? "confirmation" : PATHS[pending.type];
  await run.parts.say({ type, conversationId: common.conversation_id, interaction });
  run.outcome = { outcome: "waiting", interaction };
}

const PATHS = {
  ask_user: "question",
  confirm: "confirmation",
  connection_lost: "connection_lost",
} as const satisfies Record<string, FlowEvent["type"]>;
