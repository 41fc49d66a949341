import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { TOO_LATE } from "../../gate/attempt.ts";
import type { CrashPoint } from "../../gate/options.ts";
import { stopwatch } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { followLines, inParallel, startChild } from "../child.ts";
import {
  BEGINS,
  collectEvidence,
  type EvidenceIndex,
  type Invariant,
  type Kind,
  lookAt,
  type RunEvidence,
  type Told,
} from "../evidence.ts";
import { checkInvariants, type Violation } from "../invariants/table.ts";
import { type Kit, type KitPlace, openKit, type StoreAt } from "../open-kit.ts";
import { type Counts, countsOf } from "../report.ts";
import { type Fault, KINDS, startWorld } from "../world/world.ts";

export interface CasesOptions {
  /** A name that is new to the store. */
  readonly run: string;
  readonly store: StoreAt;
  readonly config?: string;
  /** A folder of its own, for histories and the ledger. */
  readonly folder: string;
  /** Shared by all runs: where compiled code is kept. */
  readonly cache: string;
  readonly cases: readonly Case[];
  readonly atOnce: number;
  /** Where the first recovery is killed as well; empty: nowhere. */
  readonly cutOff: string;
  /** Default `LEASE_MS`. On a busy machine longer ones let more processes come to their point. */
  readonly leaseMs?: number;
  /** Shape: push. */
  readonly onCase?: () => void;
}

export interface CasesRun {
  /** Processes that were killed at their point. */
  readonly crashes: number;
  /** Processes that did not reach their point; the case was repeated. */
  readonly missed: number;
  readonly recoveryCrashes: number;
  readonly worldDeaths: number;
  readonly recoveryMs: number;
  readonly counts: Counts;
  readonly violations: readonly Violation[];
}

/** On a busy machine a process may lose its lease before its point; then the case is repeated. */
const TRIES = 3;

/** Kills one process per case, then recovers, once with a kill in between, and checks everything. */
export async function runCrashCases(options: CasesOptions): Promise<CasesRun> {
  const { run, store, config, folder, cache, atOnce, cutOff, leaseMs, onCase } = options;
  await mkdir(folder, { recursive: true });
  const world = await startWorld(folder, cache);
  const { port: worldPort, ledgerFile } = world;
  const own = definedFields({ config, leaseMs });
  const place: KitPlace = { run, store, ...own, worldPort, ledgerFile };
  // Opened first, so that no child is killed while it creates the tables, which another test covers.
  const kit = await openKit(place);
  const plan = { place, history: path.join(folder, "history.jsonl") };
  const history = followLines<CaseLine>(plan.history);
  const cases: Case[] = [];
  const happened = { crashes: 0, missed: 0, recoveryCrashes: 0 };
  const fallen: Violation[] = [];
  const play = async (wanted: CasePlan, crashAt: string): Promise<CaseEnd> => {
    const end = await runCase(wanted, crashAt, cache);
    if (end !== "killed" && end !== "done") fallen.push({ id: "I24", problem: end });
    return end;
  };
  const look = async (isAtRest: boolean): Promise<readonly [RunEvidence, readonly Violation[]]> => {
    const told = history.read().flatMap((line) => ("told" in line ? [line.told] : []));
    const { mayRunAlone } = kit;
    const ledger = await kit.effects();
    const outside = { ledger, told, isAtRest, mayRunAlone };
    const evidence = await collectEvidence(kit.store, run, outside);
    const broken = checkInvariants(evidence).map((one) => withCase(one, cases, evidence));
    return [evidence, [...broken, ...checkCases(cases, evidence, history.read())]];
  };
  try {
    await inParallel(options.cases, atOnce, async (wanted) => {
      for (let tries = 1; tries <= TRIES; tries += 1) {
        const one = { ...wanted, id: tries === 1 ? wanted.id : `${wanted.id}-${tries}` };
        cases.push(one);
        const end = await play({ ...plan, mode: "act", cases: [one] }, one.crashAt);
        if (end === "killed") happened.crashes += 1;
        if (end !== "done" || one.crashAt === "") break;
        happened.missed += 1;
      }
      onCase?.();
    });
    // Before the recovery only acknowledged writes can be checked.
    const [, lost] = await look(false);
    const recovery: CasePlan = { ...plan, mode: "recover", cases };
    if (cutOff !== "" && (await play(recovery, cutOff)) === "killed") happened.recoveryCrashes += 1;
    const began = stopwatch.now();
    await play(recovery, "");
    const recoveryMs = stopwatch.now() - began;
    const [evidence, broken] = await look(true);
    const violations = [...fallen, ...lost, ...broken, ...(await strangers(kit, run))];
    const counts = countsOf(evidence);
    return { ...happened, worldDeaths: world.deaths(), recoveryMs, counts, violations };
  } finally {
    await kit.close();
    await world.stop();
  }
}

/** Any other text is the output of a process that ended by itself. */
type CaseEnd = "killed" | "done" | (string & {});

async function runCase(plan: CasePlan, crashAt: string, cache: string): Promise<CaseEnd> {
  const child = startChild({
    beside: import.meta.filename,
    name: "case-process",
    args: [JSON.stringify(plan)],
    cache,
    env: { CRASH_AT: crashAt },
  });
  let errors = "";
  child.stderr?.on("data", (chunk) => (errors += chunk));
  child.stdout?.resume();
  const [code, signal] = await once(child, "close");
  if (signal === "SIGKILL") return "killed";
  if (code === 0) return "done";
  const who = plan.cases.map(({ id }) => id).join(" ");
  return `${plan.mode} of ${who} ended with ${code ?? signal}: ${errors}`;
}

/** Names the case that a violation's record belongs to. */
function withCase(violation: Violation, cases: readonly Case[], evidence: RunEvidence): Violation {
  const { id, problem } = violation;
  const records = [...evidence.decisions, ...evidence.operations];
  const session = records.find((record) => problem.includes(record.id))?.sessionId;
  const one = cases.find((known) => known.id === session);
  return one === undefined ? violation : { id, problem: `${nameOf(one)}: ${problem}` };
}

/** Effects that belong to no call. */
async function strangers(kit: Kit, run: string): Promise<readonly Violation[]> {
  if (!kit.hasWorld) return [];
  return (await kit.effects())
    .filter(({ key }) => !key.startsWith(`${run}/`))
    .map(({ key }) => ({ id: "I1", problem: `an effect of no call, with the key ${key}` }));
}

/** The product's points, those inside the tool, and the one while the answer is sent. */
export type CasePoint = CrashPoint | "S6.request" | "S6.effect" | "S8.during";

/** As in docs/spec/reliability.md: around every commit, before, in and after the call, before and while it is answered. */
export const POINTS: readonly CasePoint[] = [
  ...(["S1", "S2a", "S2b", "S3", "S4", "S5"] as const).flatMap(
    (step) => [`${step}.before`, `${step}.after`] as const,
  ),
  ...(["S6.before", "S6.request", "S6.effect", "S6.after", "S7.before", "S7.after"] as const),
  ...(["S8.before", "S8.during"] as const),
];

/** The points of each step of a bundle, each compensation and each call of a rollback. */
export const STEP_POINTS: readonly CasePoint[] = POINTS.slice(
  POINTS.indexOf("S5.before"),
  POINTS.indexOf("S8.before"),
);

/** The points of the user's own tools: those inside a tool are not known. */
const OWN_POINTS: readonly CasePoint[] = POINTS.filter(
  (point) => point !== "S6.request" && point !== "S6.effect",
);

/** One request of an agent, and where its process is killed. Its id is its session's. */
export interface Case {
  readonly id: string;
  readonly kind: Kind;
  /**
   * `ask`: staged, shown and approved. `free`: allowed by the policy. `own`: calls of the user's module. `permit`: approved, then
   * executed by an external executor.
   */
  readonly lane: "ask" | "free" | "own" | "permit";
  readonly steps: number;
  /** Production refuses the last step, so those before it are undone. */
  readonly failsLast: boolean;
  /** Afterwards a person rolls the whole session back. */
  readonly takesBack: boolean;
  readonly fault: Fault;
  /** `S5.after:2` is the second passage; `undo S5.after:2` counts from the start of the rollback. Empty: never. */
  readonly crashAt: string;
}

export function caseOf(own: Partial<Case> & Pick<Case, "kind">): Case {
  const plain = {
    id: "",
    lane: "ask",
    steps: 1,
    failsLast: false,
    takesBack: false,
    fault: "none",
    crashAt: "",
  } as const;
  return { ...plain, ...own };
}

/** The argument of a process that runs cases. */
export interface CasePlan {
  readonly mode: "act" | "recover";
  readonly place: KitPlace;
  readonly history: string;
  readonly cases: readonly Case[];
}

/** What such a process records before it continues. */
export type CaseLine = { readonly run: string } & (
  | { readonly point: CasePoint }
  | { readonly told: Told }
  | { readonly recovered: number }
);

// What the invariants do not know: the expected end of each case, and which writes were acknowledged before the kill.

interface Scene {
  readonly one: Case;
  readonly evidence: RunEvidence;
  readonly look: EvidenceIndex;
  say(id: Invariant["id"], problem: string): void;
}

export function checkCases(
  cases: readonly Case[],
  evidence: RunEvidence,
  history: readonly CaseLine[],
): readonly Violation[] {
  const violations: Violation[] = [];
  const decisions = Map.groupBy(evidence.decisions, ({ sessionId }) => sessionId);
  const operations = Map.groupBy(evidence.operations, ({ sessionId }) => sessionId);
  const passed = Map.groupBy(history, ({ run }) => run);
  for (const one of cases) {
    const scene: Scene = {
      one,
      evidence: {
        ...evidence,
        decisions: decisions.get(one.id) ?? [],
        operations: operations.get(one.id) ?? [],
      },
      look: lookAt(evidence),
      say: (id, problem) => violations.push({ id, problem: `${nameOf(one)}: ${problem}` }),
    };
    checkAcknowledged(scene, passed.get(one.id) ?? []);
    if (evidence.isAtRest && one.lane !== "own") checkEnd(scene);
  }
  return violations;
}

export function nameOf({ id, kind, crashAt }: Case): string {
  return `${id} (${kind}, ${crashAt === "" ? "not killed" : crashAt})`;
}

/** I9: every write that was acknowledged before the kill is stored. */
function checkAcknowledged({ evidence, look, say }: Scene, history: readonly CaseLine[]): void {
  const { decisions, operations } = evidence;
  const times = (point: string) =>
    history.filter((line) => "point" in line && line.point === point).length;
  const told = (records: readonly { readonly id: string }[], ...types: readonly string[]) =>
    records.flatMap(({ id }) => look.linesOf(id)).filter(({ type }) => types.includes(type)).length;
  const least: readonly (readonly [string, number])[] = [
    ["S1.after", decisions.length],
    ["S2a.after", told(decisions, "decision.reviewed")],
    ["S3.after", told(decisions, "decision.previewed")],
    ["S4.after", decisions.filter(({ state }) => !state.startsWith("pending")).length],
    ["S5.after", told(operations, ...BEGINS)],
    ["S7.after", told(operations, "operation.succeeded", "operation.failed", "operation.lost")],
  ];
  for (const [point, stored] of least) {
    if (times(point) <= stored) continue;
    say("I9", `passed ${point} ${times(point)} times, ${stored} stored`);
  }
}

function checkEnd({ one, evidence, look, say }: Scene): void {
  for (const { state, executionError } of evidence.decisions) {
    if (state === "executed" && one.failsLast) say("I6", "executed, though production refused it");
    if (state === "failed" && executionError === "") say("I28", "failed without a reason");
    // Changes by the earlier steps must not count as drift for the rest.
    if (state === "failed" && !one.failsLast && !isTooBusy(executionError)) {
      say("I14", `failed, though production refused nothing: ${executionError}`);
    }
  }
  const undos = evidence.operations.filter(({ undoOf }) => undoOf !== "");
  const isFlagged = undos.some(({ status }) => status === "unknown");
  for (const { id, status, undoOf, error } of evidence.operations) {
    const happened = look.effectsOf(id).some(({ applied }) => applied);
    if (status === "failed" && happened) say("I20", `${id} is failed, but it happened`);
    const isUnasked = one.kind !== "plain" && one.fault !== "die" && !isTooBusy(error);
    if (status === "unknown" && isUnasked) {
      say("I14", `${id} is unknown, though its target could have been asked`);
    }
    // An operation is not undone before later ones that depend on it.
    if (one.takesBack && undoOf === "" && status === "success" && !isFlagged) {
      say("I28", `${id} was to be undone, and it was not`);
    }
  }
}

/** On a busy machine reading the target or the store may take too long, and then nothing may run: that is no violation. */
function isTooBusy(error: string): boolean {
  return error.includes("No answer within") || error.includes(TOO_LATE);
}

/** One call, killed at each of the 20 points. */
function singleCases(seed: number): readonly Case[] {
  return POINTS.flatMap((point, at) => {
    // An allowed call is not staged and passes only the later points.
    const lane = point >= "S5" && (at + seed) % 2 === 0 ? "free" : "ask";
    return KINDS.map((kind) => caseOf({ kind, lane, crashAt: `${point}:1` }));
  });
}

/** An executor that takes a permit: killed around taking it, around the effect and around its report. */
export function permitCases(): readonly Case[] {
  const points = [...STEP_POINTS, "S8.during"] as const;
  return points.map((point) => caseOf({ kind: "plain", lane: "permit", crashAt: `${point}:1` }));
}

const ROLLBACK_STEPS = 2;
/** The points of the rollback of a finished session. It is not staged, because a person requests it. */
const ROLLBACK_POINTS = [
  ...range(1, ROLLBACK_STEPS).flatMap((time) =>
    STEP_POINTS.map((point) => `undo ${point}:${time}`),
  ),
  "undo S8.before:1",
  "undo S8.during:1",
];

/** Two finished calls; their rollback is killed at each of its points. */
export function rollbackCases(kind: Kind): readonly Case[] {
  return ROLLBACK_POINTS.map((crashAt) =>
    caseOf({ kind, steps: ROLLBACK_STEPS, takesBack: true, crashAt }),
  );
}

const SAGA_STEPS = 10;

/** Ten calls as one decision: killed in each step, in each compensation when the last one fails, and in each call of a rollback. */
export function sagaCases(kind: Kind): readonly Case[] {
  const steps = SAGA_STEPS;
  return STEP_POINTS.flatMap((point) => [
    ...range(1, steps).map((time) => caseOf({ kind, steps, crashAt: `${point}:${time}` })),
    // The steps pass a point first, then the compensations of all but the last.
    ...range(steps + 1, 2 * steps - 1).map((time) =>
      caseOf({ kind, steps, failsLast: true, crashAt: `${point}:${time}` }),
    ),
    ...range(1, steps).map((time) =>
      caseOf({ kind, steps, takesBack: true, crashAt: `undo ${point}:${time}` }),
    ),
  ]);
}

/** Calls of the user's own module, killed at the points of every tool. */
export function ownCases(): readonly Case[] {
  return OWN_POINTS.map((point) => caseOf({ kind: "plain", lane: "own", crashAt: `${point}:1` }));
}

/**
 * What `sallyport crashkit --points` runs: every point of a single call, of an external executor and of a rollback with every
 * kind of target, and each step, compensation and rollback call of a long saga once, at a point and with a kind that the seed chooses.
 */
export function plannedPoints(seed: number): readonly Case[] {
  const sagas = Map.groupBy(KINDS.flatMap(sagaCases), wayOf);
  const some = [...sagas.values()].flatMap((all, at) => all[(seed + at * 5) % all.length] ?? []);
  return named([...singleCases(seed), ...permitCases(), ...KINDS.flatMap(rollbackCases), ...some]);
}

function wayOf({ crashAt, failsLast }: Case): string {
  const [phase] = crashAt.split("S");
  return `${phase}${failsLast} ${crashAt.split(":").at(-1)}`;
}

export function named(cases: readonly Case[], name = "case"): readonly Case[] {
  return cases.map((one, at) => ({ ...one, id: `${name}-${at}` }));
}

export function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}
