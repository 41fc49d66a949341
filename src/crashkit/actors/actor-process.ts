/**
 * One actor of a random run: an agent, a reviewer, a worker or the server. It runs until it is killed or its standard input is
 * closed. It is loaded in advance and begins on order, so that it can replace a killed one without delay.
 *
 * The argument is an `ActorPlan` as JSON; orders come as lines on standard input. It prints `ready` once it is loaded.
 */
import { createInterface } from "node:readline";
import type { Gate } from "../../gate/create-gate.ts";
import { createServer, type Server, type ServerOptions } from "../../http/index.ts";
import { isSallyportError } from "../../model/errors.ts";
import type { CallAnswer } from "../../model/operation.ts";
import { errorText } from "../../util/error-text.ts";
import type { JsonValue } from "../../util/json.ts";
import { systemTimers } from "../../util/timers.ts";
import { appendLines, createDice, followLines, keepCompiled } from "../child.ts";
import { LEASE_MS, openKit } from "../open-kit.ts";
import { FREE, KINDS } from "../world/world.ts";
import {
  type ActorLine,
  type ActorOrder,
  type ActorPlan,
  type ActorRole,
  type AgentsSession,
  type Asked,
  type Asking,
  callIdOf,
  httpApi,
  libraryApi,
  orTold,
  type PersonsInbox,
  type Stage,
  toldOf,
  WAYS,
  type Way,
} from "./actor.ts";

const PAUSE_MS = 15;
/** How many of its open questions an agent follows. */
const MOST_OPEN = 8;
/** How many interrupted calls are repeated after a start. */
const MOST_AGAIN = 8;

/** Several agents in one process, so that a kill always interrupts something. */
const LANES: readonly (readonly [lane: string, over: Way])[] = [
  ...["a", "b", "c"].map((lane) => [lane, "library"] as const),
  ...["d", "e"].map((lane) => [lane, "http"] as const),
];

/** A request of an agent, and the session to ask for its result. */
interface Open {
  readonly tenant: string;
  readonly asked: Asked;
  readonly session: AgentsSession;
}

/** Agents request calls and ask for pending results. After a crash they repeat their requests with the same keys. */
async function playAgent(stage: Stage): Promise<never> {
  const again = cutOff(stage).map((open) => askFor(stage, open));
  const lanes = LANES.map(([lane, over]) => askOn(stage, lane, over));
  // Concurrently with new requests: one way may be down while the other works.
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
  return { tenant, asked, session: stage.apis[asked.over].session(tenant, asked.session) };
}

/** Requests without an answer in the agent's history. */
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

/** While the store or the server is unavailable it repeats the request with the same keys. */
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

/** A read over HTTP costs two more processes. */
const REVIEWER_PAUSE_MS: Readonly<Record<Way, number>> = { library: 20, http: 60 };
const PAGE = 20;

/** The inbox of a tenant on one way. */
interface Desk {
  readonly tenant: string;
  readonly over: Way;
  readonly inbox: PersonsInbox;
}

/** One person on each way: approves, rejects, settles lost calls and sometimes rolls a session back. */
async function playReviewer(stage: Stage): Promise<never> {
  return Promise.race(WAYS.map((over) => reviewOn(stage, over)));
}

async function reviewOn(stage: Stage, over: Way): Promise<never> {
  const { dice, timers } = stage;
  for (;;) {
    // Old tenants too: their questions have no other reviewer.
    for (const tenant of stage.tenants()) {
      const desk: Desk = { tenant, over, inbox: stage.apis[over].inbox(tenant) };
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
  if (chance < 14) {
    if (chance < 10) await inbox.reject(asking, "not this one");
    else await inbox.cancel(asking, "asked by mistake");
    return stage.tell(tenant, over, [{ decisionId: id, answer: "rejected" }]);
  }
  if (chance < 20) return;
  const answers = await inbox.approve(asking);
  stage.tell(tenant, over, [{ decisionId: id, answer: "approved" }, ...answers.flatMap(toldOf)]);
  if (!dice.percent(15)) return;
  const ids = await inbox.rollback(asking.sessionId);
  const undone = ids.map((operationId) => ({ operationId, answer: "done" as const }));
  stage.tell(tenant, over, undone);
}

/** Looks at production, as a person would. A call that did not happen is repeated or given up. */
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

/** Lost a race, the kill switch is on, or a reviewer's own request: the person continues. */
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

/** Recovers abandoned calls, and sometimes uses the kill switch for a moment. */
async function playWorker(stage: Stage): Promise<never> {
  const { dice, timers, plan } = stage;
  const by = { actor: `person:${plan.name}` };
  for (;;) {
    for (const tenant of stage.tenants()) {
      const { recover, interactions, killSwitch } = await stage.gate(tenant);
      await orTold(stage, tenant, async () => {
        // The process that stopped it may have been killed before it resumed.
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

/** Serves the store over HTTP, and recovers abandoned calls when it starts, as `sallyport serve` does. */
async function playServer(stage: Stage): Promise<never> {
  const { kit, plan } = stage;
  const { port: listenPort, tenants } = plan.server;
  const made = tenants.map(async (tenant) => [tenant, await stage.gate(tenant)] as const);
  const gates = Object.fromEntries(await Promise.all(made));
  await listening(stage, {
    store: kit.store,
    gates,
    listenPort,
    limits: { keyLeaseMs: LEASE_MS },
    // Reviewers sign in once, before the run.
    signIn: { freshMs: 24 * 3_600_000 },
    onProblem,
  });
  for (const tenant of stage.tenants())
    await orTold(stage, tenant, async () => gates[tenant]?.recover());
  return new Promise(() => {});
}

/** Another program may use the port for a moment, as the source of an outgoing connection. */
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

/** An internal error of the server ends the process, which is reported. */
function onProblem(error: unknown): void {
  if (isSallyportError(error)) return;
  process.stderr.write(`${error instanceof Error ? error.stack : errorText(error)}\n`);
  process.exit(1);
}

const PLAY: Readonly<Record<ActorRole, (stage: Stage) => Promise<never>>> = {
  agent: playAgent,
  reviewer: playReviewer,
  worker: playWorker,
  server: playServer,
};

const plan: ActorPlan = JSON.parse(process.argv[2] ?? "{}");
const dice = createDice(plan.seed);
const history = appendLines<ActorLine>(plan.history);
const kit = await openKit(plan.place);
const gates = new Map<string, Promise<Gate>>();
const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
let tenants: readonly string[] = [];

const orders = createInterface(process.stdin);
orders.on("line", (line) => {
  const order: ActorOrder = JSON.parse(line);
  if ("begin" in order) {
    tenants = order.begin;
    begin();
  } else if ("open" in order) tenants = [...tenants, order.open];
  else tenants = tenants.filter((tenant) => tenant !== order.drop);
});
orders.on("close", () => process.exit(0));
process.stdout.write("ready\n");
keepCompiled();
await begun;

await PLAY[plan.role]({
  plan,
  kit,
  dice,
  timers: systemTimers,
  tenants: () => tenants,
  gate,
  apis: {
    library: libraryApi(plan.name, gate),
    http: httpApi(plan, (tenant) => history.write({ tenant, unanswered: "http" })),
  },
  write: history.write,
  tell(tenant, over, all) {
    for (const told of all) history.write({ tenant, told, over });
  },
});

function gate(tenant: string): Promise<Gate> {
  const known = gates.get(tenant) ?? kit.gate(tenant, { at: () => {}, fault });
  gates.set(tenant, known);
  return known;
}

function fault() {
  if (!dice.percent(plan.cutPercent)) return "none" as const;
  return dice.percent(20) ? ("die" as const) : ("cut" as const);
}
