import { createExecutor, type ExecutorOptions, type Order } from "../../src/gate/execute.ts";

import { memoryStore } from "../../src/store/memory/index.ts";
import { definitionHash } from "../../src/tools/definition.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { manualClock } from "../../src/util/clock.ts";
import { manualTimers } from "../../src/util/manual-timers.ts";

export const LEASE_MS = 30_000;

/** A store in memory, a clock that stands still, and workers over them who carry out one order for one tool. */
export function oneWorker(tool: Tool, options: Partial<ExecutorOptions> = {}) {
  const clock = manualClock(Date.parse("2026-11-15T06:00:00.000Z"));
  const timers = manualTimers(clock);
  const tenant = memoryStore({ clock }).tenant("acme");
  const { operations, audit } = tenant;
  const worker = () =>
    createExecutor({ tenant: "acme", operations, timers, leaseMs: LEASE_MS, ...options });
  const order: Order = {
    operationId: "op-1",
    tool,
    definitionHash: definitionHash(tool),
    input: {},
    sessionId: "s-1",
    messageId: "m-1",
    callId: "c-1",
    turn: 1,
    step: 0,
    workingDirectory: "",
    places: [],
    actor: "executor",
  };
  const trail = async () =>
    (await audit.read({ after: 0, limit: 50 })).map(({ type }) => type.replace("operation.", ""));
  return { ...tenant, clock, timers, worker, executor: worker(), order, trail };
}
