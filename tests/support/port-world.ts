// For attacks on the port: production as one ledger, tools of every kind on it, and an engine that a test can reach into.

import { createRedactor } from "../../src/audit/redact.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { allowAlways } from "../../src/gate/review.ts";
import type { CallAnswer, CallRequest } from "../../src/model/operation.ts";
import { NO_RULES, type Policy } from "../../src/policy/policy.ts";
import type { Cell, Change, Engine, Table } from "../../src/store/engine.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { createStore } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { canonicalJson } from "../../src/util/canonical-json.ts";
import { type ManualClock, manualClock } from "../../src/util/clock.ts";
import type { JsonObject, JsonValue } from "../../src/util/json.ts";
import { systemRandom } from "../../src/util/random.ts";
import { sampleVerdictValidator } from "./validators.ts";

export const TENANT = "acme";
export const PERSON = "person:ada";
export const AGENT = "agent:one";

/** What reached production: `tool input`, in order. Reads are kept apart, because only they need no consent. */
export interface World {
  readonly values: Map<string, JsonValue>;
  readonly effects: string[];
  readonly reads: string[];
  readonly tools: { readonly [Name in "look" | "set" | "blind" | "keen" | "shell"]: Tool };
}

const KEY = { type: "string", maxLength: 64 } as const;
const PAIR: JsonObject = {
  type: "object",
  properties: { key: KEY, value: { type: ["string", "integer", "null"] } },
  required: ["key", "value"],
  additionalProperties: false,
};
type Pair = { key: string; value: JsonValue };

export function createWorld(): World {
  const values = new Map<string, JsonValue>();
  const effects: string[] = [];
  const reads: string[] = [];
  const hit = (tool: string, input: unknown) => {
    effects.push(`${tool} ${canonicalJson(input as JsonValue)}`);
  };
  const look = defineTool({
    name: "world.look",
    description: "Shows a value.",
    input: { type: "object", properties: { key: KEY }, additionalProperties: false },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    aliases: ["world.peek"],
    execute({ input }) {
      reads.push(canonicalJson(input));
      return String(values.get(String(input["key"])) ?? "none");
    },
  });
  /** Declares everything: dry run, version of the target, undo. */
  const set = defineTool({
    name: "world.set",
    description: "Sets a value.",
    input: PAIR,
    safety: { effect: "external", reversible: true },
    aliases: ["world.put"],
    dryRun: ({ input: { key, value } }) => `${key}: ${values.get(String(key))} -> ${value}`,
    stateVersion: async ({ input }) => canonicalJson(values.get(String(input["key"])) ?? null),
    async execute({ input }) {
      const { key, value } = input as unknown as Pair;
      const before = values.get(key) ?? null;
      hit("world.set", input);
      try {
        values.set(key, value);
      } catch (error) {
        // Production said no, so nothing happened.
        const text = error instanceof Error ? error.message : String(error);
        return { text, isError: true, data: { key, value: before } };
      }
      return { text: "set", isError: false, data: { key, value: before } };
    },
    undo: ({ output }) => ({ tool: "world.set", input: output as Pair }),
  });
  /** Tells nothing: no dry run, no version, any input. Only hashes can hold its calls to what was shown. */
  const blind = defineTool({
    name: "world.blind",
    description: "Does as it is told.",
    input: { type: "object", additionalProperties: true },
    safety: { effect: "external" },
    execute({ input }) {
      try {
        hit("world.blind", input);
      } catch (error) {
        return { text: error instanceof Error ? error.message : String(error), isError: true };
      }
      return { text: "done", isError: false };
    },
  });
  const keen = defineTool({
    name: "world.keen",
    description: "Wants an honest estimate.",
    input: PAIR,
    safety: { effect: "external", confidenceMin: 80 },
    execute({ input }) {
      hit("world.keen", input);
      return "done";
    },
  });
  const shell = defineTool({
    name: "world.shell",
    description: "Runs a command.",
    input: {
      type: "object",
      properties: { command: { type: "string" } },
      required: ["command"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    permissionClass: "bash",
    resources: ({ input }) => [{ kind: "command", command: String(input["command"]) }],
    execute({ input }) {
      hit("world.shell", input);
      return "ran";
    },
  });
  return { values, effects, reads, tools: { look, set, blind, keen, shell } };
}

/** An engine whose commits a test can stop at, and whose rows it can change behind everybody's back. */
export interface Tap {
  readonly engine: Engine;
  /** Awaited before, or after, a change is written. */
  before: (change: Change) => void | Promise<void>;
  after: (change: Change) => void | Promise<void>;
  /** A yes that comes with its intent is refused, so that the two are written one after the other. */
  isApart: boolean;
  /** Writes cells directly into the database, without rules and without a trace. */
  tamper(table: Table, id: string, cells: Readonly<Record<string, Cell>>): Promise<void>;
}

export function tapped(inner: Engine): Tap {
  const tap: Tap = {
    before: () => {},
    after: () => {},
    isApart: false,
    engine: {
      ...inner,
      async commit(tenant, change) {
        if (tap.isApart && isApproval(change) && isIntent(change)) {
          return { committed: false, step: 0, current: undefined };
        }
        await tap.before(change);
        const result = await inner.commit(tenant, change);
        if (result.committed) await tap.after(change);
        return result;
      },
    },
    async tamper(table, id, cells) {
      for (const [column, cell] of Object.entries(cells)) {
        // The one door past the trail; it writes any cell, though it is only meant for times.
        await inner.backdate(TENANT, table, id, column, cell as number);
        const row = await inner.get(TENANT, table, id);
        if (!sameCell(row?.[column], cell)) {
          throw new Error(`${table.name}.${column} of ${id} was not changed`);
        }
      }
    },
  };
  return tap;
}

/** Drivers hand out bytes as Buffers. */
function sameCell(a: Cell | undefined, b: Cell): boolean {
  if (!(a instanceof Uint8Array && b instanceof Uint8Array)) return a === b;
  return Buffer.compare(a, b) === 0;
}

/** The moment between a yes and what it leads to. */
export function isApproval({ steps }: Change): boolean {
  return steps.some((step) => step.op === "update" && step.set["state"] === "approved");
}

/** The moment before the intent of an execution is on disk. */
export function isIntent({ steps }: Change): boolean {
  return steps.some((step) => step.op === "insert" && step.table.name === "operations");
}

export interface GateWorld extends World {
  readonly gate: Gate;
  readonly tap: Tap;
  readonly clock: ManualClock;
  /** Another port over the same store, as after a restart with another configuration. */
  again(over?: Partial<GateOptions>): Gate;
}

const START = Date.parse("2026-11-15T06:00:00.000Z");

/** In memory unless given an engine with its clock. */
export function openGate(
  over: Partial<GateOptions> = {},
  place: { readonly engine?: Engine; readonly clock?: ManualClock } = {},
): GateWorld {
  const { clock = manualClock(START) } = place;
  const { engine = memoryEngine({ clock, random: systemRandom }) } = place;
  const world = createWorld();
  const tap = tapped(engine);
  const store = createStore(tap.engine, { redact: createRedactor({}) });
  const again: GateWorld["again"] = (more = {}) =>
    createGate({
      store,
      clock,
      tenant: TENANT,
      tools: Object.values(world.tools),
      validators: {
        tech: sampleVerdictValidator("schema"),
        business: sampleVerdictValidator("limits"),
      },
      guard: allowAlways,
      policy: NO_RULES,
      ...over,
      ...more,
    });
  return { ...world, tap, clock, again, gate: again() };
}

export function request(tool: string, input: CallRequest["input"], callId = "c-1"): CallRequest {
  return { callId, tool, input, messageId: "m-1" };
}

/** The decision that an answer waits for; any other answer is a failure of the test. */
export function decisionIdOf(answer: CallAnswer): string {
  if (answer.answer === "pending") return answer.decisionId;
  throw new Error(`expected a question, got ${answer.answer}: ${answer.text}`);
}

/** Says yes to what is shown at this moment, as a person in front of a screen does. */
export async function approve(gate: Gate, id: string, by = PERSON): Promise<readonly CallAnswer[]> {
  const hash = (await gate.interactions.shown(id))?.hash ?? "";
  return (await gate.interactions.approve(id, { hash, by })).answers;
}

/** Everything that comes, in the order in which it came. */
export async function collected<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

export function rules(...list: Policy["rules"]): Policy {
  return { version: `v${list.length}`, rules: list };
}
