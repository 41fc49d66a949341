import path from "node:path";
import { allowAlways, createSallyport, type Policy, type Port } from "../src/index.ts";
import type { Validator } from "../src/model/validator.ts";
import { sqliteStore } from "../src/store/sqlite/index.ts";
import { defineTool } from "../src/tools/define-tool.ts";
import type { Tool } from "../src/tools/tool.ts";
import { callFloors } from "./floors/calls.ts";
import type { Result } from "./report.ts";
import { median, ratio, rounds, type Work } from "./rounds.ts";
import { scratch } from "./scratch.ts";

const SESSIONS = 64;
const CALLS = 6_400;
const WARM_UP = 500;
const TIMED = 4_000;
const TURN = 500;

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
  const port = portOf(store, 1, 50);
  const full = portOf(crowded, 1_000, 10_000);
  const rates = await rounds(
    { product: calls(port, SESSIONS, CALLS), group: floors.group(SESSIONS, CALLS) },
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
  const { few, many, commits, pairs } = await latencies(port, full, floors.commit);
  const slowest = (name: string, times: readonly number[]): Result => ({
    name,
    value: quantile(times, 0.99) * 1_000,
    unit: "µs",
    against: "raw commit p50",
    ratio: quantile(times, 0.99) / quantile(commits, 0.5),
  });
  yield { ...slowest("sqlite.call.1.p99", few), goal: "<= 5" };
  // A call is two commits, intent and outcome; this is what the disk alone makes of two.
  yield slowest("sqlite.commits.2.p99", pairs);
  yield {
    name: "sqlite.call.1.p50.crowded",
    value: quantile(many, 0.5) * 1_000,
    unit: "µs",
    against: "1 tool, 50 rules",
    ratio: quantile(many, 0.5) / quantile(few, 0.5),
    goal: "<= 1.5",
  };
  floors.close();
}

function portOf(store: ReturnType<typeof sqliteStore>, tools: number, rules: number): Port {
  const policy: Policy = {
    version: "1",
    rules: Array.from({ length: rules }, (_, n) => ({
      id: `rule-${n}`,
      effect: n % 2 === 0 ? "allow" : "ask",
      tool: `warehouse.tool${n}`,
      reason: "a rule like others",
    })),
  };
  return createSallyport({
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

function calls(port: Port, sessions: number, total: number): Work {
  return async () => {
    const each = Math.ceil(total / sessions);
    const workers = Array.from({ length: sessions }, async (_, n) => {
      const session = port.sessions.open({ id: `session-${n}`, agent: "agent:bench" });
      for (let i = 0; i < each; i += 1) {
        const answer = await session.call({ callId: `c-${i}`, tool: "stock.look", input });
        if (answer.answer !== "done") throw new Error(answer.text);
      }
    });
    await Promise.all(workers);
    return each * sessions;
  };
}

/**
 * One call after the other, and as many raw commits beside them, so that the disk's moods hit all alike. In turns of some
 * length: right after a neighbour has copied its log back, a commit waits for that neighbour's disk work, not for its own.
 */
async function latencies(port: Port, crowded: Port, commit: () => void) {
  const open = (one: Port) => one.sessions.open({ id: "solo", agent: "agent:bench" });
  const call = { callId: "c-1", tool: "stock.look", input };
  const [first, second] = [open(port), open(crowded)];
  const works = {
    few: () => first.call(call),
    many: () => second.call(call),
    commits: async () => commit(),
    pairs: async () => {
      commit();
      commit();
    },
  };
  const times = {
    few: [] as number[],
    many: [] as number[],
    commits: [] as number[],
    pairs: [] as number[],
  };
  for (let done = 0; done < WARM_UP + TIMED; done += TURN) {
    for (const name of ["few", "many", "commits", "pairs"] as const) {
      for (let i = 0; i < TURN; i += 1) {
        const start = performance.now();
        await works[name]();
        if (done >= WARM_UP) times[name].push(performance.now() - start);
      }
    }
  }
  return times;
}

function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}
