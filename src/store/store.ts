import type { AuditEntry, ChainHead } from "../model/audit-entry.ts";
import type { ApprovalStore } from "./approvals.ts";
import type { DecisionStore } from "./decisions.ts";
import type { Capabilities } from "./engine.ts";
import type { OperationStore } from "./operations.ts";
import type { RefusalLog } from "./refusals.ts";
import type { KillSwitch } from "./switch.ts";

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
  readonly approvals: ApprovalStore;
  readonly operations: OperationStore;
  readonly refusals: RefusalLog;
  readonly killSwitch: KillSwitch;
  readonly audit: AuditReader;
}

/** Pull view of the trail. Nothing here writes: entries are made only by the transaction that changes the state. */
export interface AuditReader {
  readonly tenant: string;
  /** Entries after `seq` (0 for all), oldest first, contiguous. */
  read(range: { after: number; limit: number }): Promise<readonly AuditEntry[]>;
  head(): Promise<ChainHead>;
}
