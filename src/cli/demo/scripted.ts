import type { Gate } from "../../gate/create-gate.ts";
import type { Session } from "../../gate/session.ts";
import type { CallAnswer, CallRequest } from "../../model/call.ts";
import { forPeople } from "../../model/for-people.ts";
import type { Task } from "../../model/task.ts";
import type { Timers } from "../../util/timers.ts";
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
function buyer(options: DemoOptions): Turn {
  const { gate, warehouse, run } = options;
  const session = open(options, "agent:buyer", "person:olga");
  return async (turn) => {
    await session.call(call(turn, "stock.look", {}));
    const low = warehouse.all().filter(({ amount, target }) => amount < target);
    const row = low[turn % Math.max(1, low.length)];
    if (row === undefined) return;
    // Whoever counts finds it on the shared list.
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
function counter(options: DemoOptions): Turn {
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

/** Three agents that follow a script. */
export const SCRIPTED: readonly DemoAgent[] = [buyer, counter, shipper];

export interface DemoOptions {
  readonly gate: Pick<Gate, "sessions" | "interactions" | "tasks" | "tools">;
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

/** What an agent does when it is its turn. */
export interface Turn {
  (turn: number): Promise<void>;
  /** Looks at what became of earlier calls. Asked also while the inbox is full, because it proposes nothing. */
  follow?(): Promise<void>;
}
export type DemoAgent = (options: DemoOptions) => Turn;

/** Agents that go on proposing. Each keeps to the gate like any other agent: it has no other way. */
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

function keepOn(take: Turn, options: DemoOptions, firstMs: number): { stop(): Promise<void> } {
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
