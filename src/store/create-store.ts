import { checkName } from "../model/names.ts";
import type { Clock } from "../util/clock.ts";
import { type Random, systemRandom } from "../util/random.ts";
import { engineClockMark } from "./clock-watch.ts";
import { ContentKeys } from "./content-proof.ts";
import { engineDecisions } from "./decisions.ts";
import { engineDelegations } from "./delegations.ts";
import type { Engine } from "./engine.ts";
import { engineOperations } from "./engine-operations.ts";
import { engineTasks } from "./engine-tasks.ts";
import { engineEpoch } from "./epoch.ts";
import { engineFlowStates } from "./flow-states.ts";
import { engineGateLedger, engineRefusals } from "./gate-ledger.ts";
import { engineGrants } from "./grants.ts";
import { engineHttpKeys } from "./http-keys.ts";
import { engineInteractions } from "./interactions.ts";
import { engineLeftBehind } from "./left-behind.ts";
import { engineReviewers } from "./reviewers.ts";
import { engineRuns } from "./runs.ts";
import { engineSessions } from "./sessions.ts";
import { engineStandingRules } from "./standing-rules.ts";
import type { Store, TenantStore } from "./store.ts";
import { engineSwitch } from "./switch.ts";
import { type Redact, tenantEngine } from "./tenant-engine.ts";
import { engineTokens } from "./tokens.ts";

export interface StoreOptions {
  readonly redact: Redact;
  /** Measures how long searches take; the machine's own unless told otherwise. */
  readonly stopwatch?: Clock;
  /** Makes the keys under which the log proves contents; the machine's own unless told otherwise. */
  readonly random?: Random;
}

/** Puts the nouns over an engine. Authors of other engines call this too. */
export function createStore(engine: Engine, options: StoreOptions): Store {
  const keys = new ContentKeys(engine, options.random ?? systemRandom, options.stopwatch);
  return {
    name: engine.name,
    capabilities: engine.capabilities,
    tenant(tenant) {
      checkName("tenant", tenant);
      return tenantStore(engine, tenant, { ...options, keys });
    },
    heads: () => engine.heads(),
    onCommit: (listener) => engine.onCommit(listener),
    close: () => engine.close(),
    [Symbol.asyncDispose]: () => engine.close(),
  };
}

function tenantStore(
  engine: Engine,
  tenant: string,
  { redact, stopwatch, keys }: StoreOptions & { readonly keys: ContentKeys },
): TenantStore {
  const own = tenantEngine(engine, tenant, redact, keys);
  return {
    tenant,
    decisions: engineDecisions(own),
    interactions: engineInteractions(own),
    operations: engineOperations(own),
    leftBehind: engineLeftBehind(own),
    refusals: engineRefusals(own),
    standingRules: engineStandingRules(own),
    tasks: engineTasks(own, () => engine.now(), stopwatch),
    delegations: engineDelegations(own),
    grants: engineGrants(own),
    runs: engineRuns(own),
    gateLedger: engineGateLedger(own),
    flowStates: engineFlowStates(own),
    killSwitch: engineSwitch(own),
    epoch: engineEpoch(own),
    clock: engineClockMark(own, { head: () => engine.head(tenant), now: () => engine.now() }),
    reviewers: engineReviewers(own),
    tokens: engineTokens(own),
    sessions: engineSessions(own),
    httpKeys: engineHttpKeys(own),
    contentProof: () => keys.find(tenant),
    audit: {
      tenant,
      read: (range) => engine.entries(tenant, range),
      head: () => engine.head(tenant),
    },
  };
}
