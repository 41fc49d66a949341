import type { Decision } from "../model/decision.ts";
import type { Operation } from "../model/operation.ts";
import { DECISIONS, decisionOf } from "./decision-rows.ts";
import { NOW } from "./engine.ts";
import { OPERATIONS, operationOf } from "./operation-rows.ts";
import { type Found, pageOf } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/**
 * What processes that went away may have left behind, in pages: recovery goes through all of it, however much of it cannot be
 * carried on. All ages are by the store's clock.
 */
export interface LeftBehind {
  /** Started operations whose lease ran out. */
  operations(page: Page): Promise<Found<Operation>>;
  /** Approved decisions, whoever staged them. */
  approved(forAtLeastMs: number, page: Page): Promise<Found<Decision>>;
  /** Calls that the port staged and nobody was asked about; what others staged is not among them. */
  unasked(forAtLeastMs: number, page: Page): Promise<Found<Decision>>;
}

export interface Page {
  /** 0 for the beginning, or `next` of the page before. */
  readonly after: number;
  readonly limit: number;
}

export function engineLeftBehind(engine: TenantEngine): LeftBehind {
  return {
    operations({ after: afterOrd, limit }) {
      const where = { status: "started", lease_until: { atMost: NOW } };
      return pageOf(engine, OPERATIONS, { where, afterOrd, limit }, operationOf);
    },
    approved(forAtLeastMs, { after: afterOrd, limit }) {
      const where = { state: "approved", updated_at: { atMost: { nowPlusMs: -forAtLeastMs } } };
      return pageOf(engine, DECISIONS, { where, afterOrd, limit }, decisionOf);
    },
    unasked(forAtLeastMs, { after: afterOrd, limit }) {
      const before = { atMost: { nowPlusMs: -forAtLeastMs } };
      const where = { unasked: before, updated_at: before };
      return pageOf(engine, DECISIONS, { where, afterOrd, limit }, decisionOf);
    },
  };
}
