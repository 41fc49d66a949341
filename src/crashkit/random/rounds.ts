import { stopwatch } from "../../util/clock.ts";
import type { Histories } from "../actors/cast.ts";
import { followEvidence } from "../collect-evidence.ts";
import type { Evidence, Invariant } from "../evidence.ts";
import { checkInvariants, type Violation } from "../invariants/table.ts";
import type { Kit } from "../open-kit.ts";

/**
 * The cycles of a round share a tenant: its trail stays short enough to look at all of it after every cycle. When the round
 * is over the next one begins with a new tenant, and the old one is watched until it rests.
 */
export interface Round {
  readonly tenant: string;
  /** Everything that is wrong by now. */
  look(histories: Histories): Promise<readonly Violation[]>;
  /** No more faults are aimed at it. */
  end(): void;
  /**
   * After its end: undefined while something is under way and may be, then the last look at all of it. While others are still
   * killed it may take any time; once all faults have stopped it must come to rest.
   */
  settle(histories: Histories, mayBeUnderWay: boolean): Promise<Settled | undefined>;
}

export interface Settled {
  readonly evidence: Evidence;
  readonly violations: readonly Violation[];
  /** From the end of the round until it rested. */
  readonly restMs: number;
}

export function startRound(tenant: string, kit: Kit): Round {
  const reader = followEvidence(kit.store, tenant);
  let endedAt = 0;
  const { mayRunAlone } = kit;
  const read = async (histories: Histories, isAtRest: boolean) =>
    reader.read({ ...histories, ledger: await kit.effects(), isAtRest, mayRunAlone });
  return {
    tenant,
    look: async (histories) => checkInvariants(await read(histories, false)),
    end() {
      endedAt = stopwatch.now();
    },
    async settle(histories, mayBeUnderWay) {
      const restMs = stopwatch.now() - endedAt;
      const hanging = checkInvariants(await read(histories, true), REST);
      if (hanging.length > 0 && mayBeUnderWay) return undefined;
      // Not what was kept from before, but all of it anew: nothing that was seen once may have changed since.
      const fresh = followEvidence(kit.store, tenant);
      const outside = { ...histories, ledger: await kit.effects(), isAtRest: true, mayRunAlone };
      const evidence = await fresh.read(outside);
      return { evidence, violations: checkInvariants(evidence), restMs };
    },
  };
}

const REST: readonly Invariant["id"][] = ["I14"];
