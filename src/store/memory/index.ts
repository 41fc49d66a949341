import { createRedactor } from "../../audit/redact.ts";
import { type Clock, systemClock } from "../../util/clock.ts";
import { type Random, systemRandom } from "../../util/random.ts";
import { ClockWatch } from "../clock-watch.ts";
import { createStore } from "../create-store.ts";
import type { Store } from "../store.ts";
import type { Redact } from "../tenant-engine.ts";
import { memoryEngine } from "./engine.ts";

export { memoryEngine } from "./engine.ts";

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly redact?: Redact;
}

/**
 * For tests and demos only: it outlives neither a restart nor a crash and shares nothing between processes. Its ids count
 * upward and mean nothing after a restart.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { clock = systemClock, random = systemRandom, redact = createRedactor({}) } = options;
  const clockWatch = options.clock === undefined ? new ClockWatch() : undefined;
  return createStore(memoryEngine({ clock, random, ...(clockWatch && { clockWatch }) }), {
    redact,
  });
}
