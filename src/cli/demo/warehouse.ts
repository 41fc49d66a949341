import Sqlite from "better-sqlite3";
import { createPrivateFile } from "../../util/files.ts";

/** The demo's production system: a small warehouse in its own database, independent of Sallyport. */
export interface Warehouse {
  readonly skus: readonly string[];
  stock(sku: string): StockRow | undefined;
  all(): readonly StockRow[];
  /** Changes an amount if it still has this version. False if not, or if it would fall below zero. */
  change(sku: string, by: number, version: number): boolean;
  order(id: string): OrderRow | undefined;
  openOrders(): readonly OrderRow[];
  /** Keyed by the buyer's number: placed twice it is one order. */
  place(order: Omit<OrderRow, "state">): OrderRow;
  setState(id: string, from: string, to: string): boolean;
  book(shipment: { id: string; carrier: string; order: string }): void;
  shipments(): number;
  close(): void;
}

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

export function openWarehouse(file: string): Warehouse {
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
    skus: GOODS.map(([sku]) => sku),
    stock,
    order,
    all: () => database.prepare("SELECT * FROM stock ORDER BY sku").all() as StockRow[],
    change(sku, by, version) {
      const { changes } = database
        .prepare(
          "UPDATE stock SET amount = amount + ?, version = version + 1 WHERE sku = ? AND version = ? AND amount + ? >= 0",
        )
        .run(by, sku, version, by);
      return changes === 1;
    },
    openOrders: () =>
      database.prepare("SELECT * FROM orders WHERE state = 'open' ORDER BY id").all() as OrderRow[],
    place({ id, sku, amount, cents }) {
      database
        .prepare("INSERT INTO orders VALUES (?, ?, ?, ?, 'open') ON CONFLICT DO NOTHING")
        .run(id, sku, amount, cents);
      const placed = order(id);
      if (placed === undefined) throw new Error(`order ${id} was not stored`);
      return placed;
    },
    setState(id, from, to) {
      const { changes } = database
        .prepare("UPDATE orders SET state = ? WHERE id = ? AND state = ?")
        .run(to, id, from);
      return changes === 1;
    },
    book({ id, carrier, order: orderId }) {
      database.prepare("INSERT INTO shipments VALUES (?, ?, ?)").run(id, carrier, orderId);
    },
    shipments: () => Number(database.prepare("SELECT count(*) FROM shipments").pluck().get()),
    close: () => void database.close(),
  };
}
