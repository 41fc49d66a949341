// Delegation through a real port: a box with slots, tools of every kind on it, and a run whose plan lists some slots.

import type { Delegated, DelegationRequest } from "../../src/delegation/plan.ts";
import type { Gate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import type { Session } from "../../src/gate/session.ts";
import type { Run } from "../../src/model/delegation.ts";
import type { Engine } from "../../src/store/engine.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { type ManualClock, manualClock } from "../../src/util/clock.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { openGate, rules } from "../support/port-world.ts";
import { ADA, asks, LEAD, PROMISE, START } from "./world.ts";

const INPUT: JsonObject = {
  type: "object",
  properties: { slot: { type: "string" }, value: { type: "integer" } },
  required: ["slot", "value"],
  additionalProperties: false,
};
type Put = { slot: string; value: number };

export interface Effect {
  readonly tool: string;
  readonly slot: string;
  readonly sessionId: string;
}

export function boxTools(effects: Effect[], box = new Map<string, number>()) {
  const put = (name: string, more: { readonly idempotency?: "keyed" } = {}): Tool =>
    defineTool({
      name,
      description: "Puts a number into a slot.",
      input: INPUT,
      safety: { effect: "write", reversible: true },
      resources: ({ input }) => [
        { kind: "other", id: `slot:${String(input["slot"])}`, access: "write" },
      ],
      async execute({ input, sessionId }) {
        const { slot, value } = input as Put;
        const before = box.get(slot) ?? 0;
        effects.push({ tool: name, slot, sessionId });
        box.set(slot, value);
        return { text: "put", data: { slot, value: before } };
      },
      undo: ({ output }) => ({
        tool: name === "box.keyed" ? name : "box.put",
        input: output as Put,
      }),
      ...more,
    });
  const burn = defineTool({
    name: "box.burn",
    description: "Burns what is in a slot.",
    input: INPUT,
    safety: { effect: "external", reversible: false, undoMethod: "manual" },
    resources: ({ input }) => [
      { kind: "other", id: `slot:${String(input["slot"])}`, access: "write" },
    ],
    execute({ input, sessionId }) {
      effects.push({ tool: "box.burn", slot: String(input["slot"]), sessionId });
      return "burnt";
    },
  });
  const look = defineTool({
    name: "box.look",
    description: "Looks into the box.",
    input: { type: "object", additionalProperties: false },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute: () => JSON.stringify([...box]),
  });
  // No rule allows it, so a person is asked; the answer does not widen the scope.
  return [put("box.put"), put("box.keyed", { idempotency: "keyed" }), put("box.asked"), burn, look];
}

export const ALLOWED = rules(
  ...["box.put", "box.keyed"].map((tool) => ({
    id: tool,
    effect: "allow" as const,
    tool,
    reason: "it is a box",
  })),
);

export interface BoxWorld {
  readonly gate: Gate;
  readonly effects: Effect[];
  readonly clock: ManualClock;
  readonly box: Map<string, number>;
  readonly tap: ReturnType<typeof openGate>["tap"];
  again(over?: Partial<GateOptions>): Gate;
}

export function openBox(
  over: Partial<GateOptions> = {},
  place: { readonly engine?: Engine; readonly clock?: ManualClock } = {},
): BoxWorld {
  const effects: Effect[] = [];
  const box = new Map<string, number>();
  const { clock = manualClock(START) } = place;
  const options = { tools: boxTools(effects, box), policy: ALLOWED, ...over };
  const { gate, again, tap } = openGate(options, { ...place, clock });
  return { gate, effects, clock, box, again, tap };
}

/** A run in the phase execute, whose plan lists these slots, and the session of its lead. */
export async function startRun(
  gate: Gate,
  slots: readonly string[],
): Promise<{ run: Run; session: Session }> {
  const started = await gate.runs.start({
    feature: "boxes",
    lead: LEAD,
    promise: PROMISE,
    documents: "",
    evidenceFolder: "",
    budget: 100,
  });
  for (const phase of ["spec", "plan", "execute"] as const) {
    if (phase === "execute") {
      const files = slots.map((slot) => `slot:${slot}`);
      await gate.runs.approvePlan(started.id, files, ADA);
    }
    await gate.runs.enter(started.id, phase, { actor: LEAD });
  }
  const session = gate.sessions.open({ id: started.id, agent: LEAD });
  return { run: await gate.runs.get(started.id), session };
}

export const codes = (more: Partial<DelegationRequest> = {}): DelegationRequest =>
  asks({ role: "code", tools: ["box.*"], ...more });

/** The child's session; any other answer is a failure of the test. */
export async function child(gate: Gate, parent: Session, request: DelegationRequest) {
  const given: Delegated = await parent.delegate(request);
  if (given.answer !== "delegated") throw new Error(`expected yes, got: ${JSON.stringify(given)}`);
  const { session, watch } = await gate.delegations.attach(given.delegation.id, given.token);
  // Tests look by themselves; a timer would only outlive them.
  watch.stop();
  return { session, id: given.delegation.id, token: given.token, delegation: given.delegation };
}

let calls = 0;
export function put(slot: string, tool = "box.put") {
  calls += 1;
  return { callId: `c-${calls}`, messageId: "m-1", tool, input: { slot, value: calls } };
}
