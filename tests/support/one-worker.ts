import { repeatOrder, resumeOrder, runOrder } from "../../src/gate/attempt.ts";
import type { ExecutionContext } from "../../src/gate/context.ts";
import type { Order } from "../../src/gate/order.ts";
import type { Operation } from "../../src/model/operation.ts";
import type { Along } from "../../src/store/engine.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { definitionHash } from "../../src/tools/registry.ts";
import type { Progress, Tool } from "../../src/tools/tool.ts";
import { manualClock } from "../../src/util/clock.ts";
import { RunningWork } from "../../src/util/running-work.ts";
import { manualTimers } from "./manual-timers.ts";

export const LEASE_MS = 30_000;

/** A store in memory, a clock that stands still, and workers over them that execute one order for one tool. */
export function oneWorker(tool: Tool, options: Partial<ExecutionContext> = {}) {
  const clock = manualClock(Date.parse("2026-11-15T06:00:00.000Z"));
  const timers = manualTimers(clock);
  const tenant = memoryStore({ clock }).tenant("acme");
  const { operations, audit } = tenant;
  const running = new RunningWork<Progress>();
  const settings = {
    leaseMs: LEASE_MS,
    timeoutMs: 120_000,
    processor: undefined,
    at: () => {},
    running,
  };
  const context = { store: { tenant: "acme", operations }, timers, ...settings, ...options };
  const worker = () => ({
    run: (one: Order) => runOrder(context, one),
    resume: (one: Order, left: Operation) => resumeOrder(context, one, left),
    repeat: (one: Order, left: Operation, along: readonly Along[]) =>
      repeatOrder(context, one, left, along),
  });
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
    judgePlace: () => "deny",
    actor: "executor",
  };
  const trail = async () =>
    (await audit.read({ after: 0, limit: 50 })).map(({ type }) => type.replace("operation.", ""));
  return { ...tenant, clock, timers, worker, executor: worker(), order, trail };
}
