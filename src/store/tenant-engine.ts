import { SallyportError } from "../model/errors.ts";
import type { JsonObject } from "../util/json.ts";
import type { Change, ChangeResult, Engine, EventPlan, Query, Row, Step, Table } from "./engine.ts";
import { isOpenFact } from "./event-plans.ts";

/** Takes secrets out of what goes into the trail, before it is handed to the engine. Shape: callback, at once. */
export type Redact = (tenant: string, data: JsonObject) => JsonObject;

/** An engine seen by one tenant: the nouns are written over this and cannot name another tenant by mistake. */
export interface TenantEngine {
  readonly tenant: string;
  newId(): string;
  commit(change: Change): Promise<ChangeResult>;
  get(table: Table, id: string): Promise<Row | undefined>;
  find(table: Table, query: Query): Promise<readonly Row[]>;
}

export function tenantEngine(engine: Engine, tenant: string, redact: Redact): TenantEngine {
  function redacted(plan: EventPlan, steps: readonly Step[]): EventPlan {
    for (const [name, fact] of Object.entries(plan.facts ?? {})) {
      if (!isOpenFact(fact, steps)) throw new TypeError(`${name} might hold a secret`);
    }
    const data = redact(tenant, plan.data);
    return data === plan.data ? plan : { ...plan, data };
  }
  return {
    tenant,
    newId: () => engine.newId(),
    commit({ steps, events }) {
      try {
        return engine.commit(tenant, { steps, events: safely(events, steps) });
      } catch (error) {
        return Promise.reject(error);
      }
    },
    get: (table, id) => engine.get(tenant, table, id),
    find: (table, query) => engine.find(tenant, table, query),
  };

  function safely(events: readonly EventPlan[], steps: readonly Step[]): readonly EventPlan[] {
    try {
      return events.map((plan) => redacted(plan, steps));
    } catch (cause) {
      const hint = "What happened could not be put into the trail, so nothing was written.";
      throw new SallyportError("invalid_input", { what: "event", hint }, cause);
    }
  }
}
