import path from "node:path";
import { askUserTool } from "../../gate/ask.ts";
import { allowAlways } from "../../gate/guards.ts";
import { parseJson } from "../../model/parse-json.ts";
import type { Validator, Verdict } from "../../model/verdict.ts";
import { NO_RULES } from "../../policy/policy.ts";
import type { ReviewRule } from "../../policy/review-rules.ts";
import { defineTool } from "../../tools/define-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import { systemClock } from "../../util/clock.ts";
import type { JsonObject } from "../../util/json.ts";
import { systemTimers } from "../../util/timers.ts";
import type { ServedParts } from "../serve.ts";
import { type DemoAgent, type DemoOptions, SCRIPTED, startAgents } from "./scripted.ts";
import { openWarehouse, type Warehouse } from "./warehouse.ts";

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
    reason: problem ?? "nothing against it",
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

/** One tool of each kind: read-only, reversible, keyed, irreversible, failing. */
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
