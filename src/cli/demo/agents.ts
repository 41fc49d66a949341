import type { Port } from "../../port/create-sallyport.ts";
import type { Timers } from "../../util/timers.ts";
import type { Warehouse } from "./warehouse.ts";

export interface DemoOptions {
  readonly port: Pick<Port, "sessions" | "interactions" | "tasks" | "tools">;
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
    await take.follow?.();
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
