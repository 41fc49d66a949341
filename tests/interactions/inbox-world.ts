// The world of the port tests on every kind of store, with restarts: what was pending must not notice them.

import type { Gate } from "../../src/gate/create-gate.ts";
import type { FoundOut } from "../../src/gate/inbox.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { SallyportError } from "../../src/model/errors.ts";
import type { Interaction } from "../../src/model/interaction.ts";
import type { CallAnswer, CallRequest } from "../../src/model/operation.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { type GateWorld, openGate, PERSON, request } from "../support/port-world.ts";
import type { StoreName, TestStore } from "../support/stores.ts";

export const FULL = process.env["SCALE"] === "full";
export const OTHER = "person:bob";
export const HAPPENED: FoundOut = { happened: true };
export const REPEAT: FoundOut = { happened: false, otherwise: "repeat" };
export const GIVE_UP: FoundOut = { happened: false, otherwise: "give_up" };
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

export interface InboxWorld extends GateWorld {
  /** Another process over the same data and the same production; with an engine of its own where the store can be opened twice. */
  restart(over?: Partial<GateOptions>): Promise<Gate>;
}

export type OpenWorld = (over?: Partial<GateOptions>) => Promise<InboxWorld>;

export function onStores(
  title: string,
  define: (open: OpenWorld) => void,
  names: readonly StoreName[] = ["memory", "sqlite"],
): void {
  forEachStore(title, (open) => define(async (over = {}) => worldOn(await open(), over)), names);
}

function worldOn(store: TestStore, over: Partial<GateOptions>): InboxWorld {
  const { engine, clock } = store;
  const world = openGate(over, { engine, clock });
  const tools = over.tools ?? Object.values(world.tools);
  return {
    ...world,
    async restart(more = {}) {
      const other = store.again === undefined ? store : await store.again();
      return openGate({ ...over, tools, ...more }, { engine: other.engine, clock }).gate;
    },
  };
}

export const set = (key: string, value: number | string, callId = "c-1"): CallRequest =>
  request("world.set", { key, value }, callId);

/** Yes to what is shown at this moment. */
export async function yes(gate: Gate, id: string, by = PERSON) {
  const { hash } = await gate.interactions.get(id);
  return gate.interactions.approve(id, { hash, by });
}

export async function no(gate: Gate, id: string, by = PERSON, reason = "not today") {
  const { hash } = await gate.interactions.get(id);
  return gate.interactions.reject(id, { hash, by, reason });
}

/** The one question that is open; more or none is a failure of the test. */
export async function onlyOpen(gate: Gate): Promise<Interaction> {
  const open = await gate.interactions.list();
  const [first] = open;
  if (first === undefined || open.length > 1) throw new Error(`${open.length} questions are open`);
  return first;
}

export function answers(list: readonly CallAnswer[]): readonly string[] {
  return list.map(({ answer }) => answer);
}

/** The code of the error that it ends with; what ends well is a failure of the test. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof SallyportError) return error.code;
    throw error;
  }
  throw new Error("it was accepted");
}

/** How often each kind of entry stands in the trail. */
export async function counted(gate: Gate): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  let after = 0;
  for (;;) {
    const entries = await gate.audit.read({ after, limit: 1_000 });
    for (const { type } of entries) counts[type] = (counts[type] ?? 0) + 1;
    const last = entries.at(-1);
    if (last === undefined) return counts;
    after = last.seq;
  }
}

/** A tool that loses its answer as often as requested, with a ledger of what arrived. */
export function lossy(name = "far.send"): { tool: Tool; sent: string[]; losses: { left: number } } {
  const sent: string[] = [];
  const losses = { left: 0 };
  const tool = defineTool({
    name,
    description: "Sends something far away.",
    input: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
    safety: { effect: "external", reversible: true },
    execute({ input }) {
      sent.push(String(input["what"]));
      if (losses.left > 0) {
        losses.left -= 1;
        throw new SallyportError("outcome_unknown", { hint: "the line went dead" });
      }
      return "sent";
    },
    undo: ({ input }) => ({ tool: name, input: { what: `back ${String(input["what"])}` } }),
  });
  return { tool, sent, losses };
}

/** What every answer of a person carries. */
export async function seen(gate: Gate, id: string, by = PERSON) {
  const { hash } = await gate.interactions.get(id);
  return { hash, by };
}
