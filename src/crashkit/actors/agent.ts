import type { CallAnswer } from "../../model/call.ts";
import type { JsonValue } from "../../util/json.ts";
import { followLines } from "../json-lines.ts";
import { toldOf } from "../told.ts";
import { KINDS } from "../world/world.ts";
import { FREE } from "../world/world-tools.ts";
import type { ActorLine, Asked } from "./actor.ts";
import { orTold } from "./or-told.ts";
import type { Stage } from "./stage.ts";

const PAUSE_MS = 15;
/** How many of its own questions an agent looks after. */
const MOST_OPEN = 8;
/** So many calls that were cut off are asked for again after a start. */
const MOST_AGAIN = 4;

/** Several agents in one process: so there is always something under way when it is killed. */
const LANES = ["a", "b", "c"] as const;

/** They ask for things and come back for what has to wait. After a crash they ask again, with the same keys. */
export async function playAgent(stage: Stage): Promise<never> {
  const again = cutOff(stage);
  await Promise.all(again.map(({ tenant, asked }) => askFor(stage, tenant, asked)));
  return Promise.race(LANES.map((lane) => askOn(stage, lane)));
}

async function askOn(stage: Stage, lane: string): Promise<never> {
  const { plan, dice, timers } = stage;
  let waiting: { readonly tenant: string; readonly asked: Asked }[] = [];
  for (let turn = 1; ; turn += 1) {
    const tenant = stage.tenants().at(-1);
    if (tenant === undefined) {
      await timers.sleep(PAUSE_MS);
      continue;
    }
    const asked = plannedBy(stage, `${plan.seed}-${lane}${turn}`);
    stage.write({ tenant, asks: asked });
    if ((await askFor(stage, tenant, asked)) === "pending") waiting.push({ tenant, asked });
    waiting = waiting.filter((one) => stage.tenants().includes(one.tenant)).slice(-MOST_OPEN);
    const [oldest] = waiting;
    if (oldest !== undefined && (await isOver(stage, oldest.tenant, oldest.asked))) waiting.shift();
    await timers.sleep(dice.below(2 * PAUSE_MS));
  }
}

/** Its own history says what it had asked for when it was killed. */
function cutOff(stage: Stage): readonly { readonly tenant: string; readonly asked: Asked }[] {
  const lines = followLines<ActorLine>(stage.plan.history).read();
  const answered = new Set(lines.flatMap((line) => ("answered" in line ? [line.answered] : [])));
  return lines
    .flatMap((line) => ("asks" in line ? [{ tenant: line.tenant, asked: line.asks }] : []))
    .filter(({ tenant, asked }) => !answered.has(asked.key) && stage.tenants().includes(tenant))
    .slice(-MOST_AGAIN);
}

function plannedBy({ dice, kit }: Stage, key: string): Asked {
  const session = `s-${key}`;
  if (kit.calls !== undefined) return { session, key, calls: kit.calls(dice) };
  const kind = dice.pick(KINDS);
  const steps = dice.percent(25) ? 3 : 1;
  const isFree = steps === 1 && dice.percent(50);
  const failsLast = dice.percent(25);
  const calls = Array.from({ length: steps }, (_, step) => ({
    tool: isFree ? `${FREE}${kind}` : `world.${kind}`,
    input: { run: session, step, undo: false, refuse: failsLast && step === steps - 1 },
  }));
  return { session, key, calls };
}

/** Where the store was away it asks again with the same keys: so it does not matter whether the first try got through. */
async function askFor(stage: Stage, tenant: string, asked: Asked): Promise<CallAnswer["answer"]> {
  for (;;) {
    const answer = await orTold(stage, tenant, () => askOnce(stage, tenant, asked));
    if (answer !== undefined) return answer;
    await stage.timers.sleep(PAUSE_MS);
  }
}

async function askOnce(stage: Stage, tenant: string, asked: Asked): Promise<CallAnswer["answer"]> {
  const port = await stage.port(tenant);
  const { name } = stage.plan;
  const session = port.sessions.open({ id: asked.session, agent: `agent:${name}` });
  const requests = asked.calls.map(({ tool, input }, step) => ({
    callId: `${asked.key}-${step}`,
    key: `${asked.key}-${step}`,
    tool,
    input: input as JsonValue,
  }));
  const [first] = requests;
  const isSingle = first !== undefined && requests.length === 1;
  const answer = isSingle ? await session.call(first) : await session.stage(requests);
  stage.tell(tenant, toldOf(answer));
  stage.write({ tenant, answered: asked.key });
  return answer.answer;
}

async function isOver(stage: Stage, tenant: string, asked: Asked): Promise<boolean> {
  const port = await stage.port(tenant);
  const session = port.sessions.open({ id: asked.session, agent: `agent:${stage.plan.name}` });
  const answer = await orTold(stage, tenant, () => session.resultOf(`${asked.key}-0`));
  if (answer !== undefined) stage.tell(tenant, toldOf(answer));
  return answer?.answer !== "pending";
}
