import path from "node:path";
import Sqlite from "better-sqlite3";
import { z } from "zod";
import { askUserTool } from "../../gate/inbox.ts";
import { allowAlways } from "../../gate/review.ts";
import type { Validator, Verdict } from "../../model/decision.ts";
import { parseJson } from "../../model/names.ts";
import { NO_RULES } from "../../policy/policy.ts";
import type { ReviewRule } from "../../policy/review-rules.ts";
import { defineTool } from "../../tools/define-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import { systemClock } from "../../util/clock.ts";
import { createPrivateFile } from "../../util/files.ts";
import type { JsonObject } from "../../util/json.ts";
import { systemTimers } from "../../util/timers.ts";
import type { ServedParts } from "../serve.ts";
import { type DemoAgent, type DemoOptions, SCRIPTED, startAgents } from "./agents.ts";

export interface DemoTerms extends Pick<DemoOptions, "onProblem"> {
  readonly everyMs?: number;
  /** The agents; by default the scripted ones. */
  readonly agents?: readonly DemoAgent[];
}

/** A warehouse with three agents that keep proposing, so that there is always something to decide. */
export function demoParts(
  { data }: { readonly data: string },
  { onProblem, everyMs = 4_000, agents: chosen = SCRIPTED }: DemoTerms,
): ServedParts {
  const warehouse = openWarehouse(path.join(data, "warehouse.db"));
  return {
    tools: [...warehouseTools(warehouse), askUserTool()],
    validators: { tech: techReview(warehouse.skus), business: businessReview },
    guard: allowAlways,
    policy: NO_RULES,
    review: DEMO_REVIEW,
    started(gate) {
      const run = Math.floor(systemClock.now() / 1000) % 10_000_000;
      const agents = startAgents(chosen, {
        gate,
        warehouse,
        timers: systemTimers,
        run,
        everyMs,
        onProblem,
      });
      return async () => {
        await agents.stop();
        warehouse.close();
      };
    },
  };
}

const MOST_CENTS = 2_000_000;

function verdict(validator: string, problem: string | undefined): Verdict {
  return {
    approved: problem === undefined,
    score: problem === undefined ? 1 : 0,
    severity: problem === undefined ? "" : "block",
    reason: problem ?? "passed",
    validator,
    policyVersion: "demo-1",
  };
}

function inputsOf(raw: Uint8Array): readonly JsonObject[] {
  const { calls } = parseJson(raw) as { calls: { input: JsonObject }[] };
  return calls.map(({ input }) => input);
}

/** Technical review: does the item exist? */
export function techReview(skus: readonly string[]): Validator {
  return {
    name: "known-items",
    async review({ raw }) {
      const strange = inputsOf(raw).find(
        ({ sku }) => sku !== undefined && !skus.includes(String(sku)),
      );
      return verdict("known-items", strange && `There is no item ${strange["sku"]}.`);
    },
  };
}

/** Business review: orders above the limit are rejected without asking a person. */
export const businessReview: Validator = {
  name: "budget",
  async review({ raw }) {
    const cents = inputsOf(raw).reduce((sum, { cents = 0 }) => sum + Number(cents), 0);
    const over = `It costs ${(cents / 100).toFixed(2)} EUR, the limit is ${MOST_CENTS / 100}.00.`;
    return verdict("budget", cents > MOST_CENTS ? over : undefined);
  },
};

/** Irreversible calls are escalated if not answered in time. */
const DEMO_REVIEW: readonly ReviewRule[] = [
  // One person plays every reviewer of the demo, so the editor of a call may approve it too.
  { requires: [{ name: "review", count: 1 }], editorMayApprove: true },
  {
    tools: ["carriers.*"],
    requires: [{ name: "review", count: 1 }],
    editorMayApprove: true,
    escalation: { afterMs: 30 * 60_000, to: "person:duty" },
  },
];

function euros(cents: number): string {
  return `${(cents / 100).toFixed(2)} EUR`;
}

const SKU = z.string().min(1).max(40);
const ORDER = z.string().regex(/^PO-[0-9]+$/);

/** One tool of each kind: read-only, reversible, keyed, irreversible, failing. */
export function warehouseTools(warehouse: Warehouse): readonly Tool[] {
  const look = defineTool({
    name: "stock.look",
    description: "Shows what is in stock.",
    input: z.strictObject({ sku: SKU.optional() }),
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute({ input }) {
      const rows = warehouse.all().filter(({ sku }) => (input.sku ?? sku) === sku);
      return rows.map(({ sku, name, amount }) => `${sku} ${name}: ${amount}`).join("\n");
    },
  });
  const adjust = defineTool({
    name: "stock.adjust",
    description: "Corrects the amount of one item by a number.",
    input: z.strictObject({
      sku: SKU,
      by: z.int().min(-10_000).max(10_000),
      why: z.string().max(200),
    }),
    safety: { effect: "write", reversible: true, affects: ["stock"] },
    present: ({ input: { sku, by, why } }) => ({
      title: `${by < 0 ? "Take" : "Add"} ${Math.abs(by)} × ${sku} ${by < 0 ? "out of" : "to"} stock`,
      fields: [{ label: "Why", value: why }],
      amount: { value: by, unit: "pieces" },
    }),
    dryRun({ input: { sku, by } }) {
      const row = warehouse.stock(sku);
      if (row === undefined) return `${sku} does not exist`;
      return `${sku} ${row.name}: ${row.amount} -> ${row.amount + by}`;
    },
    stateVersion: ({ input }) => String(warehouse.stock(input.sku)?.version ?? "none"),
    execute({ input: { sku, by } }) {
      const row = warehouse.stock(sku);
      if (row === undefined || !warehouse.change(sku, by, row.version)) {
        const text = `${sku} cannot be changed by ${by}. Look at the stock first.`;
        return { text, isError: true };
      }
      return { text: `${sku}: ${row.amount} -> ${row.amount + by}`, data: { sku, by } };
    },
    undo({ output }) {
      const { sku, by } = output as { sku: string; by: number };
      return { tool: "stock.adjust", input: { sku, by: -by, why: "undone" } };
    },
  });
  const place = defineTool({
    name: "orders.place",
    description: "Orders goods from the supplier.",
    input: z.strictObject({
      order: ORDER,
      sku: SKU,
      amount: z.int().min(1).max(1_000),
      cents: z.int().min(1).max(100_000_000),
    }),
    safety: { effect: "external", reversible: true, affects: ["orders", "money"] },
    idempotency: "keyed",
    present: ({ input: { amount, sku, cents, order } }) => ({
      title: `Order ${amount} × ${sku} for ${euros(cents)}`,
      fields: [
        { label: "Order", value: order, format: "code" },
        { label: "Amount", value: euros(cents), format: "money" },
      ],
      amount: { value: cents / 100, unit: "EUR" },
    }),
    dryRun: ({ input: { amount, sku, cents, order } }) =>
      `orders ${amount} of ${sku} for ${(cents / 100).toFixed(2)} EUR as ${order}`,
    execute({ input: { order: id, ...rest } }) {
      const placed = warehouse.place({ id, ...rest });
      return { text: `${placed.id} is ${placed.state}`, data: { id } };
    },
    undo: ({ output }) => ({
      tool: "orders.cancel",
      input: { order: (output as { id: string }).id },
    }),
  });
  const cancel = defineTool({
    name: "orders.cancel",
    description: "Cancels an open order.",
    input: z.strictObject({ order: ORDER }),
    safety: { effect: "external", affects: ["orders"] },
    present: ({ input }) => ({ title: `Cancel order ${input.order}` }),
    dryRun: ({ input }) => `cancels ${input.order}`,
    execute({ input: { order } }) {
      if (warehouse.setState(order, "open", "cancelled")) return `${order} is cancelled`;
      return { text: `${order} is not open, so it cannot be cancelled.`, isError: true };
    },
  });
  const book = defineTool({
    name: "carriers.book",
    description: "Books a lorry for an order. It cannot be cancelled.",
    input: z.strictObject({ carrier: z.string().max(40), order: ORDER }),
    safety: { effect: "external", destructive: true, undoMethod: "manual", affects: ["carriers"] },
    present: ({ input }) => ({
      title: `Book ${input.carrier} for ${input.order}`,
      fields: [{ label: "Order", value: input.order, format: "code" }],
    }),
    dryRun: ({ input }) => `books ${input.carrier} for ${input.order}; this cannot be undone`,
    execute({ input: { carrier, order }, idempotencyKey }) {
      if (carrier === "Nightline") {
        return { text: "Nightline does not answer today.", isError: true };
      }
      warehouse.book({ id: idempotencyKey, carrier, order });
      return `${carrier} comes for ${order}`;
    },
  });
  return [look, adjust, place, cancel, book];
}

export type Warehouse = ReturnType<typeof openWarehouse>;

export interface StockRow {
  readonly sku: string;
  readonly name: string;
  readonly amount: number;
  readonly target: number;
  readonly version: number;
}

export interface OrderRow {
  readonly id: string;
  readonly sku: string;
  readonly amount: number;
  readonly cents: number;
  readonly state: string;
}

const GOODS = [
  ["LAMP-01", "Desk lamp", 42, 120],
  ["CHAIR-07", "Office chair", 8, 40],
  ["CABLE-3M", "Cable, 3 m", 310, 400],
  ["DESK-160", "Desk 160 cm", 5, 15],
  ["MON-27", "Monitor 27 in", 19, 60],
] as const;

/** The demo's production system: a small warehouse in its own database, independent of Sallyport. */
export function openWarehouse(file: string) {
  createPrivateFile(file);
  const database = new Sqlite(file);
  database.pragma("journal_mode = WAL");
  database.exec(`
    CREATE TABLE IF NOT EXISTS stock (sku TEXT PRIMARY KEY, name TEXT NOT NULL, amount INTEGER NOT NULL CHECK (amount >= 0), target INTEGER NOT NULL, version INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, sku TEXT NOT NULL, amount INTEGER NOT NULL, cents INTEGER NOT NULL, state TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS shipments (id TEXT PRIMARY KEY, carrier TEXT NOT NULL, order_id TEXT NOT NULL) STRICT;
  `);
  const seed = database.prepare("INSERT INTO stock VALUES (?, ?, ?, ?, 1) ON CONFLICT DO NOTHING");
  for (const row of GOODS) seed.run(...row);
  const stock = (sku: string) =>
    database.prepare("SELECT * FROM stock WHERE sku = ?").get(sku) as StockRow | undefined;
  const order = (id: string) =>
    database.prepare("SELECT * FROM orders WHERE id = ?").get(id) as OrderRow | undefined;
  return {
    skus: GOODS.map(([sku]) => sku) as readonly string[],
    stock,
    order,
    all: (): readonly StockRow[] =>
      database.prepare("SELECT * FROM stock ORDER BY sku").all() as StockRow[],
    /** Changes an amount if it still has this version. False if not, or if it would fall below zero. */
    change(sku: string, by: number, version: number): boolean {
      const { changes } = database
        .prepare(
          "UPDATE stock SET amount = amount + ?, version = version + 1 WHERE sku = ? AND version = ? AND amount + ? >= 0",
        )
        .run(by, sku, version, by);
      return changes === 1;
    },
    openOrders: (): readonly OrderRow[] =>
      database.prepare("SELECT * FROM orders WHERE state = 'open' ORDER BY id").all() as OrderRow[],
    /** Keyed by the buyer's number: placed twice it is one order. */
    place({ id, sku, amount, cents }: Omit<OrderRow, "state">): OrderRow {
      database
        .prepare("INSERT INTO orders VALUES (?, ?, ?, ?, 'open') ON CONFLICT DO NOTHING")
        .run(id, sku, amount, cents);
      const placed = order(id);
      if (placed === undefined) throw new Error(`order ${id} was not stored`);
      return placed;
    },
    setState(id: string, from: string, to: string): boolean {
      const { changes } = database
        .prepare("UPDATE orders SET state = ? WHERE id = ? AND state = ?")
        .run(to, id, from);
      return changes === 1;
    },
    book({ id, carrier, order: orderId }: { id: string; carrier: string; order: string }): void {
      database.prepare("INSERT INTO shipments VALUES (?, ?, ?)").run(id, carrier, orderId);
    },
    shipments: () => Number(database.prepare("SELECT count(*) FROM shipments").pluck().get()),
    close: () => void database.close(),
  };
}
