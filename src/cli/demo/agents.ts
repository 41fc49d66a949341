import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { LanguageModel, ToolSet } from "ai";
import type { Gate } from "../../gate/create-gate.ts";
import type { Session } from "../../gate/session.ts";
import { forPeople, SallyportError } from "../../model/errors.ts";
import type { CallAnswer, CallRequest } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import { describeTool, inputSchemaForModel } from "../../tools/registry.ts";
import type { JsonValue } from "../../util/json.ts";
import { type Timers, withDeadline } from "../../util/timers.ts";
import type { Warehouse } from "./warehouse.ts";

export function open({ gate, run }: DemoOptions, agent: string, owner: string): Session {
  return gate.sessions.open({ id: `${agent.slice(6)}-${run}`, agent, owner });
}

function call(turn: number, tool: string, input: CallRequest["input"]): CallRequest {
  return {
    callId: `${tool}-${turn}`,
    key: `${tool}-${turn}`,
    tool,
    input,
    messageId: `m-${turn}`,
    turn,
  };
}

/** Refills what runs low; now and then it would spend too much, and the business review says no. */
function buyer(options: DemoOptions): AgentTurn {
  const { gate, warehouse, run } = options;
  const session = open(options, "agent:buyer", "person:olga");
  return async (turn) => {
    await session.call(call(turn, "stock.look", {}));
    const low = warehouse.all().filter(({ amount, target }) => amount < target);
    const row = low[turn % Math.max(1, low.length)];
    if (row === undefined) return;
    // The counting agent finds it in the shared list.
    if ((await gate.tasks.findByStatus("pending")).length < MOST_COUNTS) {
      await gate.tasks.add({ subject: `${COUNT}${row.sku}`, description: "Before we order more." });
    }
    const amount = turn % 4 === 3 ? 900 : Math.min(60, row.target - row.amount);
    const order = `PO-${run}${String(turn).padStart(3, "0")}`;
    const cents = amount * (row.sku.startsWith("CABLE") ? 450 : 8_900);
    await session.call(call(turn, "orders.place", { order, sku: row.sku, amount, cents }));
  };
}

const COUNT = "Count ";
const MOST_COUNTS = 3;
const LEASE_MS = 5 * 60_000;

/** Counts what the list says, and corrects the amounts; every third time it is not sure and asks. */
function counter(options: DemoOptions): AgentTurn {
  const { gate, warehouse } = options;
  const session = open(options, "agent:counter", "person:ivan");
  const terms = { claimer: "agent:counter", leaseMs: LEASE_MS };
  let begun: Task | undefined;
  /** The call that the begun task waits for; undefined while there is none. */
  let waitsFor: string | undefined;

  /** A task is done when its call is done, not when it is asked for: a person may still say no. */
  async function settle({ id, fence = 0 }: Task, { answer, text }: CallAnswer): Promise<void> {
    const kept = { begun, waitsFor };
    // Cleared first: the task may have been taken from us, and then it is not ours to keep or to close.
    begun = undefined;
    waitsFor = undefined;
    if (answer === "pending" || answer === "unknown") {
      await gate.tasks.renew({ id, fence, leaseMs: LEASE_MS });
      ({ begun, waitsFor } = kept);
      return;
    }
    if (answer === "done") await gate.tasks.complete({ id, fence, result: text });
    else await gate.tasks.fail({ id, fence, reason: forPeople(text) });
  }

  async function follow(): Promise<void> {
    if (begun === undefined || waitsFor === undefined) return;
    const result = await session.resultOf(waitsFor);
    if (result !== undefined) await settle(begun, result);
  }

  const take = async (turn: number): Promise<void> => {
    // The newest: what a person has just written on the board is seen to move.
    const next = (await gate.tasks.findByStatus("pending"))
      .filter(({ subject }) => warehouse.skus.includes(subject.slice(COUNT.length)))
      .at(-1);
    // While its task waits for a person, it counts other things.
    const task = waitsFor === undefined ? begun : undefined;
    const sku = task?.subject.slice(COUNT.length) ?? warehouse.skus[turn % 5] ?? "";
    if (turn % 3 === 2) {
      await session.ask({
        callId: `count-${turn}`,
        text: `I counted ${sku} twice with different results. Which shelf counts?`,
        choices: ["upper shelf", "lower shelf", "count again"],
      });
    } else if (begun === undefined && next !== undefined) {
      begun = await gate.tasks.claim({ id: next.id, ...terms });
    } else {
      const by = turn % 2 === 0 ? -2 : 3;
      const why = task === undefined ? "counted by hand" : `for the task "${task.subject}"`;
      const request = call(turn, "stock.adjust", { sku, by, why });
      const result = await session.call(request);
      if (task === undefined) return;
      waitsFor = request.key;
      await settle(task, result);
    }
  };
  return Object.assign(take, { follow });
}

/** Books lorries, which cannot be undone; one carrier never answers. */
function shipper(options: DemoOptions): AgentTurn {
  const { warehouse } = options;
  const session = open(options, "agent:shipper", "person:olga");
  const carriers = ["Harbour Freight", "Nightline", "Blue Van"];
  return async (turn) => {
    const orders = warehouse.openOrders();
    const order = orders[turn % Math.max(1, orders.length)]?.id ?? `PO-${options.run}000`;
    const carrier = carriers[turn % carriers.length] ?? "Blue Van";
    await session.call(call(turn, "carriers.book", { carrier, order }));
  };
}

/** Three agents that follow a script. */
export const SCRIPTED: readonly DemoAgent[] = [buyer, counter, shipper];

export interface DemoOptions {
  readonly gate: Pick<Gate, "sessions" | "interactions" | "tasks" | "tools">;
  readonly warehouse: Warehouse;
  readonly timers: Timers;
  /** Names this run, so that its orders and keys are new ones. */
  readonly run: number;
  readonly everyMs: number;
  /** Errors of one agent; the others continue. Shape: push. */
  readonly onProblem: (error: unknown) => void;
}

/** When so many wait for a person, the agents wait too: an unread inbox must not grow without limit. */
const MOST_OPEN = 12;

/** What an agent does when it is its turn. */
export interface AgentTurn {
  (turn: number): Promise<void>;
  /** Checks the outcome of earlier calls. Runs also while the inbox is full, because it proposes nothing. */
  follow?(): Promise<void>;
}
export type DemoAgent = (options: DemoOptions) => AgentTurn;

/** Agents that keep proposing, through the gate like any other agent. */
export function startAgents(
  agents: readonly DemoAgent[],
  options: DemoOptions,
): { stop(): Promise<void> } {
  const running = agents.map((agent, index) => keepOn(agent(options), options, 200 * index));
  return {
    async stop() {
      await Promise.all(running.map((agent) => agent.stop()));
    },
  };
}

function keepOn(take: AgentTurn, options: DemoOptions, firstMs: number): { stop(): Promise<void> } {
  const { gate, timers, everyMs, onProblem } = options;
  let stopped = false;
  let turn = 0;
  let running = Promise.resolve();
  let cancel = timers.after(firstMs, next);

  function next(): void {
    running = oneTurn().catch(onProblem).then(again);
  }

  function again(): void {
    if (!stopped) cancel = timers.after(everyMs, next);
  }

  async function oneTurn(): Promise<void> {
    await take.follow?.();
    const open = await gate.interactions.list({ limit: MOST_OPEN });
    if (open.length < MOST_OPEN) await take(turn++);
  }

  return {
    async stop() {
      stopped = true;
      cancel();
      await running;
    },
  };
}

interface Duty {
  readonly agent: string;
  readonly owner: string;
  readonly tools: readonly string[];
  readonly duty: string;
}

/** The same three agents as in the script, described by their duty instead of their steps. */
const DUTIES: readonly Duty[] = [
  {
    agent: "agent:buyer",
    owner: "person:olga",
    tools: ["stock.look", "orders.place"],
    duty: "You buy for a warehouse. Look at the stock, choose one article that runs low, and place one order for it. Order numbers are PO- and digits; use each once. Orders above 20,000 EUR are refused.",
  },
  {
    agent: "agent:counter",
    owner: "person:ivan",
    tools: ["stock.look", "stock.adjust", "ask_user"],
    duty: "You count in a warehouse. Look at the stock, choose one article, and either correct its amount by one to three pieces, or ask a person when a count looks wrong to you.",
  },
  {
    agent: "agent:shipper",
    owner: "person:olga",
    tools: ["stock.look", "carriers.book"],
    duty: "You ship for a warehouse. Book one carrier for one open order. Carriers: Harbour Freight, Nightline, Blue Van.",
  },
];

const TURN_MS = 90_000;
const MOST_STEPS = 5;
/** Pauses grow while a model keeps failing. */
const MOST_REST = 32;

/** Agents driven by a model. Their calls go through the gate like any other. */
export function modelled(loaded: LoadedModel): readonly DemoAgent[] {
  return DUTIES.map((duty) => (options) => thinking(duty, loaded, options));
}

function thinking(duty: Duty, { sdk, model }: LoadedModel, options: DemoOptions): AgentTurn {
  const { timers, run } = options;
  const session = open(options, duty.agent, duty.owner);
  let before = "This is your first turn.";
  let rest = 0;
  let failures = 0;
  return async (turn) => {
    if (rest > 0) {
      rest -= 1;
      return;
    }
    const tools = toolsOf(duty, sdk, options, (name, input, id) =>
      session.call({
        callId: `${turn}-${id}`,
        key: `${turn}-${id}`,
        tool: name,
        input,
        messageId: `m-${turn}`,
        turn,
      }),
    );
    const ask = (abortSignal: AbortSignal) =>
      sdk.generateText({
        model,
        instructions: `${duty.duty} Do one thing per turn, then say in one sentence what you did. What waits for a person is decided later: do not ask for it again.`,
        prompt: `Turn ${turn}, order numbers begin with PO-${run}${turn}. ${before}`,
        tools,
        stopWhen: sdk.stepCountIs(MOST_STEPS),
        maxRetries: 1,
        abortSignal,
        telemetry: { recordInputs: false, recordOutputs: false },
      });
    try {
      const { text } = await withDeadline(ask, TURN_MS, timers);
      before = `In your last turn you said: ${text.slice(0, 1_000)}`;
      failures = 0;
    } catch (error) {
      failures += 1;
      rest = Math.min(MOST_REST, 2 ** failures);
      throw error;
    }
  };
}

type Send = (
  tool: string,
  input: JsonValue,
  id: string,
) => Promise<{ readonly answer: string; readonly text: string }>;

/** Models accept few punctuation characters in names, so dots are replaced. */
function toolsOf(
  { tools }: Duty,
  sdk: LoadedModel["sdk"],
  { gate }: DemoOptions,
  send: Send,
): ToolSet {
  const known = tools.flatMap((name) => gate.tools.get(name) ?? []);
  return Object.fromEntries(
    known.map((tool) => [
      tool.name.replaceAll(".", "_"),
      sdk.tool({
        description: describeTool(tool),
        inputSchema: sdk.jsonSchema(inputSchemaForModel(tool)),
        async execute(input, { toolCallId }) {
          const { answer, text } = await send(tool.name, input as JsonValue, toolCallId);
          return `${answer}: ${text}`;
        },
      }),
    ]),
  );
}

/** The AI SDK and a model, as installed by the user. */
interface LoadedModel {
  readonly sdk: typeof import("ai");
  readonly model: LanguageModel;
}

/**
 * `PACKAGE:MODEL`, like `@ai-sdk/some-provider:some-model`. These are not dependencies: to use a model, the user
 * installs the package, and its provider reads its own key. Throws invalid_input with what to do.
 */
export async function loadModel(name: string, folder: string): Promise<LoadedModel> {
  const at = name.indexOf(":");
  const [from, id] = at < 0 ? ["", ""] : [name.slice(0, at), name.slice(at + 1)];
  if (from === "" || id === "") throw refused(name, "Write it as PACKAGE:MODEL.");
  const sdk = (await load("ai", folder)) as typeof import("ai");
  const provider = Object.values(await load(from, folder)).find(isProvider);
  if (provider === undefined) {
    throw refused(name, `${from} exports no provider of the AI SDK.`);
  }
  return { sdk, model: provider.languageModel(id) };
}

/** From Sallyport's own location, else from the current folder. */
async function load(from: string, folder: string): Promise<object> {
  try {
    return await import(from);
  } catch (error) {
    if (!isMissing(error, from)) throw error;
  }
  try {
    const file = createRequire(path.join(folder, "here.js")).resolve(from);
    return await import(pathToFileURL(file).href);
  } catch (error) {
    if (!isMissing(error, from)) throw error;
    throw refused(
      from,
      `Install it first: npm install ai ${from === "ai" ? "" : from}`.trim(),
      error,
    );
  }
}

/** Not installed, as opposed to installed and broken. */
function isMissing(error: unknown, from: string): boolean {
  const { code = "", message = "" } = error as { code?: string; message?: string };
  return /^(?:ERR_)?MODULE_NOT_FOUND$/.test(code) && message.includes(`'${from}'`);
}

function isProvider(value: unknown): value is { languageModel(id: string): LanguageModel } {
  const isThing = typeof value === "function" || (typeof value === "object" && value !== null);
  return isThing && typeof (value as { languageModel?: unknown }).languageModel === "function";
}

function refused(what: string, hint: string, cause?: unknown): SallyportError {
  return new SallyportError("invalid_input", { what, hint }, cause);
}
