// What the demo shows besides three busy agents: a run whose plan waits, a sub-agent at work, and a conversation that waits.

import type { Gate } from "../../gate/create-gate.ts";
import type { ServedFlow } from "../../http/index.ts";
import type { TenantStore } from "../../store/store.ts";
import type { Timers } from "../../util/timers.ts";

export interface StoryOptions {
  readonly gate: Gate;
  readonly store: TenantStore;
  readonly flow: ServedFlow;
  readonly timers: Timers;
  /** Names this run, so that its sessions are new ones. */
  readonly run: number;
  readonly everyMs: number;
  /** Shape: push. */
  readonly onProblem: (error: unknown) => void;
}

const FEATURE = "Shelf labels for hall 2";
const SCOUTS = "Find out which articles run out this week.";
const TALK = "person:ivan:fair";

/** Begins each of the three that is not there yet; nothing waits for it. */
export function startStory(options: StoryOptions): { stop(): Promise<void> } {
  const { onProblem } = options;
  const stopping = new AbortController();
  const all = [waitingPlan(options), workingScout(options, stopping.signal), waitingTalk(options)];
  const ended = all.map((one) => one.catch(onProblem));
  return {
    async stop() {
      stopping.abort();
      await Promise.all(ended);
    },
  };
}

async function waitingPlan({ gate, store }: StoryOptions): Promise<void> {
  const open = await store.runs.list("open");
  if (open.some(({ feature }) => feature === FEATURE)) return;
  const by = { actor: "agent:planner" };
  const { id } = await gate.runs.start({
    feature: FEATURE,
    lead: by.actor,
    promise: {
      id: "labels",
      statement: "Every shelf of hall 2 has a label with the right article.",
      evidence: [{ name: "walk-through" }],
    },
    documents: "",
    evidenceFolder: "",
    budget: 6,
  });
  await gate.runs.enter(id, "spec", by);
  await gate.runs.enter(id, "plan", by);
  await gate.runs.proposePlan(id, ["sql:warehouse/labels", "sql:warehouse/shelves"]);
}

/** A research sub-agent that looks at the stock now and then, with one below it that has reported. */
async function workingScout(options: StoryOptions, signal: AbortSignal): Promise<void> {
  const { gate, timers, run, everyMs } = options;
  const lead = gate.sessions.open({
    id: `planner-${run}`,
    agent: "agent:planner",
    owner: "person:olga",
  });
  const scope = { role: "research", tools: ["stock.look"] } as const;
  const answer = await lead.delegate({
    ...scope,
    agent: "agent:scout",
    task: SCOUTS,
    capsule: "Targets are in the stock list. Below half of its target an article runs out.",
    promise: { id: "list", statement: "A list of articles that run out.", evidence: [] },
    calls: 500,
    depth: 1,
    ttlMs: 3_600_000,
  });
  if (answer.answer !== "delegated") throw new Error(`the scout cannot work: ${answer.text}`);
  const { session, watch } = await gate.delegations.attach(answer.delegation.id, answer.token);
  try {
    const below = await session.delegate({
      ...scope,
      agent: "agent:shelf-counter",
      task: "Count shelf 9.",
      capsule: "Shelf 9 holds the cables.",
      promise: { id: "count", statement: "The number of cables.", evidence: [] },
      calls: 5,
    });
    if (below.answer === "delegated") await countOnce(options, below);
    for (let turn = 0; !signal.aborted && !watch.signal.aborted; turn += 1) {
      await session.call({ callId: `look-${turn}`, tool: "stock.look", input: {} });
      await rest(timers, 5 * everyMs, AbortSignal.any([signal, watch.signal]));
    }
  } finally {
    watch.stop();
  }
}

type Delegated = Extract<
  Awaited<ReturnType<ReturnType<Gate["sessions"]["open"]>["delegate"]>>,
  { answer: "delegated" }
>;

async function countOnce({ gate }: StoryOptions, { delegation, token }: Delegated): Promise<void> {
  const { session, watch } = await gate.delegations.attach(delegation.id, token);
  try {
    const input = { sku: "CABLE-3M" };
    const { text } = await session.call({ callId: "count", tool: "stock.look", input });
    await gate.delegations.report(delegation.id, text, token);
  } finally {
    watch.stop();
  }
}

function rest(timers: Timers, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const cancel = timers.after(ms, resolve);
    signal.addEventListener(
      "abort",
      () => {
        cancel();
        resolve();
      },
      { once: true },
    );
  });
}

async function waitingTalk({ store, flow }: StoryOptions): Promise<void> {
  if ((await store.flowStates.load(TALK)).found) return;
  const message = "The fair needs desk lamps. Look how many there are, and take ten out of stock.";
  await flow.handle({ conversationId: TALK, userId: "person:ivan", message });
}
