import { checkReason } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { BREAKERS, type ToolBreaker } from "../model/switch.ts";
import type { By } from "./decisions.ts";
import { insertStep, NOW, requireStep, updateStep } from "./engine.ts";
import type { Hold } from "./operations.ts";
import { everyOne, peekRecord, type TenantEngine, writeRecord } from "./tenant-engine.ts";

/** A failure of a tool, for its breaker. */
export interface CountedFailure {
  readonly reason: string;
  readonly sessionId: string;
  readonly actor: string;
  /** With this many failures in a row the breaker opens. */
  readonly threshold: number;
}

/** One breaker for each tool, counted for all processes. Every change is one transaction with its audit entry. */
export interface BreakerStore {
  /** Undefined for a tool that has never failed. */
  get(tool: string): Promise<ToolBreaker | undefined>;
  list(): Promise<readonly ToolBreaker[]>;
  /** One more failure in a row; an open breaker stays open. */
  failed(tool: string, failure: CountedFailure): Promise<void>;
  /** Ends a run of failures; an open breaker stays open. */
  passed(tool: string, by: By): Promise<void>;
  /** Throws not_found, and illegal_transition for one that is not open. */
  close(tool: string, reason: string, by: By): Promise<ToolBreaker>;
  /** Checked in the transaction that starts an effect. */
  holdOf(tool: string): Hold;
}

export function engineBreakers(engine: TenantEngine): BreakerStore {
  const get = (tool: string) => peekRecord(engine, BREAKERS, tool);

  async function failed(tool: string, failure: CountedFailure): Promise<void> {
    const { reason, sessionId: session, actor, threshold } = failure;
    const about = { subject: tool, session, actor, data: { reason: reason.toWellFormed() } };
    const counted = { reason, updatedAt: NOW };
    const oneMore = { ...BREAKERS.cells(counted), failures: { plus: 1 } };
    const isFirstTheLast = threshold <= 1;
    const first = { state: isFirstTheLast ? "open" : "closed", failures: 1, closedBy: "" } as const;
    const last = { state: "closed", failures: { atLeast: threshold - 1 } };
    // The one that reaches the threshold opens it in the same write, so that no crash can come between.
    const tries = [
      { step: updateStep(BREAKERS, tool, last, { ...oneMore, state: "open" }), opens: true },
      { step: updateStep(BREAKERS, tool, { state: "closed" }, oneMore), opens: false },
      {
        step: insertStep(BREAKERS, tool, BREAKERS.row({ ...first, ...counted })),
        opens: isFirstTheLast,
      },
    ];
    for (const { step, opens } of tries) {
      const event = { type: opens ? "breaker.opened" : "breaker.counted", ...about };
      if ((await writeRecord(engine, BREAKERS, step, event)) !== undefined) return;
    }
    // Open by now; or another process inserted the row meanwhile, and now it can be updated.
    if ((await get(tool))?.state === "closed") await failed(tool, failure);
  }

  return {
    get,
    failed,
    list: () => everyOne(engine, BREAKERS, {}, BREAKERS.read),
    async passed(tool, { actor }) {
      const set = { failures: 0, updated_at: NOW };
      const step = updateStep(BREAKERS, tool, { state: "closed", failures: { atLeast: 1 } }, set);
      const event = { type: "breaker.reset", subject: tool, session: "", actor, data: {} };
      await writeRecord(engine, BREAKERS, step, event);
    },
    async close(tool, reason, { actor }) {
      checkName("actor", actor);
      checkReason(reason);
      const data = { reason: reason.toWellFormed() };
      const event = { type: "breaker.closed", subject: tool, session: "", actor, data };
      const set = BREAKERS.cells({ reason, closedBy: actor, updatedAt: NOW });
      const step = updateStep(
        BREAKERS,
        tool,
        { state: "open" },
        { ...set, state: "closed", failures: 0 },
      );
      const closed = await writeRecord(engine, BREAKERS, step, event);
      if (closed !== undefined) return closed;
      if ((await get(tool)) === undefined) throw new SallyportError("not_found", { id: tool });
      const hint = "The breaker of this tool is closed already.";
      throw new SallyportError("illegal_transition", { id: tool, from: "closed", hint });
    },
    holdOf: (tool) => ({
      refusal: "circuit_open",
      step: requireStep(BREAKERS, tool, { state: "closed" }, "holds"),
    }),
  };
}
