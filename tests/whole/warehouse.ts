// A small warehouse as production, and a port in front of it: one world for everything that goes through all parts.

import {
  type CallAnswer,
  type CallRequest,
  createGate,
  type Gate,
  type GateOptions,
  NO_RULES,
  type Store,
  type Validator,
  type Verdict,
} from "sallyport";
import { defineTool } from "sallyport/tools";
import type { TestStore } from "../support/stores.ts";

export const TENANT = "acme";
export const LEAD = "agent:lead";
export const PICKER = "agent:picker";
export const ADA = "person:ada";
export const LEASE_MS = 60_000;

/** The contents of the shelves, and all changes in order, without reads. */
export interface Warehouse {
  readonly shelves: Map<string, number>;
  readonly ledger: string[];
  /** While it is counted, no decision may move on. */
  counting: boolean;
  /** The carrier takes parcels and never says so. */
  silentCarrier: boolean;
  readonly tools: NonNullable<GateOptions["tools"]>;
}

export function buildWarehouse(): Warehouse {
  const shelves = new Map([
    ["bolt", 40],
    ["nut", 60],
    ["lamp", 5],
  ]);
  const ledger: string[] = [];
  const sku = { type: "string", maxLength: 20 } as const;
  const amount = { type: "integer", minimum: 0 } as const;
  const count = defineTool({
    name: "stock.count",
    description: "Counts what stands on a shelf.",
    input: { type: "object", properties: { sku }, required: ["sku"], additionalProperties: false },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute: ({ input }) => String(shelves.get(String(input["sku"])) ?? 0),
  });
  const pair = {
    type: "object",
    properties: { sku, amount },
    required: ["sku", "amount"],
    additionalProperties: false,
  } as const;
  const set = defineTool({
    name: "stock.set",
    description: "Sets how many stand on a shelf.",
    input: pair,
    safety: { effect: "external", reversible: true },
    resources: ({ input }) => [{ kind: "other", id: `shelf:${input["sku"]}`, access: "write" }],
    dryRun: ({ input }) =>
      `${input["sku"]}: ${shelves.get(String(input["sku"]))} -> ${input["amount"]}`,
    stateVersion: async ({ input }) => String(shelves.get(String(input["sku"])) ?? 0),
    async execute({ input }) {
      const name = String(input["sku"]);
      const before = shelves.get(name) ?? 0;
      ledger.push(`set ${name} ${input["amount"]}`);
      shelves.set(name, Number(input["amount"]));
      return { text: `${name}: ${input["amount"]}`, data: { sku: name, amount: before } };
    },
    undo: ({ output }) => ({ tool: "stock.set", input: output as { sku: string; amount: number } }),
  });
  const ship = defineTool({
    name: "parcels.ship",
    description: "Gives a parcel to the carrier.",
    input: pair,
    safety: { effect: "external", confidenceMin: 80 },
    async execute({ input }) {
      ledger.push(`ship ${input["sku"]} ${input["amount"]}`);
      if (warehouse.silentCarrier) await new Promise<never>(() => {});
      return "on its way";
    },
  });
  const scrap = defineTool({
    name: "stock.scrap",
    description: "Throws away what stands on a shelf.",
    input: { type: "object", properties: { sku }, required: ["sku"], additionalProperties: false },
    safety: { effect: "external", checkpoint: true },
    execute({ input }) {
      ledger.push(`scrap ${input["sku"]}`);
      return "gone";
    },
  });
  const warehouse = {
    shelves,
    ledger,
    counting: false,
    silentCarrier: false,
    tools: [count, set, ship, scrap],
  };
  return warehouse;
}

/** The house rules: technically, a shelf that exists; for the business, nothing above a hundred. */
export function houseRules({ shelves }: Pick<Warehouse, "shelves">) {
  return {
    tech: saying("known-shelf", (text) =>
      [...shelves.keys()].some((sku) => text.includes(`"${sku}"`)),
    ),
    business: saying("below-hundred", (text) => !/"amount":\d{3,}/.test(text)),
  };
}

export function saying(name: string, isFine: (payload: string) => boolean): Validator {
  return {
    name,
    review({ raw }): Verdict {
      const approved = isFine(new TextDecoder().decode(raw));
      const reason = approved ? "" : `${name} does not hold`;
      return {
        approved,
        score: approved ? 1 : 0,
        severity: approved ? "" : "block",
        reason,
        validator: name,
        policyVersion: "1",
      };
    },
  };
}

export function openGate(store: Store, warehouse: Warehouse, over: GateOptions = {}): Gate {
  return createGate({
    store,
    tenant: TENANT,
    tools: warehouse.tools,
    validators: houseRules(warehouse),
    guard: { allows: () => !warehouse.counting },
    policy: NO_RULES,
    leaseMs: LEASE_MS,
    ...over,
  });
}

let calls = 0;
export function call(
  tool: string,
  input: CallRequest["input"],
  more: Partial<CallRequest> = {},
): CallRequest {
  calls += 1;
  return { callId: `c-${calls}`, messageId: "m-1", tool, input, ...more };
}

/** The decision that an answer waits for; any other answer is a failure of the test. */
export function waitingFor(answer: CallAnswer): string {
  if (answer.answer === "pending") return answer.decisionId;
  throw new Error(`expected a question, got ${answer.answer}: ${answer.text}`);
}

/** As after a restart: another handle on the same data where the engine can give one, and nothing kept from before. */
export async function nextProcess(
  place: TestStore,
  warehouse: Warehouse,
  over: GateOptions = {},
): Promise<Gate> {
  const { store } = place.again === undefined ? place : await place.again();
  return openGate(store, warehouse, { clock: place.clock, ...over });
}

/** Says yes to what the inbox shows at this moment. */
export async function sayYes(gate: Gate, id: string, by = ADA): Promise<readonly CallAnswer[]> {
  const { hash } = await gate.interactions.get(id);
  return (await gate.interactions.approve(id, { hash, by })).answers;
}

export async function eventsOf(gate: Gate): Promise<readonly string[]> {
  return (await gate.audit.read({ after: 0, limit: 1_000 })).map(({ type }) => type);
}
