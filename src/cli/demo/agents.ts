import type { CallRequest } from "../../model/call.ts";
import type { Port } from "../../port/create-sallyport.ts";
import type { Session } from "../../port/session.ts";
import type { Timers } from "../../util/timers.ts";
import type { Warehouse } from "./warehouse.ts";

export interface DemoOptions {
  readonly port: Pick<Port, "sessions" | "interactions">;
  readonly warehouse: Warehouse;
  readonly timers: Timers;
  /** Names this run, so that its orders and keys are new ones. */
  readonly run: number;
  readonly everyMs: number;
  /** An agent that broke; the others go on. Shape: push. */
  readonly onProblem: (error: unknown) => void;
}

/** When so many wait for a person, the agents wait too: an inbox that nobody reads must not grow for ever. */
const MOST_OPEN = 12;

type Turn = (turn: number) => Promise<void>;

/** Three scripted agents that go on proposing. Each keeps to the gate like any other agent: it has no other way. */
export function startAgents(options: DemoOptions): { stop(): Promise<void> } {
  const agents = [buyer, counter, shipper].map((turnOf, index) =>
    keepOn(turnOf(options), options, 200 * index),
  );
  return {
    async stop() {
      await Promise.all(agents.map((agent) => agent.stop()));
    },
  };
}

function keepOn(take: Turn, options: DemoOptions, firstMs: number): { stop(): Promise<void> } {
  const { port, timers, everyMs, onProblem } = options;
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
    const open = await port.interactions.list({ limit: MOST_OPEN });
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

function open({ port, run }: DemoOptions, agent: string, owner: string): Session {
  return port.sessions.open({ id: `${agent.slice(6)}-${run}`, agent, owner });
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
function buyer(options: DemoOptions): Turn {
  const { warehouse, run } = options;
  const session = open(options, "agent:buyer", "person:olga");
  return async (turn) => {
    await session.call(call(turn, "stock.look", {}));
    const low = warehouse.all().filter(({ amount, target }) => amount < target);
    const row = low[turn % Math.max(1, low.length)];
    if (row === undefined) return;
    const amount = turn % 4 === 3 ? 900 : Math.min(60, row.target - row.amount);
    const order = `PO-${run}${String(turn).padStart(3, "0")}`;
    const cents = amount * (row.sku.startsWith("CABLE") ? 450 : 8_900);
    await session.call(call(turn, "orders.place", { order, sku: row.sku, amount, cents }));
  };
}

/** Corrects amounts after counting; every third time it is not sure and asks. */
function counter(options: DemoOptions): Turn {
  const { warehouse } = options;
  const session = open(options, "agent:counter", "person:ivan");
  return async (turn) => {
    const sku = warehouse.skus[turn % warehouse.skus.length] ?? "LAMP-01";
    if (turn % 3 === 2) {
      await session.ask({
        callId: `count-${turn}`,
        text: `I counted ${sku} twice with different results. Which shelf counts?`,
        choices: ["upper shelf", "lower shelf", "count again"],
      });
      return;
    }
    const by = turn % 2 === 0 ? -2 : 3;
    await session.call(call(turn, "stock.adjust", { sku, by, why: "counted by hand" }));
  };
}

/** Books lorries, which cannot be taken back; one carrier never answers. */
function shipper(options: DemoOptions): Turn {
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
