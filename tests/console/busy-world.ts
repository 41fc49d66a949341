// A day in the warehouse: forty questions that wait, and enough behind them to fill every page.

import { createFlow } from "../../src/flow/index.ts";
import type { Session } from "../../src/gate/session.ts";
import { delegationId } from "../../src/model/delegation.ts";
import { PLAN, planOf } from "../flow/flow-world.ts";
import { modelSaying } from "../flow/scripted-model.ts";
import { type ConsoleWorld, propose } from "./console-world.ts";

export interface Busy {
  /** One with a diff, one that cannot be inspected, a bundle, a question, a lost answer. */
  readonly ids: Readonly<Record<"diff" | "blind" | "bundle" | "long", string>>;
  readonly sessionId: string;
  readonly runId: string;
  /** One whose plan waits. */
  readonly talkId: string;
}

export async function fillWorld(world: ConsoleWorld, waiting = 40): Promise<Busy> {
  const { gate, tasks } = world;
  const [stock, buyer, floor] = await Promise.all([
    world.session("agent:stock-keeper"),
    world.session("agent:buyer"),
    world.session("agent:floor"),
  ]);
  await history(world, stock);
  const lost = await propose(floor, "carrier.book", { carrier: "Hermes", pallets: 4 });
  await decide(world, lost, true);
  const diff = await propose(stock, "stock.set", { sku: "bolt-m8", quantity: 95 });
  const blind = await propose(floor, "notes.send", {
    to: "gate 4",
    text: "Please unload trailer 17 first.\nThe driver has to leave at noon.",
    urgent: true,
  });
  const long = await propose(floor, "notes.send", { text: "lorem ipsum dolor ".repeat(400) });
  const bundle = await stage(stock);
  await floor.ask({
    callId: "gate",
    text: "Which gate takes the late trailer?",
    choices: ["north", "south"],
  });
  await floor.ask({
    callId: "code",
    text: "The scanner asks for the code of the day. What is it?",
  });
  for (let i = 0; i < waiting - 8; i += 1) {
    const sku = `part-${String(i).padStart(3, "0")}`;
    if (i % 3 === 0)
      await propose(buyer, "orders.place", { supplier: "Ohm & Co", sku, quantity: 10 + i });
    else await propose(stock, "stock.set", { sku, quantity: 5 * i });
  }
  const names = [
    "Count the bolts",
    "Label shelf 9",
    "Check trailer 17",
    "Sort returns",
    "Print new labels",
  ];
  for (const [index, subject] of names.entries()) {
    const task = await tasks.add({
      subject,
      description: "As agreed this morning.",
      priority: index,
    });
    if (index === 0) continue;
    const { fence } = await tasks.claim({ id: task.id, claimer: "agent:floor", leaseMs: 600_000 });
    if (index === 2)
      await tasks.complete({ id: task.id, fence: fence ?? 0, result: "All 24 pallets are there." });
    if (index === 3)
      await tasks.fail({ id: task.id, fence: fence ?? 0, reason: "The scanner is broken." });
  }
  await delegations(world);
  const runId = await rules(world, stock.id);
  const talkId = await talk(world);
  await gate.interactions.sweep();
  return { ids: { diff, blind, bundle, long }, sessionId: stock.id, runId, talkId };
}

async function stage(session: Session): Promise<string> {
  const calls = ["nut-m8", "bolt-m8", "screw-m6"].map((sku, index) => ({
    callId: `bundle-${index}`,
    tool: "stock.set",
    input: { sku, quantity: 10 * index },
    messageId: "m-bundle",
  }));
  const answer = await session.stage(calls);
  if (answer.answer !== "pending") throw new Error(answer.text);
  return answer.interactionId;
}

async function history(world: ConsoleWorld, session: Session): Promise<void> {
  for (let i = 0; i < 12; i += 1) {
    const id = await propose(session, "stock.set", { sku: `old-${i}`, quantity: i });
    await decide(world, id, i % 4 !== 0);
  }
}

async function decide({ gate }: ConsoleWorld, id: string, yes: boolean): Promise<void> {
  const { hash } = await gate.interactions.get(id);
  if (yes) await gate.interactions.approve(id, { hash, by: "person:bob" });
  else await gate.interactions.reject(id, { hash, by: "person:bob", reason: "Not today." });
}

async function delegations({ store }: ConsoleWorld): Promise<void> {
  const scope = {
    planId: "plan-7",
    role: "research",
    writePermission: "none",
    planFiles: [],
    documents: [],
    artefact: "",
    tools: ["stock.*"],
    calls: 20,
    depth: 2,
  } as const;
  const root = {
    parentSession: "run-root",
    rootSession: "run-root",
    owner: "person:ada",
    runId: "",
    traceId: "trace-1",
    capsule: "Find out which articles run out this week.",
    promise: {
      id: "p-1",
      statement: "A list of articles with numbers.",
      evidence: [{ name: "list" }],
    },
    atOnce: 5,
    workingDirectory: "",
    tokenHash: "0".repeat(64),
    actor: "agent:planner",
    ttlMs: 3_600_000,
  };
  const first = await store.delegations.create({
    ...root,
    id: delegationId("one"),
    parent: undefined,
    agents: ["agent:researcher", "agent:planner"],
    task: "Find out which articles run out this week.",
    scope,
  });
  if (!first.created) throw new Error(first.reason);
  const second = await store.delegations.create({
    ...root,
    id: delegationId("two"),
    parent: first.delegation,
    parentSession: first.delegation.id,
    agents: ["agent:counter", "agent:researcher", "agent:planner"],
    task: "Count shelf 9.",
    scope: { ...scope, calls: 5, depth: 1 },
    ttlMs: 1_800_000,
  });
  if (!second.created) throw new Error(second.reason);
}

/** A rule that holds and was used, one that waits for an admin, a lifted finding and a run. */
async function rules({ gate }: ConsoleWorld, sessionId: string): Promise<string> {
  const small = {
    tool: "stock.set",
    pattern: { sku: { like: "label-*" }, quantity: { atLeast: 0, atMost: 50 } },
    forMs: 8 * 3_600_000,
    reason: "Labels are counted twice a day and cost next to nothing.",
    by: "person:olga",
  } as const;
  const { id } = await gate.standingRules.propose(small);
  await gate.standingRules.confirm(id, { by: "person:bob" });
  const session = gate.sessions.open({ id: sessionId, agent: "agent:stock-keeper" });
  for (const quantity of [12, 30]) {
    const input = { sku: "label-a4", quantity };
    await session.call({ callId: `label-${quantity}`, tool: "stock.set", input });
  }
  const wide = { quantity: { atMost: 200 }, sku: { oneOf: ["bolt-m8", "nut-m8"] } };
  await gate.standingRules.propose({ ...small, pattern: wide, reason: "Bolts, before the fair." });
  await gate.grants.give({
    sessionId,
    finding: { policy: "stocktaking", message: "No changes of stock while it is being counted." },
    grantor: "user",
    scope: { kind: "finding" },
    by: "person:olga",
    reason: "The hall manager agreed by phone.",
  });
  const run = await gate.runs.start({
    feature: "Labels for the new shelves",
    lead: "agent:planner",
    promise: { id: "p-2", statement: "Every shelf has one.", evidence: [{ name: "walk-through" }] },
    documents: "",
    evidenceFolder: "",
    budget: 6,
  });
  await gate.runs.enter(run.id, "spec", { actor: "agent:planner" });
  const planner = gate.sessions.open({ id: run.id, agent: "agent:planner" });
  await planner.call({ callId: "look", tool: "stock.look", input: { sku: "bolt-m8" } });
  await planner.call({ callId: "no", tool: "shelves.paint", input: { colour: "red" } });
  return run.id;
}

/** A conversation whose plan waits: one of the forty. */
async function talk({ gate, store, problems }: ConsoleWorld): Promise<string> {
  const flow = createFlow({
    model: modelSaying(PLAN, planOf("Count the nuts", "Correct their number")),
    openSession: ({ conversationId, userId }) =>
      gate.sessions.open({ id: `talk.${conversationId}`, agent: "agent:desk", owner: userId }),
    tools: gate.tools,
    states: store.flowStates,
    onProblem: ({ error }) => problems.push(String(error)),
    modelRetries: 0,
  });
  const talkId = "person:ivan:nuts";
  const asked = await flow.handle({
    conversationId: talkId,
    userId: "person:ivan",
    message: "How many nuts are there?",
  });
  if (asked.outcome !== "waiting") throw new Error(asked.outcome);
  return talkId;
}
