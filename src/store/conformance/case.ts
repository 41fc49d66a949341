import { createRedactor } from "../../audit/redact.ts";
import type { DecisionId } from "../../model/decision.ts";
import { DECISIONS } from "../../model/decision.ts";
import type { Instant } from "../../model/names.ts";
import { fromIso, type ManualClock } from "../../util/clock.ts";
import type { DecisionStore } from "../decisions.ts";
import type { Capabilities, Engine } from "../engine.ts";
import { createStore, type Store } from "../store.ts";

/**
 * What a case needs to run: a fresh, empty store that tells the time by `clock`, and nothing else. Each case gets a new
 * one, so no case can lean on what another left behind.
 */
export interface DecisionHarness {
  readonly decisions: DecisionStore;
  readonly clock: ManualClock;
  /** Sets the update time of a decision without a trace, so that age can be tested without waiting (S0-97). */
  backdate(id: DecisionId, at: Instant): Promise<void>;
  close(): Promise<void>;
}

/** The same, for those who bring an engine and let Sallyport put the nouns over it. */
export interface EngineHarness extends DecisionHarness {
  readonly engine: Engine;
  readonly store: Store;
  /** A second handle on the same data, as another process would have; closed together with the first. */
  readonly again?: () => Promise<EngineHarness>;
}

/** One promise of the contract. It throws an AssertionError when the promise is broken. */
export interface StoreCase<Harness> {
  readonly name: string;
  /**
   * Only for stores that have this capability; such a case may rely on `again`. It names no row of docs/spec,
   * because a row counts as proved only where no store skips it.
   */
  readonly needs?: keyof Capabilities;
  run(harness: Harness): Promise<void>;
}

/** For stores that implement the nine calls of `DecisionStore` by themselves. */
export type DecisionCase = Omit<StoreCase<DecisionHarness>, "needs">;
/** For engines. */
export type EngineCase = StoreCase<EngineHarness>;

type Test<Harness> = (name: string, run: (harness: Harness) => Promise<void>) => void;

/** Cases as they are written down. */
export function cases<Harness>(
  write: (test: Test<Harness>) => void,
): readonly StoreCase<Harness>[] {
  const all: StoreCase<Harness>[] = [];
  write((name, run) => all.push({ name, run }));
  return all;
}

/** Cases for stores with this capability alone. */
export function casesFor<Harness>(
  needs: keyof Capabilities,
  write: (test: Test<Harness>) => void,
): readonly StoreCase<Harness>[] {
  return cases(write).map((one) => ({ ...one, needs }));
}

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

export interface CaseResult {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it was skipped. */
  readonly reason?: string;
  /** What a failed case threw. */
  readonly error?: unknown;
}

interface Closable {
  close(): Promise<void>;
  readonly engine?: { readonly capabilities: Capabilities };
}

/**
 * Runs cases one after the other, each on a store of its own, and answers with what came out: for use under any test
 * runner and outside of one. Never throws; a store that cannot be opened or closed fails its case.
 */
export async function runCases<Harness extends Closable>(
  open: () => Promise<Harness>,
  cases: readonly StoreCase<Harness>[],
): Promise<readonly CaseResult[]> {
  const results: CaseResult[] = [];
  for (const one of cases) results.push(await runCase(open, one));
  return results;
}

export async function runCase<Harness extends Closable>(
  open: () => Promise<Harness>,
  { name, needs, run }: StoreCase<Harness>,
): Promise<CaseResult> {
  try {
    const harness = await open();
    try {
      if (needs !== undefined && harness.engine?.capabilities[needs] !== true) {
        return { name, outcome: "skipped", reason: `the store is not ${WORDS[needs]}` };
      }
      await run(harness);
    } finally {
      await harness.close();
    }
    return { name, outcome: "passed" };
  } catch (error) {
    return { name, outcome: "failed", error };
  }
}

const WORDS: Readonly<Record<keyof Capabilities, string>> = {
  durable: "durable",
  manyProcesses: "for many processes",
};
