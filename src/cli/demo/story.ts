// What the demo shows besides three busy agents: a run whose plan waits, a sub-agent at work, and a conversation that waits.

import type { LanguageModel } from "ai";
import type { Flow } from "../../flow/index.ts";
import type { Gate } from "../../gate/create-gate.ts";
import type { ServedFlow } from "../../http/index.ts";
import type { TenantStore } from "../../store/store.ts";
import { systemClock } from "../../util/clock.ts";
import { systemTimers, type Timers } from "../../util/timers.ts";
import type { ServedParts } from "../serve.ts";

const AFTER_LINK_MS = 500;

interface StoryTerms {
  readonly everyMs: number;
  /** Shape: push. */
  readonly onProblem: (error: unknown) => void;
}

/** The demo with something to look at on the pages of delegations, runs and conversations. */
export function withStory(parts: ServedParts, { everyMs, onProblem }: StoryTerms): ServedParts {
  let told: { readonly talk: Talk; readonly store: TenantStore } | undefined;
  return {
    ...parts,
    flow(of) {
      const talk = demoTalk(of, onProblem);
      told = { talk, store: of.store };
      return talk;
    },
    resume: async () => told?.talk.wake() ?? [],
    started(gate) {
      const stop = parts.started?.(gate);
      const run = systemClock.now();
      const about = { gate, timers: systemTimers, run, everyMs, onProblem };
      let story: { stop(): Promise<void> } | undefined;
      // The sign-in link is printed first: loading an AI SDK takes as long as everything before it.
      const cancel = systemTimers.after(AFTER_LINK_MS, () => {
        story = told && startStory({ ...about, store: told.store, flow: told.talk });
      });
      return async () => {
        cancel();
        await Promise.all([stop?.(), story?.stop()]);
      };
    },
  };
}

interface StoryOptions extends StoryTerms {
  readonly gate: Gate;
  readonly store: TenantStore;
  readonly flow: ServedFlow;
  readonly timers: Timers;
  /** Names this run, so that its sessions are new ones. */
  readonly run: number;
}

const FEATURE = "Shelf labels for hall 2";
const SCOUTS = "Find out which articles run out this week.";
const TALK = "person:ivan:fair";

/** Begins each of the three that is not there yet; nothing waits for it. */
function startStory(options: StoryOptions): { stop(): Promise<void> } {
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

interface Talk extends ServedFlow {
  /** Continues conversations whose question was answered. */
  wake(): Promise<readonly string[]>;
}

/** The demo's agent to talk with. It follows a script; the AI SDK is loaded when it first speaks, after the server listens. */
function demoTalk(
  { gate, store }: { readonly gate: Gate; readonly store: TenantStore },
  onProblem: (error: unknown) => void,
): Talk {
  let made: Promise<{ flow: Flow; wake: Talk["wake"] }> | undefined;
  async function make() {
    const { createFlow, continueFlows } = await import("../../flow/index.ts");
    const report = ({ error }: { readonly error: unknown }) => onProblem(error);
    const flow = createFlow({
      model: SCRIPTED_MODEL,
      openSession: ({ conversationId, userId }) =>
        gate.sessions.open({ id: `talk.${conversationId}`, agent: "agent:desk", owner: userId }),
      tools: gate.tools,
      states: store.flowStates,
      onProblem: report,
    });
    const { interactions } = gate;
    return {
      flow,
      wake: continueFlows({ flow, states: store.flowStates, interactions, onProblem: report }),
    };
  }
  const use = () => {
    made ??= make();
    return made;
  };
  return {
    handle: async (request) => (await use()).flow.handle(request),
    reply: async (answer) => (await use()).flow.reply(answer),
    confirm: async (answer) => (await use()).flow.confirm(answer),
    resume: async (id, signal) => (await use()).flow.resume(id, signal),
    // Before its first word there is nothing to continue.
    wake: async () => (made === undefined ? [] : (await use()).wake()),
  };
}

const PLAN = {
  action: "plan",
  steps: [
    { text: "Look how many desk lamps there are", done_when: "their number is known" },
    { text: "Take ten desk lamps out of stock", done_when: "the stock is corrected" },
  ],
};
const LOOK = {
  action: "call_tool",
  tool: "stock.look",
  input: { sku: "LAMP-01" },
  summary: "looks at the desk lamps",
};
const TAKE = {
  action: "call_tool",
  tool: "stock.adjust",
  input: { sku: "LAMP-01", by: -10, why: "for the fair" },
  summary: "takes ten desk lamps out of stock",
};

/** The next line follows from what was said so far, so that it is the right one also after a restart. */
function nextLine(prompt: string): string {
  if (prompt.includes("You talk with a user")) return JSON.stringify({ action: "plan" });
  if (prompt.includes("Make a plan for what")) return JSON.stringify(PLAN);
  const isSecond = prompt.includes("You are at step 2");
  const answers = prompt.split("Result (").length - 1;
  if (answers < (isSecond ? 2 : 1)) return JSON.stringify(isSecond ? TAKE : LOOK);
  const check = { goal_check: "the answer of the tool says so" };
  return JSON.stringify({ action: isSecond ? "done" : "next_step", ...check });
}

const CLOSING = "That is what was done for the fair.";
const STOP = { unified: "stop", raw: undefined } as const;
const USAGE = {
  inputTokens: { total: 0, noCache: 0, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 0, text: 0, reasoning: undefined },
};

const SCRIPTED_MODEL: Exclude<LanguageModel, string> = {
  specificationVersion: "v4",
  provider: "demo",
  modelId: "script",
  supportedUrls: {},
  doGenerate: async ({ prompt }) => ({
    content: [{ type: "text", text: nextLine(wordsIn(prompt)) }],
    finishReason: STOP,
    usage: USAGE,
    warnings: [],
  }),
  doStream: async () => ({
    stream: new ReadableStream({
      start(pieces) {
        pieces.enqueue({ type: "text-start", id: "1" });
        pieces.enqueue({ type: "text-delta", id: "1", delta: CLOSING });
        pieces.enqueue({ type: "text-end", id: "1" });
        pieces.enqueue({ type: "finish", finishReason: STOP, usage: USAGE });
        pieces.close();
      },
    }),
  }),
};

/** All texts of a prompt in their order. */
function wordsIn(prompt: readonly { readonly content: unknown }[]): string {
  return prompt
    .flatMap(({ content }) => (Array.isArray(content) ? content : [content]))
    .map((part) => (typeof part === "string" ? part : String(part.text ?? "")))
    .join("\n");
}
