import type { DecisionId } from "../../model/decision.ts";
import type { Instant } from "../../model/instant.ts";
import type { ManualClock } from "../../util/clock.ts";
import type { DecisionStore } from "../decisions.ts";
import type { Capabilities, Engine } from "../engine.ts";
import type { Store } from "../store.ts";

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
   * Only for stores that have this capability; such a case may rely on `again`. It names no row of the behaviour list,
   * because a row counts as proved only where no store skips it.
   */
  readonly needs?: keyof Capabilities;
  run(harness: Harness): Promise<void>;
}

/** For stores that implement the nine calls of `DecisionStore` by themselves. */
export type DecisionCase = Omit<StoreCase<DecisionHarness>, "needs">;
/** For engines. */
export type EngineCase = StoreCase<EngineHarness>;
