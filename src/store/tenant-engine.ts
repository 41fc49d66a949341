import type { EventDraft } from "../model/audit-entry.ts";
import type { JsonObject } from "../util/json.ts";
import type { Change, ChangeResult, Engine, Query, Row, Table } from "./engine.ts";

/** Takes secrets out of what goes into the trail, before it is stored. Shape: callback, at once and inside the transaction. */
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
  const redacted = (draft: EventDraft): EventDraft => {
    const data = redact(tenant, draft.data);
    return data === draft.data ? draft : { ...draft, data };
  };
  return {
    tenant,
    newId: () => engine.newId(),
    commit: ({ steps, events }) =>
      engine.commit(tenant, { steps, events: (rows) => events(rows).map(redacted) }),
    get: (table, id) => engine.get(tenant, table, id),
    find: (table, query) => engine.find(tenant, table, query),
  };
}
