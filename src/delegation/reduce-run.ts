import { SallyportError } from "../model/errors.ts";
import { isMet, unmetNeeds } from "../model/promise.ts";
import {
  LOOP_STAGES,
  mayFollow,
  type Phase,
  type Run,
  type RunEvent,
  type RunId,
} from "../model/run.ts";

/** Newest kept; older ones are in the trail. */
const MOST_EVIDENCE = 500;

/**
 * The only way in which a run changes: what it was and what happened, in; what it is now, out. Pure, so that the same events
 * always make the same run. Throws illegal_transition for an event that cannot happen to this run now.
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

/** A run made again from what the trail tells. Undefined when there is nothing. */
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
      if (run.phase !== "ship") throw refused(run, event, "It has not come to ship.");
      checkKept(run, event);
      return { status: "done" };
    case "stopped":
      return { status: "stopped", reason: event.reason };
  }
}

function enter(run: Run, event: Extract<Later, { kind: "phase_changed" }>): Partial<Run> {
  const { from, to } = event;
  if (from !== run.phase || !mayFollow(from, to)) {
    throw refused(run, event, `From ${run.phase} it cannot go to ${to}.`);
  }
  if (to === "execute" && run.planFiles.length === 0) {
    throw refused(run, event, "A person has to agree to the plan and its files first.");
  }
  if (to === "ship") checkKept(run, event);
  // What was checked before is repaired now: it has to be checked again.
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
  // A refused action is not carried out, so observing may follow the gate at once.
  const before = LOOP_STAGES.indexOf(run.stage as (typeof LOOP_STAGES)[number]);
  const follows = isFirst
    ? true
    : at === before + 1 || (event.stage === "observe" && run.stage === "gate");
  if (!follows || event.round !== rounds) throw refused(run, event, "The loop has an order.");
  if (rounds > run.budget) throw refused(run, event, "Its budget of rounds is used up.");
  return { stage: event.stage, rounds };
}

function refused({ id, phase }: { id: RunId; phase: Phase }, { kind }: RunEvent, hint: string) {
  return new SallyportError("illegal_transition", { id, from: phase, event: kind, hint });
}
