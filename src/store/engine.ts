import { isDeepStrictEqual } from "node:util";
import type { AuditEntry, ChainHead } from "../model/audit-entry.ts";
import { SallyportError } from "../model/errors.ts";
import { OPERATIONS } from "../model/operation.ts";
import type { Cell, NowPlus, Row, Table, Value, Values } from "../model/record.ts";
import { EPOCH, SWITCHES } from "../model/switch.ts";
import { invariant } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { CallIndex } from "./call-index.ts";

export type { Cell, NowPlus, Row, Table, Value, Values } from "../model/record.ts";
export { NOW } from "../model/record.ts";

/**
 * What a database must offer to Sallyport. Decisions, interactions, operations and tasks are implemented once, over these
 * few operations, so every engine behaves the same and a new one is small. `engineCases` of the conformance suite is this
 * contract in runnable form. Shape: callback; the store waits for every call.
 */
export interface Engine {
  readonly name: string;
  readonly capabilities: Capabilities;
  /** A fresh id, unique in this store and opaque to callers. */
  newId(): string;
  /**
   * Writes all steps and all events of a change in one transaction, or nothing. Concurrent changes share a transaction, each
   * with its own result; urgent ones (`isUrgent`) may overtake the others. Throws store_unavailable, store_busy,
   * store_closed, store_rolled_back, commit_unknown.
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
  /** The time that decides about leases and deadlines, in epoch milliseconds: the database's own. Throws clock_wrong. */
  now(): Promise<number>;
  /** Shape: push, some time after a commit by any process. Best effort: callers must also poll. */
  onCommit(listener: () => void): () => void;
  /** For tests only: sets a time column without a trace. Does nothing for an unknown id. */
  backdate(tenant: string, table: Table, id: string, column: string, at: number): Promise<void>;
  /**
   * The error `store_rolled_back` once this process has found that a trail lost entries, for example after a failover to a
   * lagging standby. Until a new epoch begins, the engine refuses every change of this tenant that starts an effect. Engines
   * whose database cannot lose acknowledged commits omit it.
   */
  lostTail?(tenant: string): SallyportError | undefined;
  /** Where the index of calls is kept. An engine without one has it in the memory of the process. */
  callIndex?(tenant: string): CallIndex;
  close(): Promise<void>;
}

export interface Capabilities {
  /** Survives the death of the process. */
  readonly durable: boolean;
  /** Several processes may write concurrently. */
  readonly manyProcesses: boolean;
}

/** If all steps hold, they are written together with all events; otherwise nothing is. Put the deciding step first, and name each record only once. */
export interface Change {
  readonly steps: readonly Step[];
  /** What the steps cause. Plain data like the steps, so that a change can be sent to another thread. */
  readonly events: readonly EventPlan[];
}

/** A planned audit entry. Values that depend on the rows of the steps are references to them (`Left`). */
export interface EventPlan {
  readonly type: string;
  readonly subject: string | Left;
  readonly session: string | Left;
  readonly actor: string;
  readonly data: JsonObject;
  /**
   * SHA-256 of contents that the entry does not show, by the name of the field. They become proofs under the tenant's key
   * before an engine gets the plan: see `tenant-engine.ts`.
   */
  readonly hashes?: Readonly<Record<string, string>>;
  /** Facts from the rows, put into `data` under these names. */
  readonly facts?: Readonly<Record<string, Left>>;
  /** One entry for every row that a `take` took; `left` then refers to that row. */
  readonly each?: true;
}

/** The value of column `left` in the row of a step, after the step. Default: the first step. */
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
  /** Changes nothing. The record must match when the change is written. */
  | {
      readonly op: "require";
      readonly table: Table;
      readonly id: string;
      readonly where: Conditions;
      /** Whether the step holds when there is no such record; its row is then empty. */
      readonly absent: "holds" | "refuses";
    }
  /** Its row is the one that was deleted. */
  | {
      readonly op: "delete";
      readonly table: Table;
      readonly id: string;
      readonly where: Conditions;
    }
  /**
   * Changes the best rows that match, at most `limit`, all in the same way. It holds when there is at least one, and it is
   * the only step of its change. Concurrent takes never get the same row.
   */
  | {
      readonly op: "take";
      readonly table: Table;
      readonly where: Conditions;
      readonly order: SortOrder;
      readonly limit: number;
      readonly set: Values;
    };

export function insertStep(table: Table, id: string, row: Values) {
  return { op: "insert", table, id, row } as const satisfies Step;
}

export function updateStep(table: Table, id: string, where: Conditions, set: Values) {
  return { op: "update", table, id, where, set } as const satisfies Step;
}

export function deleteStep(table: Table, id: string, where: Conditions) {
  return { op: "delete", table, id, where } as const satisfies Step;
}

/** By default the step does not hold when there is no such record. */
export function requireStep(
  table: Table,
  id: string,
  where: Conditions,
  absent: "holds" | "refuses" = "refuses",
) {
  return { op: "require", table, id, where, absent } as const satisfies Step;
}

/** Sort order, best row first. NULL sorts first, text compares bytewise, ties go to the older row. */
export type SortOrder = readonly { readonly column: string; readonly down?: true }[];

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
      /** The row of each step, after the step; the rows that a `take` took, best first. */
      readonly rows: readonly Row[];
      /** Number of the last audit entry of this change. */
      readonly seq: number;
      /** Its hash, if the engine knows it: the same number of entries does not mean the same entries. */
      readonly hash?: string;
    }
  | {
      readonly committed: false;
      /** Index of the step that did not hold, and the current row (undefined if there is none). */
      readonly step: number;
      readonly current: Row | undefined;
    };

export interface Query {
  readonly where?: Conditions;
  /** Only rows inserted after this one; for paging. */
  readonly afterOrd?: number;
  /** Only rows inserted before this one; for paging backwards. */
  readonly beforeOrd?: number;
  /** Reverses the order of insertion, which is oldest first. */
  readonly newestFirst?: true;
  readonly limit: number;
}

/** A take must be the only step of its change, with a positive integer as its limit. Throws invalid_input. */
export function checkTake({ steps }: Change): void {
  for (const step of steps) {
    if (step.op !== "take") continue;
    if (steps.length === 1 && Number.isSafeInteger(step.limit) && step.limit > 0) continue;
    const hint = "Make the take the only step of its change, with a limit of one or more.";
    throw new SallyportError("invalid_input", { what: "change", hint });
  }
}

/** Listeners for commits. One that throws must not affect the commit or the other listeners. */
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
        // The hint is best effort by contract: callers that need certainty poll.
      }
    }
  }
}

/** A step with its event, to be written in one transaction with others. */
export interface Along {
  readonly step: Step;
  /** Receives the index of the step in the change. */
  readonly event?: (step: number) => EventPlan;
}

/**
 * Joins several into one change: all of them hold and are written, or none. Parts about the same record, made to be written one after
 * the other, become one step at the place of the first: what a later part sets counts, and it must hold for what the earlier
 * ones leave behind. Their events stay as they are, in order; what one reads from the record is what the last part left.
 */
export function along(parts: readonly Along[]): Change {
  const steps: Step[] = [];
  const places = new Map<string, number>();
  const events: EventPlan[] = [];
  for (const { step, event } of parts) {
    const record = "id" in step ? `${step.table.name} ${step.id}` : "";
    const known = record === "" ? undefined : places.get(record);
    const place = known ?? steps.length;
    steps[place] = known === undefined ? step : afterEachOther(steps[known], step);
    if (record !== "") places.set(record, place);
    if (event !== undefined) events.push(event(place));
  }
  return { steps, events };
}

/** Two steps about one record as one. Throws when the second could not hold after the first, which is a mistake in this program. */
function afterEachOther(first: Step | undefined, second: Step): Step {
  const isWritten = first?.op === "insert" || first?.op === "update";
  const goesOn = second.op === "update" || second.op === "require";
  invariant(isWritten && goesOn, "a record is written, and then changed or required");
  const written = first.op === "insert" ? first.row : first.set;
  const where: Record<string, Cell | Comparison> = first.op === "insert" ? {} : { ...first.where };
  for (const [column, test] of Object.entries(second.where)) {
    const isSet = first.op === "insert" || Object.hasOwn(written, column);
    const isKept = isSet
      ? keeps(written[column] ?? null, test)
      : !Object.hasOwn(where, column) || isDeepStrictEqual(where[column], test);
    invariant(isKept, `${column} of ${first.table.name} ${first.id} does not fit its next step`);
    if (!isSet) where[column] = test;
  }
  const set = second.op === "update" ? second.set : {};
  invariant(!Object.values(set).some(isPlus), "a record that is counted up has a step of its own");
  return first.op === "insert"
    ? { ...first, row: { ...first.row, ...set } }
    : { ...first, where, set: { ...first.set, ...set } };
}

/** Whether a value that is about to be written passes a test; what depends on the time of the write does not. */
function keeps(value: Value, test: Cell | Comparison): boolean {
  return !isNowPlus(value) && !isPlus(value) && holdsFor(value, test, Number.NaN);
}

/** The meaning of conditions and values in plain code. The memory engine uses it; the SQL engines must agree with it. */
export function holds(row: Row, where: Conditions, now: number): boolean {
  return Object.entries(where).every(([column, test]) => holdsFor(row[column] ?? null, test, now));
}

function holdsFor(cell: Cell, test: Cell | Comparison, now: number): boolean {
  if (test instanceof Uint8Array) return cell instanceof Uint8Array && sameBytes(cell, test);
  if (!isComparison(test)) return cell === test;
  if ("oneOf" in test) return typeof cell === "string" && test.oneOf.includes(cell);
  if (typeof cell !== "number") return false;
  return "atLeast" in test
    ? cell >= resolveNumber(test.atLeast, now)
    : cell <= resolveNumber(test.atMost, now);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

export function isComparison(test: Cell | Comparison): test is Comparison {
  return typeof test === "object" && test !== null && !(test instanceof Uint8Array);
}

export function resolveNumber(value: number | NowPlus, now: number): number {
  return typeof value === "number" ? value : now + value.nowPlusMs;
}

/** The row after `set`. Columns that `set` does not name keep their values. */
export function applied(row: Row, set: Values, now: number): Row {
  const next: Record<string, Cell> = { ...row };
  for (const [column, value] of Object.entries(set)) {
    next[column] = resolveValue(value, now, row[column] ?? null);
  }
  return next;
}

function resolveValue(value: Value, now: number, before: Cell): Cell {
  if (isNowPlus(value)) return now + value.nowPlusMs;
  // As in SQL, NULL plus a number is NULL.
  if (isPlus(value)) return typeof before === "number" ? before + value.plus : null;
  return value;
}

export function isNowPlus(value: Value): value is NowPlus {
  return (
    typeof value === "object" &&
    value !== null &&
    !(value instanceof Uint8Array) &&
    "nowPlusMs" in value
  );
}

export function isPlus(value: Value): value is { readonly plus: number } {
  return (
    typeof value === "object" && value !== null && !(value instanceof Uint8Array) && "plus" in value
  );
}

/** Compares rows by an order. */
export function inOrder(order: SortOrder): (a: Row, b: Row) => number {
  return (a, b) => {
    for (const { column, down } of order) {
      const sign = compared(a[column] ?? null, b[column] ?? null);
      if (sign !== 0) return down === true ? -sign : sign;
    }
    return compared(a["ord"] ?? null, b["ord"] ?? null);
  };
}

function compared(a: Cell, b: Cell): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return Buffer.compare(Buffer.from(a as string), Buffer.from(b as string));
}

/** Whether a change starts an operation, or another attempt at one. */
export function startsEffect({ steps }: Change): boolean {
  return steps.some(
    (step) =>
      step.table.name === OPERATIONS.name &&
      (step.op === "insert" || (step.op === "update" && step.set["status"] === "started")),
  );
}

/**
 * Urgent changes skip the queue and are never refused because it is full: the kill switch, because every change before it
 * may start an effect, and the outcome of an operation, because the tool has already been called.
 */
export function isUrgent({ steps }: Change): boolean {
  return steps.some(isSwitching) || steps.some(isSettling);
}

function isSwitching(step: Step): boolean {
  return (step.op === "insert" || step.op === "update") && step.table.name === SWITCHES.name;
}

function isSettling(step: Step): boolean {
  if (step.op !== "update" || step.table.name !== OPERATIONS.name) return false;
  const status = step.set["status"];
  return status !== undefined && status !== "started";
}

/** The epoch that a change begins, if it begins one. */
export function epochOf({ steps }: Change): string | undefined {
  for (const step of steps) {
    if (!isSwitching(step) || !("id" in step) || step.id !== EPOCH) continue;
    const state = (step.op === "insert" ? step.row : step.op === "update" ? step.set : {})["state"];
    if (typeof state === "string") return state;
  }
  return undefined;
}

/** Approximate size of a change in bytes: texts and bytes are counted, the rest is a flat allowance. */
export function sizeOf({ steps, events }: Change): number {
  let size = 0;
  for (const step of steps) {
    size += STEP_BYTES;
    if (step.op === "insert") size += sizeOfValues(step.row);
    else if (step.op === "update" || step.op === "take") size += sizeOfValues(step.set);
  }
  for (const { data } of events) size += STEP_BYTES + sizeOfJson(data);
  return size;
}
const STEP_BYTES = 200;

function sizeOfValues(values: Values): number {
  let size = 0;
  for (const column in values) size += sizeOfValue(values[column] ?? null);
  return size;
}

function sizeOfValue(value: Value | Cell): number {
  return typeof value === "string" || value instanceof Uint8Array ? value.length : 0;
}

function sizeOfJson(value: JsonValue): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  let size = 0;
  for (const one of Object.values(value)) size += sizeOfJson(one);
  return size;
}
