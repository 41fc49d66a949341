import { defineTool } from "../../tools/define-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import type { JsonObject } from "../../util/json.ts";
import type { Warehouse } from "./warehouse.ts";

const SKU = { type: "string", minLength: 1, maxLength: 40 } as const;
const COUNT = { type: "integer", minimum: -10_000, maximum: 10_000 } as const;

function object(properties: JsonObject): JsonObject {
  return {
    type: "object",
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

/** One tool of each kind: reads, can be taken back, is keyed, cannot be taken back, fails. */
export function warehouseTools(warehouse: Warehouse): readonly Tool[] {
  const look = defineTool({
    name: "stock.look",
    description: "Shows what is in stock.",
    input: { type: "object", properties: { sku: SKU }, additionalProperties: false },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute({ input }) {
      const rows = warehouse.all().filter(({ sku }) => (input["sku"] ?? sku) === sku);
      return rows.map(({ sku, name, amount }) => `${sku} ${name}: ${amount}`).join("\n");
    },
  });
  const adjust = defineTool({
    name: "stock.adjust",
    description: "Corrects the amount of one item by a number.",
    input: object({ sku: SKU, by: COUNT, why: { type: "string", maxLength: 200 } }),
    safety: { effect: "write", reversible: true, affects: ["stock"] },
    dryRun({ input }) {
      const row = warehouse.stock(String(input["sku"]));
      if (row === undefined) return `${input["sku"]} does not exist`;
      return `${row.sku} ${row.name}: ${row.amount} -> ${row.amount + Number(input["by"])}`;
    },
    stateVersion: ({ input }) => String(warehouse.stock(String(input["sku"]))?.version ?? "none"),
    execute({ input }) {
      const sku = String(input["sku"]);
      const by = Number(input["by"]);
      const row = warehouse.stock(sku);
      if (row === undefined || !warehouse.change(sku, by, row.version)) {
        return {
          text: `${sku} cannot be changed by ${by}. Look at the stock first.`,
          isError: true,
        };
      }
      return { text: `${sku}: ${row.amount} -> ${row.amount + by}`, data: { sku, by } };
    },
    undo({ output }) {
      const { sku, by } = output as { sku: string; by: number };
      return { tool: "stock.adjust", input: { sku, by: -by, why: "taken back" } };
    },
  });
  const place = defineTool({
    name: "orders.place",
    description: "Orders goods from the supplier.",
    input: object({
      order: { type: "string", pattern: "^PO-[0-9]+$" },
      sku: SKU,
      amount: { type: "integer", minimum: 1, maximum: 1_000 },
      cents: { type: "integer", minimum: 1, maximum: 100_000_000 },
    }),
    safety: { effect: "external", reversible: true, affects: ["orders", "money"] },
    idempotency: "keyed",
    dryRun: ({ input }) =>
      `orders ${input["amount"]} of ${input["sku"]} for ${(Number(input["cents"]) / 100).toFixed(2)} EUR as ${input["order"]}`,
    execute({ input }) {
      const {
        order: id,
        sku,
        amount,
        cents,
      } = input as unknown as {
        order: string;
        sku: string;
        amount: number;
        cents: number;
      };
      const placed = warehouse.place({ id, sku, amount, cents });
      return { text: `${placed.id} is ${placed.state}`, data: { id } };
    },
    undo: ({ output }) => ({
      tool: "orders.cancel",
      input: { order: (output as { id: string }).id },
    }),
  });
  const cancel = defineTool({
    name: "orders.cancel",
    description: "Calls an open order off.",
    input: object({ order: { type: "string", pattern: "^PO-[0-9]+$" } }),
    safety: { effect: "external", affects: ["orders"] },
    dryRun: ({ input }) => `calls off ${input["order"]}`,
    execute({ input }) {
      const id = String(input["order"]);
      if (warehouse.setState(id, "open", "cancelled")) return `${id} is cancelled`;
      return { text: `${id} is not open, so it cannot be cancelled.`, isError: true };
    },
  });
  const book = defineTool({
    name: "carriers.book",
    description: "Books a lorry for an order. It cannot be called off.",
    input: object({
      carrier: { type: "string", maxLength: 40 },
      order: { type: "string", pattern: "^PO-[0-9]+$" },
    }),
    safety: { effect: "external", destructive: true, undoMethod: "manual", affects: ["carriers"] },
    dryRun: ({ input }) =>
      `books ${input["carrier"]} for ${input["order"]}; this cannot be taken back`,
    execute({ input, idempotencyKey }) {
      const order = String(input["order"]);
      const carrier = String(input["carrier"]);
      if (carrier === "Nightline") {
        return { text: "Nightline does not answer today.", isError: true };
      }
      warehouse.book({ id: idempotencyKey, carrier, order });
      return `${carrier} comes for ${order}`;
    },
  });
  return [look, adjust, place, cancel, book];
}
