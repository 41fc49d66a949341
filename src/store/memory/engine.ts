import { type AuditEntry, type ChainHead, emptyHead, headAfter } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import type { Clock } from "../../util/clock.ts";
import { invariant } from "../../util/invariant.ts";
import type { Random } from "../../util/random.ts";
import { CommitListeners } from "../commit-listeners.ts";
import type { Change, ChangeResult, Engine, Query, Row, Step, Table } from "../engine.ts";
import { applied, holds } from "../evaluate.ts";
import { Turn } from "../turn.ts";
import { MemoryTable } from "./table.ts";

export interface MemoryEngineOptions {
  readonly clock: Clock;
  readonly random: Random;
}

/** The engine in its plainest form. What it does in a few lines is what the SQL engines must agree with. */
export function memoryEngine({ clock, random }: MemoryEngineOptions): Engine {
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
    const turn = new Turn(headOf(tenant), clock.now(), random);
    const rows: Row[] = [];
    for (const [index, step] of change.steps.entries()) {
      const current = tableOf(tenant, step.table).get(step.id);
      const next = stepped(step, current, tenant, turn.at);
      if (next === undefined) return { committed: false, step: index, current: copied(current) };
      rows.push(next);
    }
    turn.append(change, rows.map(copiedRow));
    // Everything that can throw is behind us.
    const stored = change.steps.map((step, index) => {
      const row = rows[index];
      invariant(row !== undefined, "every step left a row");
      return step.op === "require" ? row : tableOf(tenant, step.table).put(step.id, row);
    });
    const chain = chains.get(tenant);
    if (chain === undefined) chains.set(tenant, turn.entries);
    else chain.push(...turn.entries);
    return { committed: true, at: turn.at, rows: stored.map(copiedRow), seq: turn.head.seq };
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

function stepped(
  step: Step,
  current: Row | undefined,
  tenant: string,
  at: number,
): Row | undefined {
  if (step.op === "insert") {
    return current === undefined ? applied({ tenant, id: step.id }, step.row, at) : undefined;
  }
  if (current === undefined)
    return step.op === "require" && step.absent === "holds" ? {} : undefined;
  if (!holds(current, step.where, at)) return undefined;
  return step.op === "require" ? current : applied(current, step.set, at);
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
