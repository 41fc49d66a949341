import type { AuditEntry, ChainHead } from "../model/audit-entry.ts";
import type { ClockMark } from "./clock-watch.ts";
import type { ContentProof } from "./content-proof.ts";
import type { DecisionStore } from "./decisions.ts";
import type { DelegationStore } from "./delegations.ts";
import type { Capabilities } from "./engine.ts";
import type { EpochStore } from "./epoch.ts";
import type { DurableFlowStates } from "./flow-states.ts";
import type { GateLedger, RefusalLog } from "./gate-ledger.ts";
import type { GrantStore } from "./grants.ts";
import type { HttpKeyStore } from "./http-keys.ts";
import type { InteractionStore } from "./interactions.ts";
import type { LeftBehind } from "./left-behind.ts";
import type { OperationStore } from "./operations.ts";

import type { ReviewerStore } from "./reviewers.ts";
import type { RunStore } from "./runs.ts";
import type { SessionStore } from "./sessions.ts";
import type { StandingRuleStore } from "./standing-rules.ts";
import type { KillSwitch } from "./switch.ts";
import type { TaskStore } from "./tasks.ts";
import type { TokenStore } from "./tokens.ts";

/**
 * The one meeting point of all parts and processes. Made by `memoryStore`, `sqliteStore` or `postgresStore`. Shape: callback;
 * all parts wait for what it says.
 */
export interface Store extends AsyncDisposable {
  readonly name: string;
  readonly capabilities: Capabilities;
  /** Everything is reached through a tenant, so that no query can forget to name one. */
  tenant(tenant: string): TenantStore;
  /** Every tenant that ever wrote, with the end of its chain. */
  heads(): Promise<readonly ChainHead[]>;
  /** Shape: push. A hint that something was committed, by any process; it may be late or missing, so poll as well. */
  onCommit(listener: () => void): () => void;
  close(): Promise<void>;
}

export interface TenantStore {
  readonly tenant: string;
  readonly decisions: DecisionStore;
  readonly interactions: InteractionStore;
  readonly operations: OperationStore;
  readonly leftBehind: LeftBehind;
  readonly refusals: RefusalLog;
  readonly standingRules: StandingRuleStore;
  /** The shared task list's store: `createTaskList({ store: store.tenant(name).tasks })`. */
  readonly tasks: TaskStore;
  readonly delegations: DelegationStore;
  readonly grants: GrantStore;
  readonly runs: RunStore;
  readonly gateLedger: GateLedger;
  /** What `createFlow` keeps its snapshots in. */
  readonly flowStates: DurableFlowStates;
  readonly killSwitch: KillSwitch;
  readonly epoch: EpochStore;
  readonly clock: ClockMark;
  readonly reviewers: ReviewerStore;
  readonly tokens: TokenStore;
  readonly sessions: SessionStore;
  readonly httpKeys: HttpKeyStore;
  /** To compare records with the log; undefined while the log proves no content. Nothing of it goes to a caller. */
  contentProof(): Promise<ContentProof | undefined>;
  readonly audit: AuditReader;
}

/** Pull view of the trail. Nothing here writes: entries are made only by the transaction that changes the state. */
export interface AuditReader {
  readonly tenant: string;
  /** Entries after `seq` (0 for all), oldest first, contiguous. */
  read(range: { after: number; limit: number }): Promise<readonly AuditEntry[]>;
  head(): Promise<ChainHead>;
}
