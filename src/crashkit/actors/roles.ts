import { createServer, type Server, type ServerOptions } from "../../http/index.ts";
import type { CallAnswer } from "../../model/call.ts";
import { isSallyportError } from "../../model/errors.ts";
import { errorText } from "../../util/error-text.ts";
import type { JsonValue } from "../../util/json.ts";
import { followLines } from "../child.ts";
import { LEASE_MS } from "../open-kit.ts";
import { FREE, KINDS } from "../world/world.ts";
import {
  type ActorLine,
  type Asked,
  callIdOf,
  orTold,
  type Stage,
  toldOf,
  WAYS,
  type Way,
} from "./actor.ts";
import type { AgentsSession, Asking, PersonsInbox } from "./door.ts";

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

/** A look over HTTP costs two processes more than the look itself. */
const REVIEWER_PAUSE_MS: Readonly<Record<Way, number>> = { library: 20, http: 60 };
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
    await timers.sleep(dice.below(2 * REVIEWER_PAUSE_MS[over]));
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

const WORKER_PAUSE_MS = LEASE_MS / 4;
const STOP_MS = 80;
const STOP_PERCENT = 25;

/** Goes on with what others have left, and now and then throws the kill switch for a moment. */
export async function playWorker(stage: Stage): Promise<never> {
  const { dice, timers, plan } = stage;
  const by = { actor: `person:${plan.name}` };
  for (;;) {
    for (const tenant of stage.tenants()) {
      const { recover, interactions, killSwitch } = await stage.gate(tenant);
      await orTold(stage, tenant, async () => {
        // The one who had stopped it may have been killed before it went on.
        if (await killSwitch.isStopped()) await killSwitch.resume("all is well", by);
        await recover();
        await interactions.sweep();
      });
    }
    const current = stage.tenants().at(-1);
    if (current !== undefined && dice.percent(STOP_PERCENT)) {
      const { killSwitch } = await stage.gate(current);
      await orTold(stage, current, async () => {
        await killSwitch.stop("a drill", by);
        await timers.sleep(STOP_MS);
        await killSwitch.resume("the drill is over", by);
      });
    }
    await timers.sleep(dice.below(2 * WORKER_PAUSE_MS));
  }
}

const SERVER_PAUSE_MS = 20;

/** Serves the store over HTTP, and goes on with what was left behind when it starts, as `sallyport serve` does. */
export async function playServer(stage: Stage): Promise<never> {
  const { kit, plan } = stage;
  const { port: listenPort, tenants } = plan.server;
  const made = tenants.map(async (tenant) => [tenant, await stage.gate(tenant)] as const);
  const gates = Object.fromEntries(await Promise.all(made));
  await listening(stage, {
    store: kit.store,
    gates,
    listenPort,
    limits: { keyLeaseMs: LEASE_MS },
    // Reviewers of a long run sign in once, before it.
    signIn: { freshMs: 24 * 3_600_000 },
    onProblem,
  });
  for (const tenant of stage.tenants())
    await orTold(stage, tenant, async () => gates[tenant]?.recover());
  return new Promise(() => {});
}

/** The port may be in somebody else's hands for a moment: any program gets one that is free when it calls out. */
async function listening({ timers }: Stage, options: ServerOptions): Promise<Server> {
  for (;;) {
    try {
      return await createServer(options);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
      await timers.sleep(SERVER_PAUSE_MS);
    }
  }
}

/** What breaks inside a server is a reason to end, and so to be told. */
function onProblem(error: unknown): void {
  if (isSallyportError(error)) return;
  process.stderr.write(`${error instanceof Error ? error.stack : errorText(error)}\n`);
  process.exit(1);
}
