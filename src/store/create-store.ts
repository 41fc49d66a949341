import { checkName } from "../model/names.ts";
import { engineApprovals } from "./approvals.ts";
import type { Engine } from "./engine.ts";
import { engineDecisions } from "./engine-decisions.ts";
import { engineOperations } from "./engine-operations.ts";
import { engineRefusals } from "./refusals.ts";
import type { Store, TenantStore } from "./store.ts";
import { engineSwitch } from "./switch.ts";
import { type Redact, tenantEngine } from "./tenant-engine.ts";

/** Puts the nouns over an engine. Authors of other engines call this too. */
export function createStore(engine: Engine, options: { redact: Redact }): Store {
  return {
    name: engine.name,
    capabilities: engine.capabilities,
    tenant(tenant) {
      checkName("tenant", tenant);
      return tenantStore(engine, tenant, options.redact);
    },
    heads: () => engine.heads(),
    onCommit: (listener) => engine.onCommit(listener),
    close: () => engine.close(),
    [Symbol.asyncDispose]: () => engine.close(),
  };
}

function tenantStore(engine: Engine, tenant: string, redact: Redact): TenantStore {
  const own = tenantEngine(engine, tenant, redact);
  return {
    tenant,
    decisions: engineDecisions(own),
    approvals: engineApprovals(own),
    operations: engineOperations(own),
    refusals: engineRefusals(own),
    killSwitch: engineSwitch(own),
    audit: {
      tenant,
      read: (range) => engine.entries(tenant, range),
      head: () => engine.head(tenant),
    },
  };
}
