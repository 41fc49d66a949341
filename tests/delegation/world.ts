// Delegation without a port: a store, a service over it, and a session that is only a name.

import { createRedactor } from "../../src/audit/redact.ts";
import { createDelegations, type DelegationParts } from "../../src/delegation/delegations.ts";
import {
  createGateRunner,
  type DelegationRequest,
  grantAuthorisation,
  type Parent,
} from "../../src/delegation/plan.ts";
import { createRuns, type NewRun } from "../../src/delegation/runs.ts";
import type { Run } from "../../src/model/delegation.ts";
import type { GatePolicy } from "../../src/policy/decide.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { createStore } from "../../src/store/store.ts";
import { manualClock } from "../../src/util/clock.ts";
import { createIds } from "../../src/util/ids.ts";
import { type Random, systemRandom } from "../../src/util/random.ts";
import { systemTimers, type Timers } from "../../src/util/timers.ts";

export const START = Date.parse("2026-11-15T06:00:00.000Z");
export const LEAD = "agent:lead";
export const ADA = { actor: "person:ada" };
export const PROMISE = { id: "p-run", statement: "it works", evidence: [{ name: "tests" }] };

export interface OpenSession {
  readonly id: string;
  readonly agents: readonly string[];
  readonly signal: AbortSignal;
}

export function openWorld(
  over: {
    readonly policies?: readonly GatePolicy[];
    readonly timers?: Timers;
    readonly random?: Random;
  } = {},
) {
  const { policies = [], timers = systemTimers, random = systemRandom } = over;
  const clock = manualClock(START);
  const engine = memoryEngine({ clock, random });
  const store = createStore(engine, { redact: createRedactor({}) }).tenant("acme");
  const ids = createIds({ clock, random });
  const problems: unknown[] = [];
  const parts: DelegationParts<OpenSession> = {
    store,
    policies,
    folderFor: async (asked) => asked,
    open: ({ id, agents }, signal) => ({ id, agents, signal }),
    clock,
    random,
    timers,
    newId: () => ids.next(),
    onProblem: (problem) => void problems.push(problem),
  };
  const delegations = createDelegations(parts);
  const gate = createGateRunner({
    policies,
    ledger: store.gateLedger,
    newTraceId: parts.newId,
    onProblem: parts.onProblem,
  });
  const runs = createRuns({
    runs: store.runs,
    audit: store.audit,
    gate,
    authorisation: async (id) => grantAuthorisation(await store.grants.listFor(id), clock.now()),
    newId: parts.newId,
  });
  const lead = (sessionId = "session-1"): Parent => ({
    sessionId,
    agents: [LEAD],
    workingDirectory: "/work",
  });
  /** A run that has come to this phase. */
  async function runIn(phase: Run["phase"], more: Partial<NewRun> = {}, files = ["/work/a.ts"]) {
    const usual = { documents: "/work/docs", evidenceFolder: "", budget: 5, promise: PROMISE };
    const run = await runs.start({ feature: "f", lead: LEAD, ...usual, ...more });
    const way = ["spec", "plan", "execute", "verify"] as const;
    for (const next of phase === "discuss" ? [] : way.slice(0, way.indexOf(phase as "spec") + 1)) {
      if (next === "execute") await runs.approvePlan(run.id, files, ADA);
      await runs.enter(run.id, next, { actor: LEAD });
    }
    return runs.get(run.id);
  }
  const types = async () =>
    (await store.audit.read({ after: 0, limit: 10_000 })).map(({ type }) => type);
  return { clock, engine, store, delegations, runs, lead, runIn, problems, types, parts };
}

export function asks(more: Partial<DelegationRequest> = {}): DelegationRequest {
  return {
    agent: "agent:child",
    role: "research",
    task: "find the cause",
    capsule: "the log says no",
    promise: { id: "p-1", statement: "the cause is known", evidence: [] },
    tools: ["*"],
    ...more,
  };
}

export function parentOf(delegation: {
  readonly id: string;
  readonly agents: readonly string[];
}): Parent {
  return { sessionId: delegation.id, agents: delegation.agents, workingDirectory: "/work" };
}
