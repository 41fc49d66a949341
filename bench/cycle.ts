import { allowAlways, createStaging } from "../src/gate/review.ts";
import type { Store } from "../src/store/store.ts";
import type { Work } from "./rounds.ts";
import { yes } from "./yes.ts";

const raw = new TextEncoder().encode(JSON.stringify({ invoice: "INV-2041", cents: 12_900 }));

/**
 * The product's unit of work: stage, technical review, business review, executed; four transitions, each with its audit
 * entry, by `sessions` callers at the same time.
 */
export function cycles(store: Store, sessions: number, total: number): Work {
  const { decisions } = store.tenant("bench");
  const staging = createStaging({
    store: decisions,
    tech: yes("schema"),
    business: yes("limits"),
    guard: allowAlways,
  });
  let started = 0;
  const session = async (name: string, count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) {
      const { id } = await staging.stage(name, {
        sourceTool: "billing.refund",
        raw,
        metadata: { amount: 129, customer: "C-77" },
      });
      await staging.validateTech(id);
      await staging.validateBiz(id);
      await staging.markExecuted(id, { refund: "R-1" });
    }
  };
  return async () => {
    const each = Math.ceil(total / sessions);
    started += 1;
    const names = Array.from({ length: sessions }, (_, n) => `session-${started}-${n}`);
    await Promise.all(names.map((name) => session(name, each)));
    return each * sessions;
  };
}
