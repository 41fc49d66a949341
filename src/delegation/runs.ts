import {
  type CompletionPromise,
  isMet,
  LOOP_STAGES,
  type LoopStage,
  mayFollow,
  type Phase,
  type Run,
  type RunEvent,
  type RunId,
  type ToldRunEvent,
  unmetNeeds,
} from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { foldName, parseJson } from "../model/names.ts";
import type { By } from "../store/decisions.ts";
import type { RunStore } from "../store/sessions.ts";
import type { AuditReader } from "../store/store.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonObject } from "../util/json.ts";
import type { ActionPlan, Authorisation, GateRun, GateRunner } from "./plan.ts";
import { resolvePlaces } from "./scope.ts";

export interface NewRun {
  readonly feature: string;
  /** The agent that leads it: the run is its session. */
  readonly lead: string;
  /** What must be true in the end; the run ships only when it is. */
  readonly promise: CompletionPromise;
  /** Absolute paths; empty for none. */
  readonly documents: string;
  readonly evidenceFolder: string;
  /** Rounds of the loop at most. */
  readonly budget: number;
}

type Entered =
  | { readonly entered: true; readonly run: Run; readonly gate: GateRun }
  | { readonly entered: false; readonly findings: readonly Finding[]; readonly gate: GateRun };

/** Runs: one feature each, from discussion to delivery. Every change is an event that the pure reducer accepts. */
export interface Runs {
  start(run: NewRun): Promise<Run>;
  get(id: RunId): Promise<Run>;
  /** Adds one event, also under concurrent writes. Throws illegal_transition when it cannot happen. */
  tell(id: RunId, event: RunEvent, by: By): Promise<Run>;
  /** A person agrees to the files that may be written, by absolute paths. Throws dependency_denied for the lead itself. */
  approvePlan(id: RunId, files: readonly string[], by: By): Promise<Run>;
  /** The next phase, if the table, the promise and the gate allow it. */
  enter(id: RunId, phase: Phase, by: By): Promise<Entered>;
  /** Rebuilt from the audit log alone; undefined when the log has no entry of this run. */
  replay(id: RunId): Promise<Run | undefined>;
}

interface RunsOptions {
  readonly runs: RunStore;
  readonly audit: AuditReader;
  readonly gate: GateRunner;
  /** Lifts findings of the gate in this run. */
  readonly authorisation: (id: RunId) => Promise<Authorisation>;
  readonly newId: () => string;
}

const TRIES = 20;

/** Adds the event that `eventOf` chooses for the run as it is now, if any; tries again after a concurrent change. */
export async function moveRun(
  runs: RunStore,
  id: RunId,
  eventOf: (run: Run) => RunEvent | undefined,
  by: By,
): Promise<Run> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const run = await runs.get(id);
    const event = eventOf(run);
    const moved = event && (await runs.move(reduceRun(run, id, event), event, by));
    if (event === undefined || moved !== undefined) return moved ?? run;
  }
  throw new SallyportError("concurrent_modification", { id });
}

export function createRuns(options: RunsOptions): Runs {
  const { runs, audit, gate, authorisation, newId } = options;
  const tell: Runs["tell"] = (id, event, by) => moveRun(runs, id, () => event, by);

  return {
    tell,
    get: (id) => runs.get(id),
    async start({ feature, lead, promise, documents, evidenceFolder, budget }) {
      const id: RunId = `run-${newId()}`;
      const [folder = "", evidence = ""] = await resolvePlaces([documents, evidenceFolder], "");
      const places = { documents: folder, evidenceFolder: evidence };
      const facts = { feature, lead, promise, ...places, budget };
      const event = { kind: "started", ...facts } as const;
      return runs.create(reduceRun(undefined, id, event), event, { actor: lead });
    },
    async approvePlan(id, files, by) {
      const { lead } = await runs.get(id);
      if (foldName(by.actor) === foldName(lead)) {
        const hint = "The lead cannot approve its own plan. Ask another person.";
        throw new SallyportError("dependency_denied", { id, by: by.actor, hint });
      }
      return tell(id, { kind: "plan_approved", files: await resolvePlaces(files, "") }, by);
    },
    async enter(id, phase, by) {
      const run = await runs.get(id);
      const payload = { from: run.phase, to: phase, evidence: run.evidence.length };
      const context = { point: "pre-phase-transition", run: id, phase, payload } as const;
      const bare = await gate.run(context, { sessionId: id, actor: by.actor });
      const asked = await (await authorisation(id)).evaluate(bare, context);
      if (!asked.allowed) return { entered: false, findings: asked.findings, gate: asked };
      const event = { kind: "phase_changed", from: run.phase, to: phase } as const;
      return { entered: true, run: await tell(id, event, by), gate: asked };
    },
    async replay(id) {
      const events: RunEvent[] = [];
      for await (const { event } of readRunEvents(audit, id)) events.push(event);
      return replayRun(id, events);
    },
  };
}

/** The newest are kept; older ones are in the audit log. */
const MOST_EVIDENCE = 500;

/**
 * The only way in which a run changes: run and event in, next run out. Pure, so the same events always give the same run.
 * Throws illegal_transition for an event that cannot happen to this run now.
 */
export function reduceRun(run: Run | undefined, id: RunId, event: RunEvent): Run {
  if (event.kind === "started") {
    if (run !== undefined) throw refused(run, event, "It was started before.");
    return started(id, event);
  }
  if (run === undefined) {
    throw new SallyportError("illegal_transition", { id, hint: "A run begins with its start." });
  }
  if (run.status !== "open") throw refused(run, event, "It has ended; start another one.");
  return { ...run, ...changed(run, event), version: run.version + 1 };
}

/** A run rebuilt from its events. Undefined when there are none. */
export function replayRun(id: RunId, events: readonly RunEvent[]): Run | undefined {
  let run: Run | undefined;
  for (const event of events) run = reduceRun(run, id, event);
  return run;
}

function started(id: RunId, event: Extract<RunEvent, { kind: "started" }>): Run {
  const { feature, lead, documents, evidenceFolder, promise, budget } = event;
  return {
    id,
    feature,
    lead,
    phase: "discuss",
    status: "open",
    artefacts: {},
    documents,
    evidenceFolder,
    planFiles: [],
    promises: [promise],
    evidence: [],
    budget,
    rounds: 0,
    stage: "",
    reason: "",
    version: 1,
  };
}

type Later = Exclude<RunEvent, { kind: "started" }>;

function changed(run: Run, event: Later): Partial<Run> {
  switch (event.kind) {
    case "promised": {
      const isKnown = run.promises.some(({ id }) => id === event.promise.id);
      if (isKnown) throw refused(run, event, "A promise is given once.");
      return { promises: [...run.promises, event.promise] };
    }
    case "plan_approved":
      if (run.phase !== "plan") throw refused(run, event, "The plan is made in the phase plan.");
      return { planFiles: event.files };
    case "artefact_named":
      return { artefacts: { ...run.artefacts, [event.phase]: event.path } };
    case "phase_changed":
      return enter(run, event);
    case "evidence_recorded":
      return { evidence: [...run.evidence, event.evidence].slice(-MOST_EVIDENCE) };
    case "staged":
      return stage(run, event);
    case "done":
      if (run.phase !== "ship") throw refused(run, event, "It is not in the phase ship.");
      checkKept(run, event);
      return { status: "done" };
    case "stopped":
      return { status: "stopped", reason: event.reason };
  }
}

function enter(run: Run, event: Extract<Later, { kind: "phase_changed" }>): Partial<Run> {
  const { from, to } = event;
  if (from !== run.phase || !mayFollow(from, to)) {
    throw refused(run, event, `It cannot move from ${run.phase} to ${to}.`);
  }
  if (to === "execute" && run.planFiles.length === 0) {
    throw refused(run, event, "A person must approve the plan and its files first.");
  }
  if (to === "ship") checkKept(run, event);
  // A repair invalidates the evidence from before.
  return to === "execute" && from === "verify" ? { phase: to, evidence: [] } : { phase: to };
}

/** The first promise is the run's own; those of delegations are theirs. */
function checkKept(run: Run, event: Later): void {
  const [promise] = run.promises;
  if (promise !== undefined && isMet(promise, run.evidence)) return;
  const missing = promise === undefined ? [] : unmetNeeds(promise, run.evidence);
  const names = missing.map(({ name }) => name).join(", ");
  throw refused(run, event, `Its promise is not kept: there is no green evidence for ${names}.`);
}

function stage(run: Run, event: Extract<Later, { kind: "staged" }>): Partial<Run> {
  const at = LOOP_STAGES.indexOf(event.stage);
  const isFirst = at === 0;
  const rounds = isFirst ? run.rounds + 1 : run.rounds;
  // A denied action is not executed, so observe may follow the gate directly.
  const before = LOOP_STAGES.indexOf(run.stage as (typeof LOOP_STAGES)[number]);
  const follows =
    isFirst || at === before + 1 || (event.stage === "observe" && run.stage === "gate");
  if (!follows || event.round !== rounds) throw refused(run, event, "The loop has an order.");
  if (rounds > run.budget) throw refused(run, event, "Its budget of rounds is used up.");
  return { stage: event.stage, rounds };
}

function refused({ id, phase }: { id: RunId; phase: Phase }, { kind }: RunEvent, hint: string) {
  return new SallyportError("illegal_transition", { id, from: phase, event: kind, hint });
}

const PAGE = 500;
const PREFIX = "run.";

/** The events of one run in the audit log, oldest first. Throws damaged_record where data was erased. */
export async function* readRunEvents(audit: AuditReader, id: RunId): AsyncGenerator<ToldRunEvent> {
  for (let after = 0; ; ) {
    const page = await audit.read({ after, limit: PAGE });
    for (const { type, subject, data, at } of page) {
      if (subject !== id || !type.startsWith(PREFIX)) continue;
      if (data === null) {
        const hint = "Some of its audit entries were erased, so it cannot be rebuilt.";
        throw new SallyportError("damaged_record", { id, hint });
      }
      const kind = type.slice(PREFIX.length);
      yield { event: { kind, ...(parseJson(data) as JsonObject) } as unknown as RunEvent, at };
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.seq;
  }
}

/** What the host brings to a loop. Shape: callbacks; the loop waits for each. */
export interface LoopParts<Outcome> {
  /** The next action, or `finished`. */
  reason(run: Run): Promise<ActionPlan | "finished">;
  /** Findings that deny this action; none allow it. */
  gate(action: ActionPlan, run: Run): Promise<readonly Finding[]>;
  act(action: ActionPlan, run: Run): Promise<Outcome>;
  /** Receives the outcome, or why the action was denied. */
  observe(seen: Observation<Outcome>, run: Run): Promise<void>;
  /** Called after each round: a text stops the run with this reason. */
  stop?(run: Run): string | undefined;
}

export type Observation<Outcome> =
  | { readonly action: ActionPlan; readonly outcome: Outcome }
  | { readonly action: ActionPlan; readonly refused: readonly Finding[] }
  | { readonly action: ActionPlan; readonly error: string };

/**
 * Reason, gate, act, observe, update, evaluate, until the run is done or stopped. `finished` counts only when the run's
 * promise is met; before that it is a round like any other, so the loop ends with its budget. Every stage is an event of the
 * run. May be called again after a crash: it continues with a new round.
 */
export async function runLoop<Outcome>(
  id: RunId,
  runs: Runs,
  parts: LoopParts<Outcome>,
): Promise<Run> {
  for (;;) {
    const before = await runs.get(id);
    if (before.status !== "open") return before;
    const by = { actor: before.lead };
    const halt = (reason: string) => runs.tell(id, { kind: "stopped", reason }, by);
    if (before.rounds >= before.budget) return halt("Its budget of rounds is used up.");
    const round = before.rounds + 1;
    const stage = (name: LoopStage) => runs.tell(id, { kind: "staged", stage: name, round }, by);

    let run = await stage("reason");
    const action = await parts.reason(run);
    run = await stage("gate");
    if (action === "finished") await stage("observe");
    else {
      const found = await parts.gate(action, run);
      const refused = found.filter(({ severity }) => severity !== "warning");
      const acting = refused.length > 0 ? undefined : await stage("act");
      const outcome = acting ? await attempt(() => parts.act(action, acting)) : { refused };
      await parts.observe({ action, ...outcome }, await stage("observe"));
    }
    await stage("update");
    run = await stage("evaluate");
    const [promise] = run.promises;
    if (action === "finished" && promise !== undefined && isMet(promise, run.evidence)) {
      if (run.phase === "ship") return runs.tell(id, { kind: "done" }, by);
    }
    const why = parts.stop?.(run);
    if (why !== undefined) return halt(why);
  }
}

/** An action that throws has failed, which is an observation and does not end the loop. */
async function attempt<Outcome>(
  work: () => Promise<Outcome>,
): Promise<{ readonly outcome: Outcome } | { readonly error: string }> {
  try {
    return { outcome: await work() };
  } catch (error) {
    return { error: errorText(error) };
  }
}
