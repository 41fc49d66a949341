// Loaded before a run: a gate loads it at its first use, and the time that takes is not simulated.
import "../../src/gate/wire-gate.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import type { Validator } from "../../src/model/decision.ts";
import { createStore, type Store } from "../../src/store/store.ts";
import type { Faults } from "./faults.ts";
import { createLuck } from "./luck.ts";
import { type RunQueue, WallClock } from "./run-queue.ts";
import type { Client } from "./sim-server.ts";
import type { SimStore } from "./sim-store.ts";
import type { SimWorld } from "./sim-world.ts";

export const TENANT = "acme";
export const START = Date.parse("2026-11-15T06:00:00.000Z");
export const LEASE_MS = 2_000;
export const APPROVAL_MS = 30_000;
const TOOL_MS = 3_000;

/** The called process has died and will never answer. */
export class Gone extends Error {}

export interface ProcessParts {
  readonly seed: number;
  readonly queue: RunQueue;
  readonly faults: Faults;
  readonly store: SimStore;
  readonly world: SimWorld;
  onDeath(process: SimProcess): void;
}

/** The product as one process runs it, with nothing replaced but what it is handed: store, tools, time and chance. */
export class SimProcess implements Client {
  readonly name: string;
  readonly clock: WallClock;
  isAlive = true;
  readonly #parts: ProcessParts;
  readonly #gate: Gate;
  readonly #store: Store;
  readonly #waiting = new Set<(gone: Gone) => void>();

  constructor(name: string, parts: ProcessParts) {
    const { seed, queue, faults, store, world } = parts;
    this.name = name;
    this.#parts = parts;
    this.clock = new WallClock(queue, START);
    this.#store = createStore(store.engineOf(this), {
      redact: (_, data) => data,
      stopwatch: { now: () => queue.time },
      random: createLuck(seed, `${name} content keys`),
    });
    this.#gate = createGate({
      store: this.#store,
      tenant: TENANT,
      tools: world.toolsOf(this),
      validators: { tech: validator("schema"), business: moody("limits", faults) },
      guard: allowAlways,
      policy: POLICY,
      review: [{ tools: ["world.plain"], requires: [{ name: "two of us", count: 2 }] }],
      people: ["ada", "bob", "cleo", "ops", "owner"].map((name) => ({ id: `person:${name}` })),
      approvalMs: APPROVAL_MS,
      leaseMs: LEASE_MS,
      timeoutMs: TOOL_MS,
      clock: this.clock,
      timers: queue.timersOf(this),
      random: createLuck(seed, name),
    });
  }

  /** A request from outside; when the process dies first, the caller sees the connection break. */
  ask<Answer>(work: (gate: Gate, store: Store) => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (!this.isAlive) return reject(new Gone());
      this.#waiting.add(reject);
      work(this.#gate, this.#store)
        .then(resolve, reject)
        .finally(() => this.#waiting.delete(reject));
    });
  }

  /** Nothing of it goes on, for ever; what it had sent may still arrive. */
  die(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    for (const { orphan } of this.#parts.queue.drop(this)) orphan?.();
    this.#parts.store.server.leaveAll(this);
    for (const reject of this.#waiting) reject(new Gone());
    this.#waiting.clear();
    this.#parts.onDeath(this);
  }
}

const POLICY = {
  version: "1",
  rules: [{ id: "free", effect: "allow", tool: "world.free_*", reason: "a simulation" }],
} as const;

function validator(name: string): Validator {
  return { name, review: () => verdictOf(name, true) };
}

/** One that now and then says no, or nothing at all. */
function moody(name: string, faults: Faults): Validator {
  return {
    name,
    review: () =>
      faults.strikes("validator hangs")
        ? new Promise<never>(() => {})
        : verdictOf(name, !faults.strikes("validator says no")),
  };
}

function verdictOf(validator: string, approved: boolean) {
  const [score, severity, reason] = approved
    ? ([1, "", "fits"] as const)
    : ([0, "block", "not today"] as const);
  return { approved, score, severity, reason, validator, policyVersion: "1" };
}
