import { type AuditEntry, type ChainHead, emptyHead, headAfter } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import type { Clock } from "../../util/clock.ts";
import type { Random } from "../../util/random.ts";
import { isUrgent } from "../change-kinds.ts";
import { checkTake } from "../check-take.ts";
import type { ClockWatch } from "../clock-watch.ts";
import { CommitListeners } from "../commit-listeners.ts";
import type { Change, ChangeResult, Engine, Query, Row, Step, Table } from "../engine.ts";
import { applied, holds } from "../evaluate.ts";
import { CLOCK, SWITCHES } from "../switch-rows.ts";
import { Turn } from "../turn.ts";
import { MemoryTable } from "./table.ts";

export interface MemoryEngineOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Compares the clock with time that nobody can set. */
  readonly clockWatch?: ClockWatch;
}

/** The engine in its plainest form. What it does in a few lines is what the SQL engines must agree with. */
export function memoryEngine({ clock, random, clockWatch }: MemoryEngineOptions): Engine {
  const tables = new Map<string, MemoryTable>();
  const chains = new Map<string, AuditEntry[]>();
  const listeners = new CommitListeners();
  let ids = 0;
  let closed = false;

  const tableOf = (tenant: string, table: Table): MemoryTable => {
    const key = `${tenant}\n${table.name}`;
    let found = tables.get(key);
    if (found === undefined) {
      found = new MemoryTable(table.indexed);
      tables.set(key, found);
    }
    return found;
  };
  const headOf = (tenant: string): ChainHead => {
    const last = chains.get(tenant)?.at(-1);
    return last === undefined ? emptyHead(tenant) : headAfter(last);
  };
  const assertOpen = (): void => {
    if (closed) throw new SallyportError("store_closed");
  };

  /** Synchronous from first look to last write, so nothing can come between. */
  function write(tenant: string, change: Change): ChangeResult {
    const accepted = () => String(tableOf(tenant, SWITCHES).get(CLOCK)?.["state"] ?? "");
    const turn = new Turn(headOf(tenant), clock.now(), random, { watch: clockWatch, accepted });
    if (turn.clockTrouble !== undefined && !isUrgent(change)) throw turn.clockTrouble;
    const effects: Effect[] = [];
    for (const [index, step] of change.steps.entries()) {
      const table = tableOf(tenant, step.table);
      const made = step.op === "take" ? taken(step, table, turn.now) : [];
      const current = step.op === "take" ? undefined : table.get(step.id);
      if (step.op !== "take") made.push(...stepped(step, table, current, tenant, turn.now));
      if (made.length === 0) return { committed: false, step: index, current: copied(current) };
      effects.push(...made);
    }
    turn.append(
      change,
      effects.map(({ row }) => copiedRow(row)),
    );
    // Everything that can throw is behind us.
    const stored = effects.map(({ store }) => store());
    const chain = chains.get(tenant);
    if (chain === undefined) chains.set(tenant, turn.entries);
    else chain.push(...turn.entries);
    return { committed: true, at: turn.now, rows: stored.map(copiedRow), seq: turn.head.seq };
  }

  return {
    name: "memory",
    capabilities: { durable: false, manyProcesses: false },
    newId() {
      ids += 1;
      return String(ids);
    },
    async commit(tenant, change) {
      assertOpen();
      checkTake(change);
      const result = write(tenant, change);
      if (result.committed) listeners.tell();
      return result;
    },
    async get(tenant, table, id) {
      assertOpen();
      return copied(tableOf(tenant, table).get(id));
    },
    async find(tenant, table, query: Query) {
      assertOpen();
      return tableOf(tenant, table).find(query, clock.now()).map(copiedRow);
    },
    async entries(tenant, { after, limit }) {
      assertOpen();
      return (chains.get(tenant) ?? []).slice(after, after + limit);
    },
    async head(tenant) {
      assertOpen();
      return headOf(tenant);
    },
    async heads() {
      assertOpen();
      return [...chains.keys()].sort().map(headOf);
    },
    async now() {
      return clock.now();
    },
    onCommit: (listener) => listeners.add(listener),
    async backdate(tenant, table, id, column, at) {
      const row = tableOf(tenant, table).get(id);
      if (row !== undefined) tableOf(tenant, table).put(id, { ...row, [column]: at });
    },
    async close() {
      closed = true;
    },
  };
}

/** What a step leaves behind, and how it is written once all steps hold. */
interface Effect {
  readonly row: Row;
  store(): Row;
}

/** One effect, or none when the step does not hold. */
function stepped(
  step: Exclude<Step, { op: "take" }>,
  table: MemoryTable,
  current: Row | undefined,
  tenant: string,
  at: number,
): Effect[] {
  const putting = (row: Row): Effect[] => [{ row, store: () => table.put(step.id, row) }];
  if (step.op === "insert") {
    return current === undefined ? putting(applied({ tenant, id: step.id }, step.row, at)) : [];
  }
  if (current === undefined) {
    const isFine = step.op === "require" && step.absent === "holds";
    return isFine ? [{ row: {}, store: () => ({}) }] : [];
  }
  if (!holds(current, step.where, at)) return [];
  if (step.op === "update") return putting(applied(current, step.set, at));
  const store = () => (step.op === "delete" ? table.delete(step.id, current) : current);
  return [{ row: current, store }];
}

function taken(step: Step & { op: "take" }, table: MemoryTable, at: number): Effect[] {
  return table.best(step, at).map((before) => {
    const row = applied(before, step.set, at);
    return { row, store: () => table.put(String(before["id"]), row) };
  });
}

function copied(row: Row | undefined): Row | undefined {
  return row === undefined ? undefined : copiedRow(row);
}

/** Cells are immutable but for bytes. */
function copiedRow(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([column, cell]) => [
      column,
      cell instanceof Uint8Array ? new Uint8Array(cell) : cell,
    ]),
  );
}
