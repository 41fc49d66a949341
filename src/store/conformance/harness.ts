import { createRedactor } from "../../audit/redact.ts";
import { fromIso, type ManualClock } from "../../util/clock.ts";
import { createStore } from "../create-store.ts";
import { DECISIONS } from "../decision-rows.ts";
import type { Engine } from "../engine.ts";
import type { EngineHarness } from "./case.ts";

export interface HarnessOptions {
  /** Empty, and telling the time by `clock`. */
  readonly engine: Engine;
  readonly clock: ManualClock;
  /** Opens a second engine on the same data. Left out by engines that cannot. */
  readonly again?: () => Promise<Engine>;
  /** Called after the engines were closed. */
  readonly closed?: () => Promise<void>;
}

export const TENANT = "acme";

/** Everything a case needs, made from an engine. */
export function harnessOf({ engine, clock, again, closed }: HarnessOptions): EngineHarness {
  const store = createStore(engine, { redact: createRedactor({}) });
  const others: EngineHarness[] = [];
  return {
    engine,
    store,
    decisions: store.tenant(TENANT).decisions,
    clock,
    backdate: (id, at) => engine.backdate(TENANT, DECISIONS, id, "updated_at", fromIso(at)),
    ...(again === undefined ? {} : { again: second }),
    async close() {
      for (const other of others) await other.close();
      await engine.close();
      await closed?.();
    },
  };

  async function second(): Promise<EngineHarness> {
    if (again === undefined) throw new Error("this engine cannot be opened twice");
    const other = harnessOf({ engine: await again(), clock });
    others.push(other);
    return other;
  }
}
