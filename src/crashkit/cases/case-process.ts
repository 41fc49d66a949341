/**
 * An agent, its reviewer and the worker in one process that may be killed at any point: `CRASH_AT=S5.after:2` kills it when it
 * passes that point for the second time. Without it, `recover` continues what others have left.
 *
 * The argument is a `CasePlan` as JSON. Points and answers go to its history, synced line by line.
 */
import type { CallAnswer, CallRequest } from "../../model/operation.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import { stopwatch } from "../../util/clock.ts";
import { systemTimers } from "../../util/timers.ts";
import { toldOf } from "../actors/actor.ts";
import { appendLines, createDice, keepCompiled } from "../child.ts";
import { LEASE_MS, openKit } from "../open-kit.ts";
import { type Fault, FREE, OUTSIDE, post } from "../world/world.ts";

import type { Case, CaseLine, CasePlan, CasePoint } from "./run-cases.ts";

/** How long a recovery waits without progress: on a busy machine it takes long. */
const PATIENCE_MS = 20_000;
const RECOVERY_MS = 10 * PATIENCE_MS;
const PERSON = "person:ada";
const EXECUTOR = "exec:one";
/** The shortest lease of a permit. */
const PERMIT_MS = 1_000;

const plan: CasePlan = JSON.parse(process.argv[2] ?? "{}");
const crashAt = process.env["CRASH_AT"] ?? "";
const { write } = appendLines<CaseLine>(plan.history);
const passed = new Map<string, number>();
let run = plan.cases.length === 1 ? (plan.cases[0]?.id ?? "") : "";
/** Counted separately: a rollback passes the same points as the calls it undoes. */
let phase = "";

const kit = await openKit(plan.place);
/** A proposal that is reviewed promptly is written once, and does not pass these points. */
const reviewsSlowly = /^(?:S1\.after|S2a\.)/.test(crashAt);
const gate = await kit.gate(plan.place.run, { at, fault, reviewsSlowly });
keepCompiled();
if (plan.mode === "recover") await recover();
else for (const one of plan.cases) await act(one);
await kit.close();

function at(point: CasePoint): void {
  // An effect has the number of its request.
  const counted = point === "S6.effect" ? "S6.request" : point;
  const times = (passed.get(phase + counted) ?? 0) + (point === "S6.effect" ? 0 : 1);
  passed.set(phase + counted, times);
  write({ run, point });
  if (crashAt === `${phase}${point}:${times}`) process.kill(process.pid, "SIGKILL");
}

function fault(): Fault {
  if (crashAt === `${phase}S6.effect:${passed.get(`${phase}S6.request`)}`) return "cut";
  return plan.mode === "act" ? (plan.cases[0]?.fault ?? "none") : "none";
}

function requestsOf({ id, kind, lane, steps, failsLast }: Case): readonly CallRequest[] {
  if (lane === "own") {
    const own = kit.calls?.(createDice(id)) ?? [];
    return own.map((call, step) => ({ ...call, callId: `${id}-${step}` }));
  }
  const tool = { ask: `world.${kind}`, free: `${FREE}${kind}`, permit: OUTSIDE }[lane];
  return Array.from({ length: steps }, (_, step) => ({
    callId: `${id}-${step}`,
    tool,
    input: { run: id, step, undo: false, refuse: failsLast && step === steps - 1 },
  }));
}

async function act(one: Case): Promise<void> {
  const { id } = one;
  const session = gate.sessions.open({ id, agent: "agent:one" });
  const requests = requestsOf(one);
  const [first] = requests;
  const isSingle = first !== undefined && requests.length === 1;
  const answer = isSingle ? await session.call(first) : await session.stage(requests);
  hear([answer]);
  if (answer.answer === "pending") await approve(answer.decisionId, one);
  else at("S8.during");
  if (one.takesBack) await takeBack(one);
}

async function approve(decisionId: string, one: Case): Promise<void> {
  const shown = await gate.interactions.shown(decisionId);
  const yes = { hash: shown?.hash ?? "", by: PERSON };
  const { answers } = await gate.interactions.approve(decisionId, yes);
  write({ run, told: { decisionId, answer: "approved" } });
  hear(answers);
  if (one.lane === "permit") await workUnder(decisionId, one);
  else at("S8.during");
}

/** An external executor: takes the permit, changes production, reports. `take` passes S5 by itself. */
async function workUnder(decisionId: string, { kind }: Case): Promise<void> {
  const permit = await gate.permits.take(decisionId, { by: EXECUTOR, leaseMs: PERMIT_MS });
  const { id, fence, idempotencyKey: key } = permit;
  at("S6.before");
  at("S6.request");
  const input = canonicalJson(permit.calls?.[0]?.input ?? null);
  const sent = { ask: "do", kind, key, fence, input, fault: fault() } as const;
  const { text } = await post(plan.place.worldPort, sent).catch((error) => {
    at("S6.effect");
    throw error;
  });
  at("S6.after");
  at("S7.before");
  const report = {
    by: EXECUTOR,
    fence,
    outcome: "executed",
    proof: { text },
    output: text,
  } as const;
  await gate.permits.report(id, report);
  at("S7.after");
  write({ run, told: { operationId: id, answer: "done" } });
  at("S8.during");
}

/** Returns how many calls are still to be undone: failed and interrupted ones may be tried again. */
async function takeBack({ id }: Case): Promise<number> {
  phase = "undo ";
  const { undone, failed, unfinished } = await gate.sessions
    .open({ id, agent: "agent:one" })
    .rollback(PERSON);
  at("S8.before");
  for (const { undoOperationId: operationId } of undone) {
    write({ run, told: { operationId, answer: "done" } });
  }
  at("S8.during");
  phase = "";
  return failed.length + unfinished.length;
}

function hear(answers: readonly CallAnswer[]): void {
  for (const answer of answers) for (const told of toldOf(answer)) write({ run, told });
}

/**
 * Runs until nothing is open except questions to a person. Agents and reviewers return as well. What does not end in time is
 * left as it is, for the invariants to report.
 */
async function recover(): Promise<void> {
  const began = stopwatch.now();
  let movedAt = began;
  let left = Number.POSITIVE_INFINITY;
  let isTakenBack = false;
  const isPatient = () =>
    stopwatch.now() - movedAt < PATIENCE_MS && stopwatch.now() - began < RECOVERY_MS;
  for (let round = 0; isPatient(); round += 1) {
    const { operations, decisions } = await gate.recover();
    const recovered = operations.length + decisions.length;
    write({ run, recovered });
    let hasMoved = recovered > 0;
    if (round === 0) {
      await forEachCase(comeBack);
      hasMoved = true;
    } else if (!(await isOpen())) {
      if (isTakenBack) return;
      let stillLeft = 0;
      await forEachCase(async (one) => {
        if (one.takesBack) stillLeft += await takeBack(one);
      });
      // The rollback is requested again until that changes nothing.
      isTakenBack = stillLeft === 0 || stillLeft === left;
      left = stillLeft;
      hasMoved = true;
    }
    if (hasMoved) movedAt = stopwatch.now();
    await systemTimers.sleep(LEASE_MS / 4);
  }
}

async function forEachCase(work: (one: Case) => Promise<void>): Promise<void> {
  for (const one of plan.cases) {
    run = one.id;
    await work(one);
  }
  run = "";
}

/** Repeats requests without an answer, and decides what is pending. */
async function comeBack(one: Case): Promise<void> {
  const decisions = await gate.decisions.listBySession(one.id);
  const operations = await gate.operations.listBySession(one.id);
  const isUnderWay = decisions.some(({ state }) => !state.startsWith("pending"));
  const [approved] = decisions.filter(({ state }) => state === "approved");
  if (one.lane === "permit" && approved !== undefined && operations.length === 0) {
    return workUnder(approved.id, one);
  }
  if (isUnderWay || operations.length > 0) return;
  for (const { id } of decisions) {
    if ((await gate.interactions.shown(id)) !== undefined) return approve(id, one);
  }
  await act({ ...one, takesBack: false });
}

async function isOpen(): Promise<boolean> {
  for (const { id: session } of plan.cases) {
    const operations = await gate.operations.listBySession(session);
    if (operations.some(({ status }) => status === "started")) return true;
    for (const { id, state } of await gate.decisions.listBySession(session)) {
      const own = operations.filter(({ decisionId }) => decisionId === id);
      if (state === "approved" && !own.some(({ status }) => status === "unknown")) return true;
      const isPending = state.startsWith("pending");
      if (isPending && (await gate.interactions.shown(id)) === undefined) return true;
    }
  }
  return false;
}
