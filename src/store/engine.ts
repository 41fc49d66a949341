import type { AuditEntry, ChainHead } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import type { Cell, NowPlus, Row, Values } from "../model/field.ts";
import type { Table } from "../model/record.ts";
import type { JsonObject } from "../util/json.ts";

export type { Cell, NowPlus, Row, Value, Values } from "../model/field.ts";
export { NOW } from "../model/field.ts";
export type { Table } from "../model/record.ts";

/**
 * What a database must be able to do for Sallyport. Everything above (decisions, interactions, operations, tasks) is
 * written once, over these few operations, so every engine behaves alike and a new one is small. `engineCases` of the
 * conformance suite is this contract in runnable form. Shape: callback; the store waits for every call.
 */
export interface Engine {
  readonly name: string;
  readonly capabilities: Capabilities;
  /** A fresh id, unique in this store and opaque to callers. */
  newId(): string;
  /**
   * Writes all steps and all events of a change in one transaction, or nothing. Changes asked for at the same time share
   * a transaction, each keeping its own answer; what `isUrgent` names may overtake the others. Throws store_unavailable,
   * store_busy, store_closed, store_rolled_back, commit_unknown.
   */
  commit(tenant: string, change: Change): Promise<ChangeResult>;
  get(tenant: string, table: Table, id: string): Promise<Row | undefined>;
  find(tenant: string, table: Table, query: Query): Promise<readonly Row[]>;
  /** The trail after `seq`, oldest first, at most `limit` entries. */
  entries(tenant: string, range: { after: number; limit: number }): Promise<readonly AuditEntry[]>;
  /** The end of one tenant's chain, `emptyHead` when there is none. */
  head(tenant: string): Promise<ChainHead>;
  /** Every tenant that ever wrote, with the end of its chain. */
  heads(): Promise<readonly ChainHead[]>;
  /** The time that decides about leases and deadlines, in epoch milliseconds: the database's own. */
  now(): Promise<number>;
  /** Shape: push, some time after a commit by any process, with no promise that it comes: polling must always suffice. */
  onCommit(listener: () => void): () => void;
  /** For tests only: sets a time column without a trace. Does nothing for an unknown id. */
  backdate(tenant: string, table: Table, id: string, column: string, at: number): Promise<void>;
  /**
   * Set once this process has found that a trail does not hold what it held before, as after a failover to a standby that
   * lagged: `store_rolled_back`. While it is set the engine refuses every change of this tenant that begins an effect, until
   * another epoch begins. Engines whose database cannot lose what it acknowledged leave it out.
   */
  lostTail?(tenant: string): SallyportError | undefined;
  close(): Promise<void>;
}

export interface Capabilities {
  /** Survives the death of the process. */
  readonly durable: boolean;
  /** May be written by several processes at once. */
  readonly manyProcesses: boolean;
}

/** All steps hold and are written together with all events, or nothing happens. Put the step that decides first, and name a record only once. */
export interface Change {
  readonly steps: readonly Step[];
  /** What the steps bring about, as data like the steps: a change can be handed to another thread. */
  readonly events: readonly EventPlan[];
}

/** An audit entry to be; where it depends on the rows that the steps leave behind it says so. */
export interface EventPlan {
  readonly type: string;
  readonly subject: string | Left;
  readonly session: string | Left;
  readonly actor: string;
  readonly data: JsonObject;
  /**
   * SHA-256 of contents that the entry stands for, by the name of the field. They become proofs under the tenant's key before
   * an engine sees the plan: see `content-proof.ts`.
   */
  readonly hashes?: Readonly<Record<string, string>>;
  /** Facts from the rows, put into `data` under these names. */
  readonly facts?: Readonly<Record<string, Left>>;
  /** Told once for every row that a `take` took; then `left` speaks of that row. */
  readonly each?: true;
}

/** What a step leaves behind in one column; the first step when none is named. */
export interface Left {
  readonly left: string;
  readonly step?: number;
}

export type Step =
  | { readonly op: "insert"; readonly table: Table; readonly id: string; readonly row: Values }
  | {
      readonly op: "update";
      readonly table: Table;
      readonly id: string;
      readonly where: Conditions;
      readonly set: Values;
    }
  /** Looks and changes nothing: the record must look like this when the change is written. */
  | {
      readonly op: "require";
      readonly table: Table;
      readonly id: string;
      readonly where: Conditions;
      /** What it means when there is no such record; then the step leaves an empty row behind. */
      readonly absent: "holds" | "refuses";
    }
  /** Leaves behind the row as it was. */
  | {
      readonly op: "delete";
      readonly table: Table;
      readonly id: string;
      readonly where: Conditions;
    }
  /**
   * The best rows that look like this, at most `limit`, all changed alike. It holds when there is at least one, and it is
   * the only step of its change. No row is taken twice, however many take at once.
   */
  | {
      readonly op: "take";
      readonly table: Table;
      readonly where: Conditions;
      readonly order: Order;
      readonly limit: number;
      readonly set: Values;
    };

/** Best first; nothing is less than anything, text goes by its bytes, and of equals the older one is better. */
export type Order = readonly { readonly column: string; readonly down?: true }[];

export type Conditions = Readonly<Record<string, Cell | Comparison>>;
export type Comparison =
  | { readonly atLeast: number | NowPlus }
  | { readonly atMost: number | NowPlus }
  | { readonly oneOf: readonly string[] };

export type ChangeResult =
  | {
      readonly committed: true;
      /** The transaction's time, epoch milliseconds. */
      readonly at: number;
      /** The row each step left behind or looked at; the rows that a `take` took, best first. */
      readonly rows: readonly Row[];
      /** Number of the last audit entry of this change. */
      readonly seq: number;
      /** And its hash, where the engine has it at hand: as many entries are not the same entries. */
      readonly hash?: string;
    }
  | {
      readonly committed: false;
      /** Index of the step that did not hold, and the row it met (undefined: there is none). */
      readonly step: number;
      readonly current: Row | undefined;
    };

export interface Query {
  readonly where?: Conditions;
  /** Only rows inserted after this one; for paging. */
  readonly afterOrd?: number;
  /** Only rows inserted before this one; for paging backwards. */
  readonly beforeOrd?: number;
  /** The order of insertion, oldest first, or turned around. */
  readonly newestFirst?: true;
  readonly limit: number;
}

/** A take is alone in its change and takes a whole number of rows. Throws invalid_input. */
export function checkTake({ steps }: Change): void {
  for (const step of steps) {
    if (step.op !== "take") continue;
    if (steps.length === 1 && Number.isSafeInteger(step.limit) && step.limit > 0) continue;
    const hint = "Let a take be the only step of its change, with a limit of one or more.";
    throw new SallyportError("invalid_input", { what: "change", hint });
  }
}

/** Who wants to hear that something was committed. A listener that throws must not disturb the commit or the others. */
export class CommitListeners {
  readonly #listeners = new Set<() => void>();

  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch {
        // The hint is best effort by contract: whoever needs certainty polls.
      }
    }
  }
}

/** A step with the event that tells of it, to be written along with others in one transaction. */
export interface Along {
  readonly step: Step;
  /** Given the step's place in the change. */
  readonly event?: (step: number) => EventPlan;
}

/** One change of several: all of them hold and are written, or none. */
export function along(parts: readonly Along[]): Change {
  return {
    steps: parts.map(({ step }) => step),
    events: parts.flatMap(({ event }, index) => (event === undefined ? [] : [event(index)])),
  };
}
