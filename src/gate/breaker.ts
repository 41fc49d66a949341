// The breaker of each tool: calls that a review refuses, that fail or whose outcome is lost are counted, and after so many in a
// row the tool is not called any more, until a person closes the breaker. Undos are not stopped, and reads do not count.

import { SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import type { ToolBreaker } from "../model/switch.ts";
import type { OperationStore, Outcome } from "../store/operations.ts";
import type { TenantStore } from "../store/store.ts";
import { errorText } from "../util/error-text.ts";
import type { GateContext } from "./context.ts";
import { type Person, whyNot } from "./inbox.ts";

export interface BreakerTerms {
  /** So many failures of a tool in a row open its breaker; 5 when left out. */
  readonly threshold?: number;
}

/** The breakers of a gate, for people. */
export interface Breakers {
  /** Of every tool that has failed at least once. */
  list(): Promise<readonly ToolBreaker[]>;
  /** Throws not_found, not_allowed for a person who may not decide, illegal_transition for one that is not open. */
  close(tool: string, how: { readonly by: string; readonly reason: string }): Promise<ToolBreaker>;
}

export function breakersOf(
  store: Pick<TenantStore, "breakers">,
  people: readonly Person[] | undefined,
): Breakers {
  return {
    list: () => store.breakers.list(),
    async close(tool, { by, reason }) {
      const hint = whyNot(by, { chain: [], assignedTo: "" }, people);
      if (hint !== undefined) throw new SallyportError("not_allowed", { id: tool, by, hint });
      return store.breakers.close(tool, reason, { actor: by });
    },
  };
}

/** Why a call of this tool is denied; undefined while its breaker is closed. The intent checks it again. */
export async function openBreaker(
  store: Pick<TenantStore, "breakers">,
  tool: string,
): Promise<Finding | undefined> {
  const found = await store.breakers.get(tool);
  return found?.state === "open" ? openFinding(found) : undefined;
}

function openFinding({ id, failures }: ToolBreaker): Finding {
  const message = `circuit_open: "${id}" was not called, because ${failures} of its calls in a row were refused in review or failed. Change the plan; a person has to close its breaker first.`;
  return { severity: "hard-deny", policy: "breaker", message };
}

/** A review refused calls of these tools. */
export async function countRefusal(
  { store, breaker }: Pick<GateContext, "store" | "breaker">,
  tools: readonly string[],
  how: { readonly reason: string; readonly sessionId: string; readonly actor: string },
): Promise<void> {
  if (breaker === undefined) return;
  for (const tool of new Set(tools)) {
    await counted(() => store.breakers.failed(tool, { ...how, ...breaker }));
  }
}

/**
 * The store of a gate with breakers: no effect starts while the breaker of its tool is open, and every outcome counts, whoever
 * reports it. An outcome that was recorded stays recorded when counting it fails.
 */
export function withBreakers(
  store: TenantStore,
  breaker: Required<BreakerTerms> | undefined,
): TenantStore {
  if (breaker === undefined) return store;
  const { operations, breakers } = store;
  const { threshold } = breaker;

  async function count(
    { tool, effect, undoOf, sessionId }: Counted,
    outcome: Outcome,
    actor: string,
  ): Promise<void> {
    if (undoOf !== "" || effect === "read") return;
    if (outcome.status === "success") return counted(() => breakers.passed(tool, { actor }));
    const failure = { reason: outcome.error, sessionId, actor, threshold };
    return counted(() => breakers.failed(tool, failure));
  }

  const around: OperationStore = {
    ...operations,
    start(intent) {
      const { tool, undoOf, effect, holds = [] } = intent;
      if (undoOf !== "" || effect === "read") return operations.start(intent);
      return operations.start({ ...intent, holds: [...holds, breakers.holdOf(tool)] });
    },
    async settle(id, settlement) {
      const answer = await operations.settle(id, settlement);
      if (answer.settled) await count(answer.operation, settlement.outcome, settlement.actor);
      return answer;
    },
    async report(intent, report) {
      const answer = await operations.report(intent, report);
      if (answer.settled) await count(answer.operation, report.outcome, intent.actor);
      return answer;
    },
  };
  return { ...store, operations: { ...operations, ...around } };
}

interface Counted {
  readonly tool: string;
  readonly effect: string;
  readonly undoOf: string;
  readonly sessionId: string;
}

async function counted(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    process.emitWarning(
      `A breaker could not count: ${errorText(error)}`,
      "SallyportBreakerWarning",
    );
  }
}
