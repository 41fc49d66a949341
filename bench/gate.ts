import path from "node:path";
import { allowAlways, createGate, type Gate, type Policy } from "../src/index.ts";
import type { Validator } from "../src/model/decision.ts";
import { sqliteStore } from "../src/store/sqlite/index.ts";
import { defineTool } from "../src/tools/define-tool.ts";
import type { Tool } from "../src/tools/tool.ts";
import { callFloors } from "./floors/calls.ts";
import type { Result } from "./report.ts";
import { median, ratio, rounds, type Work } from "./rounds.ts";
import { scratch } from "./scratch.ts";

const SESSIONS = 64;
const CALLS = 6_400;
const ROUNDS = 7;
const LONE_CALLS = 1_500;

const refuse: Validator = {
  name: "never asked",
  review: () => {
    throw new Error("a read-only call is not reviewed");
  },
};

/** What it costs to send a read-only call through schema, confidence, permission, policy and audit. */
export async function* gateBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  if (!wanted("sqlite.call")) return;
  await using folder = await scratch();
  await using store = sqliteStore({ file: path.join(folder.dir, "product.db") });
  await using crowded = sqliteStore({ file: path.join(folder.dir, "crowded.db") });
  const floors = callFloors(path.join(folder.dir, "floor.db"));
  const gate = portOf(store, 1, 50);
  const full = portOf(crowded, 1_000, 10_000);
  const rates = await rounds(
    { product: calls(gate, SESSIONS, CALLS), group: floors.group(SESSIONS, CALLS) },
    5,
  );
  yield {
    name: `sqlite.call.${SESSIONS}`,
    value: median(rates.product),
    unit: "calls/s",
    against: "group",
    ratio: ratio(rates.product, rates.group),
    goal: ">= 0.25",
  };
  const times = await latencies(gate, full, floors.commit);
  /** What lies in the same round is compared with each other; the median of the rounds counts. */
  const against = (of: Quantile, floor: Quantile): Pick<Result, "value" | "ratio"> => ({
    value: median(of) * 1_000,
    ratio: ratio(of, floor),
  });
  const commit = times.commits(0.5);
  yield {
    name: "sqlite.call.1.p99",
    unit: "µs",
    against: "raw commit p50",
    goal: "<= 5",
    ...against(times.few(0.99), commit),
  };
  // A call is two commits, intent and outcome; this is what the disk alone makes of two.
  yield {
    name: "sqlite.commits.2.p99",
    unit: "µs",
    against: "raw commit p50",
    ...against(times.pairs(0.99), commit),
  };
  yield {
    name: "sqlite.call.1.p50.crowded",
    unit: "µs",
    against: "1 tool, 50 rules",
    goal: "<= 1.5",
    ...against(times.many(0.5), times.few(0.5)),
  };
  floors.close();
}

function portOf(store: ReturnType<typeof sqliteStore>, tools: number, rules: number): Gate {
  const policy: Policy = {
    version: "1",
    rules: Array.from({ length: rules }, (_, n) => ({
      id: `rule-${n}`,
      effect: n % 2 === 0 ? "allow" : "ask",
      tool: `warehouse.tool${n}`,
      reason: "a rule like others",
    })),
  };
  return createGate({
    store,
    tenant: "bench",
    tools: [look(), ...Array.from({ length: tools - 1 }, (_, n) => look(`warehouse.tool${n}`))],
    validators: { tech: refuse, business: refuse },
    guard: allowAlways,
    policy,
  });
}

function look(name = "stock.look"): Tool {
  return defineTool({
    name,
    description: "Shows what is on stock.",
    input: {
      type: "object",
      properties: { sku: { type: "string", maxLength: 40 } },
      required: ["sku"],
      additionalProperties: false,
    },
    safety: { effect: "read", confidenceMin: 50, concurrencySafe: true },
    permissionClass: "readonly",
    execute: () => "12 on stock",
  });
}

const input = '{"sku":"A-17","_confidence":90}';

function calls(gate: Gate, sessions: number, total: number): Work {
  return async () => {
    const each = Math.ceil(total / sessions);
    const workers = Array.from({ length: sessions }, async (_, n) => {
      const session = gate.sessions.open({ id: `session-${n}`, agent: "agent:bench" });
      for (let i = 0; i < each; i += 1) {
        const answer = await session.call({ callId: `c-${i}`, tool: "stock.look", input });
        if (answer.answer !== "done") throw new Error(answer.text);
      }
    });
    await Promise.all(workers);
    return each * sessions;
  };
}

/** The same quantile of each round, in milliseconds. */
type Quantile = readonly number[];

/**
 * One call after the other, and as many raw commits beside them, in rounds like everything else here. Within a round each
 * has a long turn: the first call of a turn finds the caches full of its neighbour and takes twice as long, and right after
 * a neighbour has copied its log back a commit waits for that neighbour's disk work. In turns of 50 these were the p99.
 */
async function latencies(gate: Gate, crowded: Gate, commit: () => void) {
  const open = (one: Gate) => one.sessions.open({ id: "solo", agent: "agent:bench" });
  const call = { callId: "c-1", tool: "stock.look", input };
  const [first, second] = [open(gate), open(crowded)];
  const works = {
    few: () => first.call(call),
    many: () => second.call(call),
    commits: async () => commit(),
    pairs: async () => {
      commit();
      commit();
    },
  };
  const all = { few: [], many: [], commits: [], pairs: [] } as Record<
    keyof typeof works,
    number[][]
  >;
  // The first round warms up and does not count.
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const name of ["few", "many", "commits", "pairs"] as const) {
      const times: number[] = [];
      for (let i = 0; i < LONE_CALLS; i += 1) {
        const start = performance.now();
        await works[name]();
        times.push(performance.now() - start);
      }
      if (round > 0) all[name].push(times);
    }
  }
  const of = (name: keyof typeof works) => (q: number) =>
    all[name].map((times) => quantile(times, q));
  return { few: of("few"), many: of("many"), commits: of("commits"), pairs: of("pairs") };
}

function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}
