import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { stopwatch } from "../../util/clock.ts";
import { followLines, inParallel, startChild } from "../child.ts";
import { collectEvidence, type Evidence } from "../evidence.ts";
import { checkInvariants, type Violation } from "../invariants/table.ts";
import { type Kit, type KitPlace, openKit, type StoreAt } from "../open-kit.ts";
import { type Counts, countsOf } from "../report.ts";
import { startWorld } from "../world/world.ts";
import { type Case, type CaseLine, type CasePlan, checkCases, nameOf } from "./case.ts";

export interface CasesOptions {
  /** A name that the store has not seen. */
  readonly run: string;
  readonly store: StoreAt;
  readonly config?: string;
  /** A folder of its own, for histories and the ledger. */
  readonly folder: string;
  /** Shared by all runs: where compiled code is kept. */
  readonly cache: string;
  readonly cases: readonly Case[];
  readonly atOnce: number;
  /** Where the first recovery is cut off as well; empty: nowhere. */
  readonly cutOff: string;
  /** Shape: push. */
  readonly onCase?: () => void;
}

export interface CasesRun {
  /** Processes that were killed where they were to be. */
  readonly crashes: number;
  /** Those that did not come past the point where they were to be killed; another one went in their place. */
  readonly missed: number;
  readonly recoveryCrashes: number;
  readonly worldDeaths: number;
  readonly recoveryMs: number;
  readonly counts: Counts;
  readonly violations: readonly Violation[];
}

/** On a busy machine a process may lose its lease, and with it the way past its point; then another one goes. */
const TRIES = 3;

/** Kills one process per case, then recovers, once with a kill in the middle, and looks at everything. */
export async function runCases(options: CasesOptions): Promise<CasesRun> {
  const { run, store, config, folder, cache, atOnce, cutOff, onCase } = options;
  await mkdir(folder, { recursive: true });
  const world = await startWorld(folder, cache);
  const place: KitPlace = {
    run,
    store,
    ...(config === undefined ? {} : { config }),
    worldPort: world.port,
    ledgerFile: world.ledgerFile,
  };
  // Opened first, so that no child is killed while it makes the tables, which is another test's matter.
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
  const look = async (isAtRest: boolean): Promise<readonly [Evidence, readonly Violation[]]> => {
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
    // Nobody has recovered yet: only what was acknowledged can be asked for.
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

/** Anything else is what a process said when it ended by itself. */
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
function withCase(violation: Violation, cases: readonly Case[], evidence: Evidence): Violation {
  const { id, problem } = violation;
  const records = [...evidence.decisions, ...evidence.operations];
  const session = records.find((record) => problem.includes(record.id))?.sessionId;
  const one = cases.find((known) => known.id === session);
  return one === undefined ? violation : { id, problem: `${nameOf(one)}: ${problem}` };
}

/** Effects that belong to nobody at all. */
async function strangers(kit: Kit, run: string): Promise<readonly Violation[]> {
  if (!kit.hasWorld) return [];
  return (await kit.effects())
    .filter(({ key }) => !key.startsWith(`${run}/`))
    .map(({ key }) => ({ id: "I1", problem: `an effect of nobody, with the key ${key}` }));
}
