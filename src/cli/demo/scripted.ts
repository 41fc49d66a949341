import type { CallAnswer, CallRequest } from "../../model/call.ts";
import { forPeople } from "../../model/for-people.ts";
import type { Task } from "../../model/task.ts";
import type { Session } from "../../port/session.ts";
import type { DemoAgent, DemoOptions, Turn } from "./agents.ts";

export function open({ port, run }: DemoOptions, agent: string, owner: string): Session {
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
  const { port, warehouse, run } = options;
  const session = open(options, "agent:buyer", "person:olga");
  return async (turn) => {
    await session.call(call(turn, "stock.look", {}));
    const low = warehouse.all().filter(({ amount, target }) => amount < target);
    const row = low[turn % Math.max(1, low.length)];
    if (row === undefined) return;
    // Whoever counts finds it on the shared list.
    if ((await port.tasks.findByStatus("pending")).length < MOST_COUNTS) {
      await port.tasks.add({ subject: `${COUNT}${row.sku}`, description: "Before we order more." });
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
  const { port, warehouse } = options;
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
      await port.tasks.renew({ id, fence, leaseMs: LEASE_MS });
      ({ begun, waitsFor } = kept);
      return;
    }
    if (answer === "done") await port.tasks.complete({ id, fence, result: text });
    else await port.tasks.fail({ id, fence, reason: forPeople(text) });
  }

  async function follow(): Promise<void> {
    if (begun === undefined || waitsFor === undefined) return;
    const result = await session.resultOf(waitsFor);
    if (result !== undefined) await settle(begun, result);
  }

  const take = async (turn: number): Promise<void> => {
    // The newest: what a person has just written on the board is seen to move.
    const next = (await port.tasks.findByStatus("pending"))
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
      begun = await port.tasks.claim({ id: next.id, ...terms });
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
