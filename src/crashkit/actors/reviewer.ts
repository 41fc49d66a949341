import type { Interaction } from "../../model/interaction.ts";
import type { Port } from "../../port/create-sallyport.ts";
import { toldOf } from "../told.ts";
import { orTold } from "./or-told.ts";
import type { Stage } from "./stage.ts";

const PAUSE_MS = 20;
const PAGE = 20;

/** Says yes or no to what is asked, looks what became of lost calls, and now and then takes a session back. */
export async function playReviewer(stage: Stage): Promise<never> {
  const { dice, timers } = stage;
  for (;;) {
    // Old tenants too: what waits there for a person has nobody else.
    for (const tenant of stage.tenants()) {
      const port = await stage.port(tenant);
      const open = await orTold(stage, tenant, () => port.interactions.list({ limit: PAGE }));
      for (const question of open ?? []) {
        await orTold(stage, tenant, () => decide(stage, tenant, port, question), EXPECTED);
      }
    }
    await timers.sleep(dice.below(2 * PAUSE_MS));
  }
}

async function decide(
  stage: Stage,
  tenant: string,
  port: Port,
  question: Interaction,
): Promise<void> {
  const { dice, plan } = stage;
  const by = `person:${plan.name}`;
  const { id, hash, sessionId } = question;
  if (question.type === "connection_lost") return settle(stage, tenant, port, question);
  const chance = dice.below(100);
  if (chance < 10) {
    await port.interactions.reject(id, { hash, by, reason: "not this one" });
    return stage.tell(tenant, [{ decisionId: id, answer: "rejected" }]);
  }
  if (chance < 14) {
    await port.interactions.cancel(id, { by, reason: "asked by mistake" });
    return stage.tell(tenant, [{ decisionId: id, answer: "rejected" }]);
  }
  if (chance < 20) return;
  const { answers } = await port.interactions.approve(id, { hash, by });
  stage.tell(tenant, [{ decisionId: id, answer: "approved" }, ...answers.flatMap(toldOf)]);
  if (!dice.percent(15)) return;
  const session = port.sessions.open({ id: sessionId, agent: "agent:of-the-session" });
  const { undone } = await session.rollback(by);
  const done = undone.map(({ undoOperationId: operationId }) => operationId);
  stage.tell(
    tenant,
    done.map((operationId) => ({ operationId, answer: "done" })),
  );
}

/** Looks at production, as a person would. Where it did not happen, it is tried again or given up. */
async function settle(
  stage: Stage,
  tenant: string,
  port: Port,
  { id, hash, operationId }: Interaction,
): Promise<void> {
  const by = `person:${stage.plan.name}`;
  const effects = await stage.kit.effects();
  const happened = effects.some(
    ({ key, applied }) => applied && key === `${tenant}/${operationId}`,
  );
  const otherwise = stage.dice.percent(50) ? "repeat" : "give_up";
  const found = happened ? ({ happened } as const) : ({ happened, otherwise } as const);
  const answer = await port.interactions.settle(id, { hash, by, ...found });
  stage.tell(tenant, toldOf(answer));
}

/** Somebody was faster, everything is stopped, or it is their own to ask for: a person is told so and goes on. */
const EXPECTED = [
  "not_allowed",
  "already_answered",
  "approval_void",
  "concurrent_modification",
  "illegal_transition",
];
