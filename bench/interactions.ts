import path from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import pg from "pg";
import { allowAlways, createGate, type Gate, NO_RULES } from "../src/index.ts";
import { postgresStore } from "../src/store/postgres/index.ts";
import { sqliteStore } from "../src/store/sqlite/index.ts";
import type { Store } from "../src/store/store.ts";
import { defineTool } from "../src/tools/define-tool.ts";
import { freshDatabase } from "../tests/support/postgres-database.ts";
import { startPostgres } from "../tests/support/postgres-server.ts";
import { type Sample, sampleOf } from "./floors/question-rows.ts";
import { postgresQuestionFloors } from "./floors/questions-postgres.ts";
import { sqliteQuestionFloors } from "./floors/questions-sqlite.ts";
import type { Result } from "./report.ts";
import { median, ratio, rounds, type Work } from "./rounds.ts";
import { scratch } from "./scratch.ts";
import { yes } from "./yes.ts";

const CALLERS = 64;
const TOTAL = 3_200;
const ROUNDS = 5;
const FEW = 10_000;
const MANY = 50_000;

/**
 * A call that a person is asked about: asked (one commit, until it is pending), answered (the yes with the intent, then the
 * outcome: two commits, until it is executed). The floor writes the same rows and a block of the log as long in the same
 * number of commits by hand, 64 cycles to a commit; it looks at nothing, checks nothing, hashes nothing and packs nothing.
 */
export async function* interactionBenches(
  wanted: (name: string) => boolean,
): AsyncGenerator<Result> {
  if (wanted("sqlite.question")) {
    await using folder = await scratch();
    await using store = sqliteStore({ file: path.join(folder.dir, "product.db") });
    const sample = await sampled(folder.dir);
    const floors = sqliteQuestionFloors(path.join(folder.dir, "floor.db"), sample);
    yield* compare("sqlite", store, floors);
    floors.close();
  }
  if (wanted("postgres.question")) {
    await using folder = await scratch();
    const sample = await sampled(folder.dir);
    const server = await startPostgres({ durable: true });
    try {
      const database = await freshDatabase(server.url);
      const pool = new pg.Pool({ connectionString: database.url, max: 8, pipeline: true });
      const store = await postgresStore({ pool });
      const floors = await postgresQuestionFloors(database.url, sample);
      yield* compare("postgres", store, floors);
      await floors.close();
      await store.close();
      await pool.end();
      await database.drop();
    } finally {
      await server.stop();
    }
  }
  if (wanted("memory.pending")) yield await memoryPerPending();
}

async function* compare(
  engine: string,
  store: Store,
  floors: { ask(size: number, total: number): Work; answer(size: number): Work },
): AsyncGenerator<Result> {
  const { ask, answer } = questions(questionPort(store));
  const rates = await rounds(
    { ask, answer, askFloor: floors.ask(CALLERS, TOTAL), answerFloor: floors.answer(CALLERS) },
    ROUNDS,
  );
  const both = (one: readonly number[], other: readonly number[]) =>
    one.map((rate, round) => 1 / (1 / rate + 1 / (other[round] ?? Number.NaN)));
  const shown = { unit: "cycles/s", against: "group", goal: ">= 0.25" };
  const parts = {
    ask: [rates.ask, rates.askFloor],
    answer: [rates.answer, rates.answerFloor],
    cycle: [both(rates.ask, rates.answer), both(rates.askFloor, rates.answerFloor)],
  } as const;
  for (const [part, [product, floor]] of Object.entries(parts)) {
    const name = `${engine}.question.${part}.${CALLERS}`;
    yield { name, value: median(product), ratio: ratio(product, floor), ...shown };
  }
}

/** Asks first and answers then, each with so many callers at the same time. */
export function questions(gate: Gate, total = TOTAL): { ask: Work; answer: Work } {
  const each = Math.ceil(total / CALLERS);
  let round = 0;
  let seen: { id: string; hash: string }[] = [];
  const callers = (work: (caller: number) => Promise<void>) =>
    Promise.all(Array.from({ length: CALLERS }, (_, caller) => work(caller)));
  return {
    async ask() {
      round += 1;
      const ids: string[] = [];
      await callers(async (caller) => {
        const session = gate.sessions.open({
          id: `session-${round}-${caller}`,
          agent: "agent:bench",
        });
        for (let i = 0; i < each; i += 1) {
          // Another invoice each time: the same call of a session opens no second question.
          const input = { invoice: `INV-${2_000 + i}`, cents: 12_900 };
          const answer = await session.call({ callId: `c-${i}`, tool: refund.name, input });
          if (answer.answer !== "pending") throw new Error(answer.text);
          ids.push(answer.interactionId);
        }
      });
      seen = (await Promise.all(ids.map((id) => gate.interactions.get(id)))).map(
        ({ id, hash }) => ({ id, hash }),
      );
      return ids.length;
    },
    async answer() {
      const queue = seen.values();
      await callers(async () => {
        for (const { id, hash } of queue) {
          const { answers } = await gate.interactions.approve(id, { hash, by: "person:ada" });
          if (answers[0]?.answer !== "done") throw new Error(JSON.stringify(answers));
        }
      });
      return seen.length;
    },
  };
}

const refund = defineTool({
  name: "billing.refund",
  description: "Pays an invoice back.",
  input: {
    type: "object",
    properties: { invoice: { type: "string" }, cents: { type: "integer" } },
    required: ["invoice", "cents"],
    additionalProperties: false,
  },
  safety: { effect: "external" },
  dryRun: ({ input: { invoice, cents } }) => `would pay back ${cents} cents of ${invoice}`,
  execute: () => "paid back as R-1",
});

export function questionPort(store: Store): Gate {
  return createGate({
    store,
    tenant: "bench",
    tools: [refund],
    validators: { tech: yes("schema"), business: yes("limits") },
    guard: allowAlways,
    policy: NO_RULES,
  });
}

/** One cycle of the product, for the floors to copy. */
async function sampled(dir: string): Promise<Sample> {
  const file = path.join(dir, "sample.db");
  await using store = sqliteStore({ file });
  const { ask, answer } = questions(questionPort(store), CALLERS);
  await ask();
  await answer();
  return sampleOf(file);
}

/** What a pending call costs the process that asked for it: the more are pending, the more of it would stay on the heap. */
async function memoryPerPending(): Promise<Result> {
  await using folder = await scratch();
  await using store = sqliteStore({ file: path.join(folder.dir, "pending.db") });
  const gate = questionPort(store);
  await questions(gate, FEW).ask();
  const before = heapAfterGc();
  const more = await questions(gate, MANY - FEW).ask();
  const value = Math.max(0, heapAfterGc() - before) / more;
  const against = `${FEW.toLocaleString("en-US")} pending`;
  return { name: "memory.pending", value, unit: "bytes each", against, goal: "<= 1024" };
}

function heapAfterGc(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let times = 0; times < 4; times += 1) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
