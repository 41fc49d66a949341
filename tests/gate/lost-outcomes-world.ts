// A bank that can lose answers, behind ports over one store whose commits can fail or answer late.

import { createRedactor } from "../../src/audit/redact.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { SallyportError } from "../../src/model/errors.ts";
import type { Change, Engine } from "../../src/store/engine.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { createStore } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { systemClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

export function deferred() {
  return Promise.withResolvers<void>();
}

/** An engine whose commits fail, lose their answer or answer late, chosen by an event they carry. */
export function faultyStore() {
  const inner = memoryEngine({ clock: systemClock, random: systemRandom });
  let failing: { type: string; times: number } | undefined;
  let losing = "";
  let late: { type: string; until: Promise<void> } | undefined;
  const reached = deferred();
  const has = ({ events }: Change, type: string) => events.some((event) => event.type === type);
  const faults = { failed: 0 };
  const engine: Engine = {
    ...inner,
    async commit(tenant, change) {
      if (failing !== undefined && has(change, failing.type) && failing.times > 0) {
        failing.times -= 1;
        faults.failed += 1;
        throw new SallyportError("store_unavailable", { hint: "a test" });
      }
      const result = await inner.commit(tenant, change);
      if (losing !== "" && has(change, losing)) {
        losing = "";
        throw new SallyportError("commit_unknown", { hint: "a test" });
      }
      if (late !== undefined && has(change, late.type)) {
        const { until } = late;
        late = undefined;
        reached.resolve();
        await until;
      }
      return result;
    },
  };
  return {
    engine,
    get failed() {
      return faults.failed;
    },
    failNext(type: string, times: number) {
      failing = { type, times };
    },
    heal() {
      failing = undefined;
    },
    loseAnswerOf(type: string) {
      losing = type;
    },
    delayAnswerOf(type: string, until: Promise<void>) {
      late = { type, until };
    },
    /** Resolves when the commit whose answer is delayed was made. */
    delayed: reached.promise,
  };
}

export interface GatedOptions {
  readonly kind: "plain" | "keyed" | "probed";
  /** Of so many calls the answer is lost after the payment was made. */
  readonly throwsAfter?: number;
  readonly refuses?: boolean;
  readonly waits?: Promise<void>;
  readonly faults?: ReturnType<typeof faultyStore>;
  readonly leaseMs?: number;
  readonly over?: Partial<GateOptions>;
}

/** Keys of payments; a keyed target takes the second one for the first. */
export function effectsOf(effects: readonly string[]): number {
  return new Set(effects).size;
}

export function createGated(options: GatedOptions) {
  const { kind, refuses = false, waits, faults = faultyStore(), leaseMs = 30_000 } = options;
  let losses = options.throwsAfter ?? 0;
  const effects: string[] = [];
  const pay = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: { type: "object" },
    safety: { effect: "external" },
    idempotency: kind === "keyed" ? "keyed" : "none",
    async execute({ idempotencyKey }) {
      if (refuses) return { text: "insufficient funds", isError: true as boolean };
      await waits;
      effects.push(idempotencyKey);
      if (losses > 0) {
        losses -= 1;
        throw new TypeError("fetch failed: socket hang up");
      }
      return { text: "paid" };
    },
    ...(kind === "probed"
      ? {
          probe: ({ idempotencyKey }: { idempotencyKey: string }) =>
            effects.includes(idempotencyKey)
              ? { happened: true as const, result: { text: "paid" } }
              : { happened: false as const },
        }
      : {}),
  });
  const look = defineTool({
    name: "bank.look",
    description: "Looks.",
    input: { type: "object" },
    safety: { effect: "read" },
    execute() {
      throw new Error("no route to the bank");
    },
  });
  const store = createStore(faults.engine, { redact: createRedactor({}) });
  const portOver = () =>
    createGate({
      store,
      tenant: "acme",
      tools: [pay, look],
      validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
      guard: allowAlways,
      policy: {
        version: "1",
        rules: [{ id: "all", effect: "allow", tool: "bank.*", reason: "test" }],
      },
      leaseMs,
      ...options.over,
    });
  const gate = portOver();
  return {
    gate,
    effects,
    session: gate.sessions.open({ id: "s", agent: "agent:x" }),
    secondPort: portOver,
  };
}
