/** A process that has the tool and runs upkeep. The argument is a `WorkerPlan` as JSON; it says "ready" over the IPC channel. */
import { appendFileSync } from "node:fs";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import type { CrashPoint } from "../../src/gate/options.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { startUpkeep } from "../../src/gate/upkeep.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import type { Store } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { openStore } from "../interactions/processes/person-child.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

export interface WorkerPlan {
  readonly store: "sqlite" | "postgres";
  readonly place: string;
  readonly ledger: string;
  /** Where it kills itself. */
  readonly diesAt?: CrashPoint;
}

/** One line for each execution: when, and what. */
export function noteTool(ledger: string): Tool {
  return defineTool({
    name: "ops.note",
    description: "Notes a number.",
    input: {
      type: "object",
      properties: { n: { type: "integer" } },
      required: ["n"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    execute({ input }) {
      appendFileSync(ledger, `${Date.now()} ${String(input["n"])}\n`);
      return `noted ${String(input["n"])}`;
    },
  });
}

export function gateOver(store: Store, tools: readonly Tool[], diesAt?: CrashPoint): Gate {
  return createGate({
    store,
    tenant: "acme",
    tools,
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: NO_RULES,
    leaseMs: 2_000,
    at(point) {
      if (point === diesAt) process.kill(process.pid, "SIGKILL");
    },
  });
}

const argument = process.argv[2];
if (argument?.startsWith("{") && process.send !== undefined) {
  const plan: WorkerPlan = JSON.parse(argument);
  const { store } = await openStore(plan);
  const gate = gateOver(store, [noteTool(plan.ledger)], plan.diesAt);
  startUpkeep({ gate, everyMs: 1_000, onError: (error) => console.error(error) });
  // Timers alone do not keep a process alive.
  process.on("message", () => {});
  process.send("ready");
}
