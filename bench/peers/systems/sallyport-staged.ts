import type { Store } from "../../../src/store/store.ts";
import type { Code } from "../../checkout.ts";
import type { Effect, Peer, Refund } from "../peer.ts";

const VERDICT = { score: 1, severity: "warn", reason: "fits", policyVersion: "2026-11" } as const;
const YES = { ...VERDICT, approved: true };

/** The path for platforms that execute by themselves: staged, reviewed twice, and reported back by the executor. */
export function staged(code: Code, store: Store, effect: Effect): Omit<Peer, "close"> {
  const { decisions } = store.tenant("peers");
  const staging = code.createStaging({
    store: decisions,
    tech: { name: "schema", review: () => ({ ...YES, validator: "schema" }) },
    // The business tier is the person: reviewing is passing their yes on.
    business: { name: "person:ada", review: () => ({ ...YES, validator: "person:ada" }) },
    guard: code.allowAlways,
  });
  let count = 0;
  return {
    async propose(refund) {
      count += 1;
      const raw = new TextEncoder().encode(JSON.stringify(refund));
      const { id } = await staging.stage(`session-${process.pid}-${count}`, {
        sourceTool: "billing.refund",
        raw,
        metadata: {},
      });
      await staging.validateTech(id);
      return id;
    },
    async approve(id) {
      try {
        const { diff } = await staging.validateBiz(id);
        const refund = JSON.parse(new TextDecoder().decode(diff.raw)) as Refund;
        const told = await effect.run(refund);
        await staging.markExecuted(id, { told });
        return "executed";
      } catch (error) {
        if (code.isSallyportError(error, "illegal_transition")) return "already answered";
        throw error;
      }
    },
    /** It stays approved and is listed as stuck; nothing repeats it. */
    recover: async () => "nothing, still open",
  };
}
