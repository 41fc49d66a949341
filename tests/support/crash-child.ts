/**
 * An agent, its reviewer and the worker in one process that may be cut off anywhere on the way: `CRASH_AT=S5.after:2` kills it
 * when it comes past that point for the second time. Without it, `recover` goes on with what others have left.
 *
 * The argument is a `ChildPlan` as JSON. What it has come past and what was answered goes to its history, synced line by line.
 */
import { fsyncSync, openSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import type { CrashPoint } from "../../src/executor/crash-point.ts";
import type { CallAnswer } from "../../src/model/call.ts";
import { createSallyport } from "../../src/port/create-sallyport.ts";
import type { Recovered } from "../../src/port/recover.ts";
import { allowAlways } from "../../src/staging/guards/allow-always.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { worldTools } from "./crash-tools.ts";
import type { Fault, Kind } from "./crash-world.ts";
import { sampleVerdictValidator } from "./validators.ts";

/** The product's points, those inside the tool, and the one while the answer goes out. */
export type ChildPoint = CrashPoint | "S6.request" | "S6.effect" | "S8.during";

/** One thing an agent wants done. Its id is its session's. */
export interface Case {
  readonly id: string;
  readonly kind: Kind;
  /** `ask`: staged, shown and approved. `free`: the policy lets it through. */
  readonly lane: "ask" | "free";
  readonly steps: number;
  /** Production refuses the last step, so those before it are taken back. */
  readonly failsLast: boolean;
  readonly fault: Fault;
  readonly crashAt: string;
}

export interface ChildPlan {
  readonly mode: "act" | "recover";
  readonly store: "sqlite" | "postgres";
  readonly place: string;
  readonly world: number;
  readonly history: string;
  readonly cases: readonly Case[];
}

export type HistoryLine = { readonly run: string } & (
  | { readonly point: ChildPoint }
  | { readonly pending: string }
  | { readonly answers: readonly CallAnswer[] }
  | { readonly recovered: Recovered }
);

export const TENANT = "acme";
export const LEASE_MS = 400;
const RECOVERY_MS = 20_000;

if (process.argv[1] === import.meta.filename) await main(JSON.parse(process.argv[2] ?? "{}"));

async function main(plan: ChildPlan): Promise<void> {
  const file = openSync(plan.history, "a");
  const write = (line: HistoryLine) => {
    writeSync(file, `${JSON.stringify(line)}\n`);
    fsyncSync(file);
  };
  const crashAt = process.env["CRASH_AT"];
  const passed = new Map<ChildPoint, number>();
  let run = plan.cases.length === 1 ? (plan.cases[0]?.id ?? "") : "";
  const at = (point: ChildPoint) => {
    // An effect is counted as the request that brought it about.
    const isEffect = point === "S6.effect";
    const times = isEffect ? (passed.get("S6.request") ?? 0) : (passed.get(point) ?? 0) + 1;
    passed.set(point, times);
    write({ run, point });
    if (crashAt === `${point}:${times}`) process.kill(process.pid, "SIGKILL");
  };
  const fault = (): Fault => {
    if (crashAt === `S6.effect:${passed.get("S6.request")}`) return "cut";
    return plan.mode === "act" ? (plan.cases[0]?.fault ?? "none") : "none";
  };
  const { store, close } = await openStore(plan);
  const port = createSallyport({
    store,
    tenant: TENANT,
    tools: worldTools({ port: plan.world, fault, at }),
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [{ id: "free", effect: "allow", tool: "world.free_*", reason: "a test" }],
    },
    leaseMs: LEASE_MS,
    at,
  });

  if (plan.mode === "act") for (const one of plan.cases) await act(one);
  else await recover();
  await close();

  async function act(one: Case): Promise<void> {
    const { id, kind, lane, steps, failsLast } = one;
    const session = port.sessions.open({ id, agent: "agent:one" });
    const tool = lane === "free" ? `world.free_${kind}` : `world.${kind}`;
    const requests = Array.from({ length: steps }, (_, step) => ({
      callId: `${id}-${step}`,
      tool,
      input: { run: id, step, undo: false, refuse: failsLast && step === steps - 1 },
    }));
    const first = requests.length === 1 ? requests[0] : undefined;
    const answer = first ? await session.call(first) : await session.stage(requests);
    if (answer.answer !== "pending") return answered(id, [answer]);
    write({ run: id, pending: answer.decisionId });
    await approve(id, answer.decisionId);
  }

  async function approve(id: string, decision: string): Promise<void> {
    const shown = await port.approvals.shown(decision);
    const yes = { hash: shown?.hash ?? "", by: "person:ada" };
    answered(id, await port.approvals.approve(decision, yes));
  }

  function answered(id: string, answers: readonly CallAnswer[]): void {
    write({ run: id, answers });
    at("S8.during");
  }

  /** Until nothing is open any more but what only a person can tell. Agents and reviewers come back as well. */
  async function recover(): Promise<void> {
    const deadline = performance.now() + RECOVERY_MS;
    for (let round = 0; performance.now() < deadline; round += 1) {
      write({ run, recovered: await port.recover() });
      if (round > 0 && !(await isOpen())) return;
      if (round === 0) {
        for (const one of plan.cases) {
          run = one.id;
          await comeBack(one);
        }
        run = "";
      }
      await setTimeout(LEASE_MS / 4);
    }
    throw new Error("recovery did not come to an end");
  }

  /** What was never answered is asked again, what waits is decided. */
  async function comeBack(one: Case): Promise<void> {
    const decisions = await port.decisions.listBySession(one.id);
    const operations = await port.operations.listBySession(one.id);
    const isUnderWay = decisions.some(({ state }) => !state.startsWith("pending"));
    if (isUnderWay || operations.length > 0) return;
    for (const { id } of decisions) {
      if ((await port.approvals.shown(id)) !== undefined) return approve(one.id, id);
    }
    await act(one);
  }

  async function isOpen(): Promise<boolean> {
    for (const { id: session } of plan.cases) {
      const operations = await port.operations.listBySession(session);
      if (operations.some(({ status }) => status === "started")) return true;
      for (const { id, state } of await port.decisions.listBySession(session)) {
        const own = operations.filter(({ decisionId }) => decisionId === id);
        if (state === "approved" && !own.some(({ status }) => status === "unknown")) return true;
      }
    }
    return false;
  }
}

export async function openStore({
  store: kind,
  place,
}: Pick<ChildPlan, "store" | "place">): Promise<{ store: Store; close(): Promise<void> }> {
  if (kind === "sqlite") {
    const store = sqliteStore({ file: place });
    return { store, close: () => store.close() };
  }
  const pool = new pg.Pool({ connectionString: place, max: 3 });
  const store = await postgresStore({ pool });
  return {
    store,
    async close() {
      await store.close();
      await pool.end();
    },
  };
}
