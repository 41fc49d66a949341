import { SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { foldName } from "../model/names.ts";
import type { CompletionPromise } from "../model/promise.ts";
import type { Phase, Run, RunEvent, RunId } from "../model/run.ts";
import type { By } from "../store/decisions.ts";
import type { RunStore } from "../store/runs.ts";
import type { AuditReader } from "../store/store.ts";
import type { Authorisation, GateRun, GateRunner } from "./gate-runner.ts";
import { readRunEvents } from "./read-run-events.ts";
import { reduceRun, replayRun } from "./reduce-run.ts";
import { resolvePlaces } from "./resolve-places.ts";

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

export type Entered =
  | { readonly entered: true; readonly run: Run; readonly gate: GateRun }
  | { readonly entered: false; readonly findings: readonly Finding[]; readonly gate: GateRun };

/** Runs: one feature each, from talk to delivery. Every change is an event that the pure reducer accepts. */
export interface Runs {
  start(run: NewRun): Promise<Run>;
  get(id: RunId): Promise<Run>;
  /** One event, whoever else writes at the same time. Throws illegal_transition when it cannot happen. */
  tell(id: RunId, event: RunEvent, by: By): Promise<Run>;
  /** A person agrees to the files that may be written, by absolute paths. Throws dependency_denied for the lead itself. */
  approvePlan(id: RunId, files: readonly string[], by: By): Promise<Run>;
  /** The next phase, if table, promise and gate let it. */
  enter(id: RunId, phase: Phase, by: By): Promise<Entered>;
  /** Made again from the trail alone; undefined when it tells nothing of this run. */
  replay(id: RunId): Promise<Run | undefined>;
}

export interface RunsOptions {
  readonly runs: RunStore;
  readonly audit: AuditReader;
  readonly gate: GateRunner;
  /** Lifts findings of the gate in this run. */
  readonly authorisation: (id: RunId) => Promise<Authorisation>;
  readonly newId: () => string;
}

const TRIES = 20;

export function createRuns(options: RunsOptions): Runs {
  const { runs, audit, gate, authorisation, newId } = options;

  async function tell(id: RunId, event: RunEvent, by: By): Promise<Run> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const moved = await runs.move(reduceRun(await runs.get(id), id, event), event, by);
      if (moved !== undefined) return moved;
    }
    throw new SallyportError("concurrent_modification", { id });
  }

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
        const hint = "Somebody else has to agree to the plan: nobody approves their own.";
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
