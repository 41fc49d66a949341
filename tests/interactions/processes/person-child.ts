/**
 * An agent and a person in front of their inbox, in a process of their own that does what the test says and may be killed at
 * any moment. The argument is a `ChildPlan` as JSON; commands and answers go over the IPC channel.
 */
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { createGate } from "../../../src/gate/create-gate.ts";
import type { CrashPoint } from "../../../src/gate/options.ts";
import { allowAlways } from "../../../src/gate/review.ts";
import { SallyportError } from "../../../src/model/errors.ts";
import type { Interaction, InteractionType } from "../../../src/model/interaction.ts";
import { lostId } from "../../../src/model/interaction.ts";
import { postgresStore } from "../../../src/store/postgres/index.ts";
import { sqliteStore } from "../../../src/store/sqlite/index.ts";
import type { Store } from "../../../src/store/store.ts";
import { sha256Hex } from "../../../src/util/hash.ts";
import { sampleVerdictValidator } from "../../support/validators.ts";
import { BRIEF_MS, ledgerOf, ledgerTools } from "./ledger-tools.ts";

export const TENANT = "acme";
/** Short, so that what a killed process held is free again soon. */
const LEASE_MS = 1_500;
const SESSIONS = 20;
const PAGE = 1_000;
const LANES = 64;

export interface ChildPlan {
  readonly store: "sqlite" | "postgres";
  readonly place: string;
  readonly ledger: string;
}

/** A question as a person saw it: `digest` covers everything that is stored of it. */
export interface Seen {
  readonly n: number;
  readonly id: string;
  readonly type: InteractionType;
  readonly hash: string;
  readonly digest: string;
}

export interface Said {
  readonly id: string;
  readonly isFirst: boolean;
  /** Empty for the first one. */
  readonly code: string;
  readonly by: string;
  readonly outcome: string;
  readonly at: string;
  readonly hint: string;
  /** Epoch milliseconds, to see who was under way at the same time. */
  readonly from: number;
  readonly to: number;
}

export interface Answering {
  readonly items: readonly Pick<Seen, "id" | "n" | "type" | "hash">[];
  readonly by: string;
  /** Numbers that get a no. */
  readonly veto?: readonly number[];
  /** Everybody starts at this moment. */
  readonly at?: number;
  /** How many at a time. */
  readonly lanes?: number;
}

export type Told =
  /** The inbox answers; then all that was in it. */
  | { readonly told: "ready"; readonly cpuMs: number }
  | { readonly told: "inbox"; readonly seen: readonly Seen[] }
  | { readonly told: "opened"; readonly seen: Seen }
  | { readonly told: "answered"; readonly said: Said };

export type WrongClock = { readonly shiftMs: number } | "frozen" | "right";

/** What the process does on demand, by the name of the command. */
export interface Commands {
  open(what: {
    type: InteractionType;
    numbers: readonly number[];
    brief?: boolean;
  }): Promise<readonly Seen[]>;
  answer(what: Answering): Promise<readonly Said[]>;
  inbox(): Promise<readonly Seen[]>;
  get(id: string): Promise<Interaction>;
  recover(): Promise<number>;
  sweep(): Promise<readonly string[]>;
  /** From now on `Date.now` tells this. */
  clock(wrong: WrongClock): Promise<number>;
  /** Stops itself (SIGSTOP) when it comes past this point the next time. */
  stopAt(point: CrashPoint): Promise<void>;
  /** Waits for the agent's question with this number. */
  wait(what: { n: number; timeoutMs: number }): Promise<string>;
  end(): Promise<void>;
}

if (process.argv[1] === import.meta.filename) await main(JSON.parse(process.argv[2] ?? "{}"));

async function main(plan: ChildPlan): Promise<void> {
  const { store, close } = await openStore(plan);
  let stopsAt: CrashPoint | undefined;
  const gate = createGate({
    store,
    tenant: TENANT,
    tools: ledgerTools(plan.ledger),
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [{ id: "lost", effect: "allow", tool: "ledger.lost", reason: "a test" }],
    },
    review: [
      {
        tools: ["ledger.brief"],
        requires: [{ name: "person", count: 1 }],
        deadlineMs: BRIEF_MS,
      },
    ],
    leaseMs: LEASE_MS,
    at(point) {
      if (point !== stopsAt) return;
      stopsAt = undefined;
      process.kill(process.pid, "SIGSTOP");
    },
  });
  const inbox = gate.interactions;
  const sessionOf = (n: number) =>
    gate.sessions.open({ id: `run-${n % SESSIONS}`, agent: "agent:one" });

  async function openOne(type: InteractionType, n: number, brief: boolean): Promise<Seen> {
    const session = sessionOf(n);
    const callId = `c-${n}`;
    if (type === "ask_user") {
      const deadline = brief ? { deadlineMs: BRIEF_MS } : {};
      const text = `Which of the two shall number ${n} have?`;
      const asked = await session.ask({ callId, text, ...deadline });
      return seenOf(await inbox.get(asked.interactionId));
    }
    const tool =
      type === "connection_lost" ? "ledger.lost" : brief ? "ledger.brief" : "ledger.write";
    const answer = await session.call({ callId, key: callId, tool, input: { n } });
    if (answer.answer === "pending") return seenOf(await inbox.get(answer.interactionId));
    if (answer.answer !== "unknown") throw new Error(`${n}: ${answer.answer}: ${answer.text}`);
    const { id, attempt, status } = await gate.operations.get(answer.operationId);
    if (status !== "started") return seenOf(await inbox.get(lostId(id, attempt)));
    // Begun by a process that is gone: when its lease is over it is looked after, and asked about.
    await setTimeout(LEASE_MS);
    await gate.recover();
    return openOne(type, n, brief);
  }

  async function answerOne(item: Answering["items"][number], how: Answering): Promise<Said> {
    const from = performance.timeOrigin + performance.now();
    const { id, hash } = item;
    const end = () => performance.timeOrigin + performance.now();
    try {
      const { answeredBy, outcome, updatedAt } = await say(item, how);
      const first = { isFirst: true, code: "", by: answeredBy, outcome: outcome ?? "" };
      return { id, ...first, at: updatedAt, hint: "", from, to: end() };
    } catch (error) {
      if (!(error instanceof SallyportError)) throw error;
      const { by = "", outcome = "", at = "", hint = "" } = error.details as Record<string, string>;
      return { id, isFirst: false, code: error.code, by, outcome, at, hint, from, to: end() };
    }

    async function say({ n, type }: typeof item, { by, veto = [] }: Answering) {
      if (type === "ask_user") return inbox.answer(id, { hash, by, answer: `from ${by}` });
      if (type === "confirm" && veto.includes(n))
        return inbox.reject(id, { hash, by, reason: "no" });
      if (type === "confirm") return (await inbox.approve(id, { hash, by })).interaction;
      // A person looks, and says what they found.
      const happened = ledgerOf(plan.ledger).some((line) => line.n === n);
      const found = happened ? { happened } : ({ happened, otherwise: "give_up" } as const);
      await inbox.settle(id, { hash, by, ...found });
      return inbox.get(id);
    }
  }

  async function whole(): Promise<readonly Seen[]> {
    const all: Interaction[] = [];
    for (;;) {
      const last = all.at(-1)?.ord;
      const page = await inbox.list({
        limit: PAGE,
        ...(last === undefined ? {} : { after: last }),
      });
      all.push(...page);
      if (page.length < PAGE) return all.map(seenOf);
    }
  }

  const rightNow = Date.now;
  const commands: Commands = {
    open: ({ type, numbers, brief = false }) =>
      inLanes(numbers, async (n) => {
        const seen = await openOne(type, n, brief);
        tell({ told: "opened", seen });
        return seen;
      }),
    async answer(how) {
      if (how.at !== undefined) await until(how.at);
      return inLanes(
        how.items,
        async (item) => {
          const said = await answerOne(item, how);
          tell({ told: "answered", said });
          return said;
        },
        how.lanes,
      );
    },
    inbox: whole,
    get: (id) => inbox.get(id),
    async recover() {
      const found = await gate.recover();
      return Object.values(found).reduce((sum, list: readonly unknown[]) => sum + list.length, 0);
    },
    sweep: async () => (await inbox.sweep()).expired,
    async clock(wrong) {
      const frozen = rightNow();
      if (wrong === "right") Date.now = rightNow;
      else Date.now = wrong === "frozen" ? () => frozen : () => rightNow() + wrong.shiftMs;
      return Date.now();
    },
    async stopAt(point) {
      stopsAt = point;
    },
    async wait({ n, timeoutMs }) {
      const answer = await sessionOf(n).wait(`c-${n}`, { timeoutMs });
      return `${answer?.answer}: ${answer?.text}`;
    },
    async end() {
      await close();
      process.disconnect();
    },
  };

  process.on("message", async ({ nr, name, argument }: Command) => {
    try {
      const value = await (commands[name] as (given: unknown) => Promise<unknown>)(argument);
      process.send?.({ nr, value });
    } catch (error) {
      process.send?.({ nr, error: error instanceof Error ? error.stack : String(error) });
    }
  });
  // Its parent is gone.
  process.on("disconnect", () => process.exit());
  await inbox.list();
  const { user, system } = process.cpuUsage();
  tell({ told: "ready", cpuMs: (user + system) / 1_000 });
  tell({ told: "inbox", seen: await whole() });
}

export interface Command {
  readonly nr: number;
  readonly name: keyof Commands;
  readonly argument: unknown;
}

function tell(told: Told): void {
  process.send?.(told);
}

export function seenOf(asked: Interaction): Seen {
  const { id, type, hash, callId } = asked;
  return { n: Number(callId.slice(2)), id, type, hash, digest: sha256Hex(JSON.stringify(asked)) };
}

async function inLanes<Item, Done>(
  items: readonly Item[],
  work: (item: Item) => Promise<Done>,
  lanes = LANES,
): Promise<readonly Done[]> {
  const done: Done[] = [];
  const queue = items.values();
  const lane = async () => {
    for (const item of queue) done.push(await work(item));
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return done;
}

/** The timer brings us close, the loop to the very millisecond. */
async function until(at: number): Promise<void> {
  const left = () => at - (performance.timeOrigin + performance.now());
  await setTimeout(Math.max(0, left() - 2));
  while (left() > 0);
}

export async function openStore({
  store: kind,
  place,
}: Pick<ChildPlan, "store" | "place">): Promise<{ store: Store; close(): Promise<void> }> {
  if (kind === "sqlite") {
    const store = sqliteStore({ file: place });
    return { store, close: () => store.close() };
  }
  const pool = new pg.Pool({ connectionString: place, max: 6, pipeline: true });
  const store = await postgresStore({ pool });
  return {
    store,
    async close() {
      await store.close();
      await pool.end();
    },
  };
}
