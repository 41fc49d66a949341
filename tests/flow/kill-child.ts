/**
 * An agent with its flow, its gate and the people who answer it, in one process that may be cut off after any event. Run again
 * it goes on. The argument is a `KillPlan` as JSON; it ends with 0 when the summary was delivered.
 */
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { createRedactor } from "../../src/audit/redact.ts";
import { createFlow, type Flow, type FlowOutcome } from "../../src/flow/create-flow.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import type { InteractionSnapshot } from "../../src/model/interaction.ts";
import type { Engine } from "../../src/store/engine.ts";
import { postgresEngine } from "../../src/store/postgres/index.ts";
import { sqliteEngine } from "../../src/store/sqlite/index.ts";
import { createStore } from "../../src/store/store.ts";
import { systemClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { sampleVerdictValidator } from "../support/validators.ts";
import {
  appendLine,
  ledgerLines,
  linesOf,
  POLICY,
  textOfStep,
  worldModel,
  worldTools,
} from "./kill-world.ts";

export interface KillPlan {
  readonly store: "sqlite" | "postgres";
  readonly place: string;
  readonly ledger: string;
  /** Where summaries go. */
  readonly out: string;
  /** Every event this process comes past, for choosing where to kill the next; empty for none. */
  readonly log: string;
  /** Killed right after so many events, all kinds counted; 0 for never. */
  readonly killAfter: number;
  /** Count only what was committed and is new: then every process gets one event further than the one before. */
  readonly onlyNew: boolean;
}

export const TENANT = "acme";
const CONVERSATION = "talk-1";
const PERSON = "person:ada";
const LEASE_MS = 250;
const PATIENCE_MS = 60_000;
const AGAIN: readonly string[] = [
  "operation.taken_over",
  "operation.reopened",
  "operation.attempted",
];

if (process.argv[1] === import.meta.filename) await main(JSON.parse(process.argv[2] ?? "{}"));

async function main(plan: KillPlan): Promise<void> {
  let events = 0;
  const tick = (what: string, isNew = false) => {
    if (plan.log !== "") appendLine(plan.log, { what });
    if (plan.onlyNew && !isNew) return;
    events += 1;
    if (events === plan.killAfter) process.kill(process.pid, "SIGKILL");
  };
  const { engine, close } = await openEngine(plan);
  const told: Engine = {
    ...engine,
    async commit(tenant, change) {
      const result = await engine.commit(tenant, change);
      const types = change.events.map(({ type }) => type);
      // To begin the same operation again is nothing new: who dies each time it begins never gets to do it.
      const isNew = !types.some((type) => AGAIN.includes(type));
      if (result.committed) tick(types.join("+"), isNew);
      return result;
    },
  };
  const store = createStore(told, { redact: createRedactor({}) });
  const gate = createGate({
    store,
    tenant: TENANT,
    tools: worldTools(plan.ledger, tick),
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: POLICY,
    leaseMs: LEASE_MS,
  });
  const flow = createFlow({
    model: worldModel(() => `${process.pid}-${events}-${Math.random()}`, tick),
    openSession: ({ conversationId }) =>
      gate.sessions.open({ id: conversationId, agent: "agent:one" }),
    tools: gate.tools,
    states: store.tenant(TENANT).flowStates,
    onEvent(event) {
      if (event.type === "delivered") appendLine(plan.out, { summary: event.summary });
      tick(`told ${event.type}`);
    },
    onProblem({ error }) {
      throw error;
    },
    modelRetries: 0,
  });
  await untilDelivered(flow, gate, plan);
  await close();
}

/** What the people and the host around a flow do, however often it is cut off. */
async function untilDelivered(flow: Flow, gate: Gate, { out, ledger }: KillPlan): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  await gate.recover();
  let outcome = await flow.resume(CONVERSATION);
  while (performance.now() < deadline) {
    if (outcome.outcome === "delivered") return;
    if (outcome.outcome === "nothing_stored") {
      // Cut off after the end, or before anything was saved.
      if (linesOf(out).length > 0) return;
      outcome = await flow.handle({ conversationId: CONVERSATION, message: "Do the ten steps." });
      continue;
    }
    if (outcome.outcome !== "waiting") throw new Error(`unexpected: ${JSON.stringify(outcome)}`);
    await gate.recover();
    if (!(await answer(gate, ledger))) await setTimeout(LEASE_MS / 5);
    outcome = await goOn(flow, outcome.interaction);
  }
  throw new Error(`it did not come to an end: ${JSON.stringify(outcome)}`);
}

function goOn(flow: Flow, open: InteractionSnapshot): Promise<FlowOutcome> {
  const { type, interaction_id: interactionId, version } = open;
  const answer = { conversationId: CONVERSATION, interactionId, version };
  if (type === "connection_lost") return flow.resume(CONVERSATION);
  return type === "confirm" ? flow.confirm(answer) : flow.reply(answer);
}

/** A person works through the inbox. False when there was nothing in it. */
async function answer({ interactions: inbox }: Gate, ledger: string): Promise<boolean> {
  const open = await inbox.list({ status: "open", limit: 100 });
  for (const { id, type, hash, choices, operationId } of open) {
    const by = { hash, by: PERSON };
    if (type === "confirm") await inbox.approve(id, by);
    if (type === "ask_user") {
      await inbox.answer(id, { ...by, answer: choices.includes("accept") ? "accept" : "blue" });
    }
    if (type === "connection_lost") {
      const line = ledgerLines(ledger).find(({ key }) => key.includes(operationId));
      await inbox.settle(
        id,
        line === undefined
          ? { ...by, happened: false, otherwise: "repeat" }
          : { ...by, happened: true, output: textOfStep(line.step) },
      );
    }
  }
  return open.length > 0;
}

export async function openEngine({
  store,
  place,
}: Pick<KillPlan, "store" | "place">): Promise<{ engine: Engine; close(): Promise<void> }> {
  const parts = {
    clock: systemClock,
    random: systemRandom,
    timers: systemTimers,
    patienceMs: 2_000,
  };
  if (store === "sqlite") {
    const engine = sqliteEngine({ ...parts, file: place });
    return { engine, close: () => engine.close() };
  }
  const pool = new pg.Pool({ connectionString: place, max: 3 });
  const engine = await postgresEngine({ ...parts, pool, schema: "sallyport" });
  return {
    engine,
    async close() {
      await engine.close();
      await pool.end();
    },
  };
}
