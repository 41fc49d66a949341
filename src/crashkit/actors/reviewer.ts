import { toldOf } from "../told.ts";
import { WAYS, type Way } from "./actor.ts";
import type { Asking, PersonsInbox } from "./door.ts";
import { orTold } from "./or-told.ts";
import type { Stage } from "./stage.ts";

/** A look over HTTP costs two processes more than the look itself. */
const PAUSE_MS: Readonly<Record<Way, number>> = { library: 20, http: 60 };
const PAGE = 20;

/** The questions of a tenant, as they are seen on one way. */
interface Desk {
  readonly tenant: string;
  readonly over: Way;
  readonly inbox: PersonsInbox;
}

/** One person on each way: they say yes or no, look what became of lost calls, and now and then take a session back. */
export async function playReviewer(stage: Stage): Promise<never> {
  return Promise.race(WAYS.map((over) => reviewOn(stage, over)));
}

async function reviewOn(stage: Stage, over: Way): Promise<never> {
  const { dice, timers } = stage;
  for (;;) {
    // Old tenants too: what waits there for a person has nobody else.
    for (const tenant of stage.tenants()) {
      const desk: Desk = { tenant, over, inbox: stage.doors[over].inbox(tenant) };
      const open = await orTold(stage, tenant, () => desk.inbox.list(PAGE));
      for (const asking of open ?? []) {
        await orTold(stage, tenant, () => decide(stage, desk, asking), EXPECTED);
      }
    }
    await timers.sleep(dice.below(2 * PAUSE_MS[over]));
  }
}

async function decide(stage: Stage, desk: Desk, asking: Asking): Promise<void> {
  const { dice } = stage;
  const { tenant, over, inbox } = desk;
  const { id } = asking;
  if (asking.type === "connection_lost") return settle(stage, desk, asking);
  const chance = dice.below(100);
  if (chance < 10) {
    await inbox.reject(asking, "not this one");
    return stage.tell(tenant, over, [{ decisionId: id, answer: "rejected" }]);
  }
  if (chance < 14) {
    await inbox.cancel(asking, "asked by mistake");
    return stage.tell(tenant, over, [{ decisionId: id, answer: "rejected" }]);
  }
  if (chance < 20) return;
  const answers = await inbox.approve(asking);
  stage.tell(tenant, over, [{ decisionId: id, answer: "approved" }, ...answers.flatMap(toldOf)]);
  if (!dice.percent(15)) return;
  const undone = await inbox.rollback(asking.sessionId);
  stage.tell(
    tenant,
    over,
    undone.map((operationId) => ({ operationId, answer: "done" })),
  );
}

/** Looks at production, as a person would. Where it did not happen, it is tried again or given up. */
async function settle(stage: Stage, desk: Desk, asking: Asking): Promise<void> {
  const { tenant, over, inbox } = desk;
  const effects = await stage.kit.effects();
  const happened = effects.some(
    ({ key, applied }) => applied && key === `${tenant}/${asking.operationId}`,
  );
  const otherwise = stage.dice.percent(50) ? "repeat" : "give_up";
  const found = happened ? ({ happened } as const) : ({ happened, otherwise } as const);
  stage.tell(tenant, over, toldOf(await inbox.settle(asking, found)));
}

/** Somebody was faster, everything is stopped, or it is their own to ask for: a person is told so and goes on. */
const EXPECTED = [
  "not_allowed",
  "already_answered",
  "approval_void",
  "concurrent_modification",
  "illegal_transition",
];
