// A small warehouse for the agents of the tests: tools of every kind that a reviewer meets.

import { SallyportError } from "../../src/model/errors.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import type { JsonObject } from "../../src/util/json.ts";

export interface Warehouse {
  readonly stock: Map<string, number>;
  /** What reached the world, in order. */
  readonly effects: string[];
  /** What stands on the shelves. */
  readonly labels: Map<string, string>;
  readonly tools: readonly Tool[];
}

const text = { type: "string" } as const;

function object(properties: JsonObject): JsonObject {
  const required = Object.keys(properties);
  return { type: "object", properties, required, additionalProperties: false };
}

export function createWarehouse(): Warehouse {
  const stock = new Map([
    ["bolt-m8", 120],
    ["nut-m8", 80],
  ]);
  const effects: string[] = [];
  const labels = new Map<string, string>();
  const look = defineTool({
    name: "stock.look",
    description: "Shows how many there are of an article.",
    input: object({ sku: text }),
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute: ({ input }) => String(stock.get(String(input["sku"])) ?? 0),
  });
  const set = defineTool({
    name: "stock.set",
    description: "Sets the number of an article in stock.",
    input: object({ sku: text, quantity: { type: "integer", minimum: 0, maximum: 10_000 } }),
    safety: { effect: "external", reversible: true, affects: ["stock"] },
    dryRun({ input }) {
      const [sku, now] = [String(input["sku"]), Number(input["quantity"])];
      const was = stock.get(sku) ?? 0;
      return {
        summary: `${sku}: ${was} → ${now}`,
        preview: `--- stock/${sku}\n+++ stock/${sku}\n@@ -1 +1 @@\n-quantity: ${was}\n+quantity: ${now}`,
        impact: { rows: 1, before: { quantity: was }, after: { quantity: now } },
      };
    },
    stateVersion: ({ input }) => String(stock.get(String(input["sku"])) ?? 0),
    execute({ input }) {
      const [sku, quantity] = [String(input["sku"]), Number(input["quantity"])];
      const before = stock.get(sku) ?? 0;
      stock.set(sku, quantity);
      effects.push(`set ${sku} ${quantity}`);
      return { text: `${sku} is ${quantity} now`, data: { sku, quantity: before } };
    },
    undo: ({ output }) => ({ tool: "stock.set", input: output as JsonObject }),
  });
  const order = defineTool({
    name: "orders.place",
    description: "Orders from a supplier. An order cannot be called back.",
    input: object({ supplier: text, sku: text, quantity: { type: "integer" } }),
    safety: { effect: "external", affects: ["suppliers", "money"] },
    dryRun: ({ input }) => ({
      summary: `order ${input["quantity"]} × ${input["sku"]} at ${input["supplier"]}`,
      impact: { cost: `${Number(input["quantity"]) * 2} EUR`, suppliers: 1 },
    }),
    execute({ input }) {
      effects.push(`order ${input["sku"]} ${input["quantity"]}`);
      return "ordered";
    },
  });
  const note = defineTool({
    name: "notes.send",
    description: "Sends a note to the floor. Takes any text; has no dry run.",
    input: { type: "object", additionalProperties: true },
    safety: { effect: "external" },
    execute({ input }) {
      effects.push(`note ${JSON.stringify(input)}`);
      return "sent";
    },
  });
  const book = defineTool({
    name: "carrier.book",
    description: "Books a carrier, over a line that breaks.",
    input: object({ carrier: text, pallets: { type: "integer" } }),
    safety: { effect: "external" },
    execute({ input }) {
      effects.push(`book ${input["carrier"]}`);
      throw new SallyportError("outcome_unknown", { hint: "The line broke." });
    },
  });
  const euros = (cents: unknown) => `${(Number(cents) / 100).toFixed(2)} EUR`;
  const refund = defineTool({
    name: "billing.refund",
    description: "Pays an invoice back.",
    input: object({ customer: text, invoice: text, cents: { type: "integer" } }),
    safety: { effect: "external", reversible: true, affects: ["money"] },
    present: ({ input }) => ({
      title: `Refund ${euros(input["cents"])} to ${input["customer"]}`,
      fields: [
        { label: "Invoice", value: String(input["invoice"]), format: "code" },
        { label: "Amount", value: euros(input["cents"]), format: "money" },
        { label: "Why", value: "charged twice" },
      ],
      amount: { value: Number(input["cents"]) / 100, unit: "EUR" },
    }),
    execute({ input }) {
      effects.push(`refund ${input["customer"]} ${input["cents"]}`);
      return { text: "R-1", data: input };
    },
    undo: ({ output }) => ({ tool: "billing.cancel_refund", input: output as JsonObject }),
  });
  const cancelRefund = defineTool({
    name: "billing.cancel_refund",
    description: "Cancels a refund that was not paid out yet.",
    input: object({ customer: text, invoice: text, cents: { type: "integer" } }),
    safety: { effect: "external", affects: ["money"] },
    present: ({ input }) => ({ title: `Cancel the refund of ${euros(input["cents"])}` }),
    execute({ input }) {
      effects.push(`cancel refund ${input["customer"]}`);
      return "cancelled";
    },
  });
  const label = defineTool({
    name: "shelf.label",
    description: "Writes the label of a shelf; sub-agents may, where their plan says so.",
    input: object({ shelf: text, words: text }),
    safety: { effect: "external", reversible: true },
    resources: () => [{ kind: "other", id: "sql:shop/shelf", access: "write" }],
    present: ({ input }) => ({ title: `Label shelf ${input["shelf"]} "${input["words"]}"` }),
    execute({ input }) {
      const shelf = String(input["shelf"]);
      const before = labels.get(shelf) ?? "empty";
      labels.set(shelf, String(input["words"]));
      return { text: "labelled", data: { shelf, words: before } };
    },
    undo: ({ output }) => ({ tool: "shelf.label", input: output as JsonObject }),
  });
  const scan = defineTool({
    name: "scanner.run",
    description: "Scans the hall until it is stopped.",
    input: object({}),
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute: ({ signal }) =>
      new Promise((_, refuse) => {
        signal.addEventListener("abort", () => refuse(signal.reason), { once: true });
      }),
  });
  const print = defineTool({
    name: "labels.reprint",
    description:
      "Prints all labels anew. Needs a counter-check; has neither a dry run nor an undo.",
    input: object({ hall: text }),
    safety: { effect: "external", reversible: false, reverseThinking: true },
    execute: () => "printed",
  });
  const tools = [print, look, set, order, note, book, refund, cancelRefund, label, scan];
  return { stock, effects, labels, tools };
}
