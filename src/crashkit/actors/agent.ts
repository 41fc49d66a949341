import type { CallAnswer } from "../../model/call.ts";
import type { JsonValue } from "../../util/json.ts";
import { followLines } from "../json-lines.ts";
import { toldOf } from "../told.ts";
import { KINDS } from "../world/world.ts";
import { FREE } from "../world/world-tools.ts";
import { type ActorLine, type Asked, callIdOf, type Way } from "./actor.ts";
import type { AgentsSession } from "./door.ts";
import { orTold } from "./or-told.ts";
import type { Stage } from "./stage.ts";

const PAUSE_MS = 15;
/** How many of its own questions an agent looks after. */
const MOST_OPEN = 8;
/** So many calls that were cut off are asked for again after a start. */
const MOST_AGAIN = 8;

/** Several agents in one process, each on a way of its own: so there is always something under way when it is killed. */
const LANES: Readonly<Record<string, Way>> = {
  a: "library",
  b: "library",
  c: "library",
  d: "http",
  e: "http",
};

/** Something an agent has asked for, and where it can ask what became of it. */
interface Open {
  readonly tenant: string;
  readonly asked: Asked;
  readonly session: AgentsSession;
}

/** They ask for things and come back for what has to wait. After a crash they ask again, with the same keys. */
export async function playAgent(stage: Stage): Promise<never> {
  const again = cutOff(stage).map((open) => askFor(stage, open));
  const lanes = Object.entries(LANES).map(([lane, over]) => askOn(stage, lane, over));
  // Beside what is new: one way may be cut off while the other is open.
  await Promise.race([Promise.all(again), ...lanes]);
  return Promise.race(lanes);
}

async function askOn(stage: Stage, lane: string, over: Way): Promise<never> {
  const { plan, dice, timers } = stage;
  let waiting: Open[] = [];
  for (let turn = 1; ; turn += 1) {
    const tenant = stage.tenants().at(-1);
    if (tenant === undefined) {
      await timers.sleep(PAUSE_MS);
      continue;
    }
    const open = opened(stage, tenant, plannedBy(stage, `${plan.seed}-${lane}${turn}`, over));
    stage.write({ tenant, asks: open.asked });
    if ((await askFor(stage, open)) === "pending") waiting.push(open);
    waiting = waiting.filter((one) => stage.tenants().includes(one.tenant)).slice(-MOST_OPEN);
    const [oldest] = waiting;
    if (oldest !== undefined && (await isOver(stage, oldest))) waiting.shift();
    await timers.sleep(dice.below(2 * PAUSE_MS));
  }
}

function opened(stage: Stage, tenant: string, asked: Asked): Open {
  return { tenant, asked, session: stage.doors[asked.over].session(tenant, asked.session) };
}

/** Its own history says what it had asked for when it was killed. */
function cutOff(stage: Stage): readonly Open[] {
  const lines = followLines<ActorLine>(stage.plan.history).read();
  const answered = new Set(lines.flatMap((line) => ("answered" in line ? [line.answered] : [])));
  return lines
    .flatMap((line) => ("asks" in line ? [{ tenant: line.tenant, asked: line.asks }] : []))
    .filter(({ tenant, asked }) => !answered.has(asked.key) && stage.tenants().includes(tenant))
    .slice(-MOST_AGAIN)
    .map(({ tenant, asked }) => opened(stage, tenant, asked));
}

function plannedBy({ dice, kit }: Stage, key: string, over: Way): Asked {
  const session = `s-${key}`;
  if (kit.calls !== undefined) return { over, session, key, calls: kit.calls(dice) };
  const kind = dice.pick(KINDS);
  const steps = dice.percent(25) ? 3 : 1;
  const isFree = steps === 1 && dice.percent(50);
  const failsLast = dice.percent(25);
  const calls = Array.from({ length: steps }, (_, step) => ({
    tool: isFree ? `${FREE}${kind}` : `world.${kind}`,
    input: { run: session, step, undo: false, refuse: failsLast && step === steps - 1 },
  }));
  return { over, session, key, calls };
}

/** Where the store or the server was away it asks again with the same keys: so it does not matter whether the first try got through. */
async function askFor(stage: Stage, open: Open): Promise<CallAnswer["answer"]> {
  for (;;) {
    const answer = await orTold(stage, open.tenant, () => askOnce(stage, open));
    if (answer !== undefined) return answer;
    await stage.timers.sleep(PAUSE_MS);
  }
}

async function askOnce(
  stage: Stage,
  { tenant, asked, session }: Open,
): Promise<CallAnswer["answer"]> {
  const requests = asked.calls.map(({ tool, input }, step) => {
    const callId = callIdOf(asked, step);
    return { callId, key: callId, tool, input: input as JsonValue };
  });
  const [first] = requests;
  const isSingle = first !== undefined && requests.length === 1;
  const answer = isSingle ? await session.call(first) : await session.stage(requests);
  stage.tell(tenant, asked.over, toldOf(answer));
  stage.write({ tenant, answered: asked.key, over: asked.over });
  return answer.answer;
}

async function isOver(stage: Stage, { tenant, asked, session }: Open): Promise<boolean> {
  const answer = await orTold(stage, tenant, () => session.resultOf(callIdOf(asked, 0)));
  if (answer !== undefined) stage.tell(tenant, asked.over, toldOf(answer));
  return answer?.answer !== "pending";
}
