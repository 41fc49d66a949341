import type { Gate } from "../../src/gate/create-gate.ts";
import type { Store } from "../../src/store/store.ts";
import type { Luck } from "./luck.ts";
import type { Owner } from "./run-queue.ts";
import { Gone, type ProcessParts, SimProcess } from "./sim-process.ts";

const SIZE = 3;

/** Several processes over one store. Each that dies is started anew, some time later and with nothing remembered. */
export class Fleet {
  crashes = 0;
  readonly #luck: Luck;
  readonly #parts: ProcessParts;
  readonly #owner: Owner = { name: "fleet" };
  #processes: readonly SimProcess[];
  #started = 0;

  constructor(luck: Luck, parts: Omit<ProcessParts, "onDeath">) {
    this.#luck = luck;
    this.#parts = { ...parts, onDeath: (dead) => this.#replace(dead) };
    this.#processes = Array.from({ length: SIZE }, () => this.#start());
  }

  /** Asks one of those that are alive; when there is none, or it dies, the connection breaks. */
  ask<Answer>(work: (gate: Gate, store: Store) => Promise<Answer>): Promise<Answer> {
    if (this.#processes.length === 0) return Promise.reject(new Gone());
    return this.any().ask(work);
  }

  any(): SimProcess {
    return this.#luck.pick(this.#processes);
  }

  /** As an operator stops all processes. */
  stop(): void {
    for (const process of this.#processes) process.die();
  }

  get size(): number {
    return this.#processes.length;
  }

  #replace(dead: SimProcess): void {
    this.crashes += 1;
    this.#processes = this.#processes.filter((process) => process !== dead);
    const start = () => {
      this.#processes = [...this.#processes, this.#start()];
    };
    this.#parts.queue.park(this.#owner, `restarts ${dead.name}`, start, {
      delayMs: this.#luck.below(1_000),
    });
  }

  #start(): SimProcess {
    this.#started += 1;
    return new SimProcess(`p${this.#started}`, this.#parts);
  }
}
